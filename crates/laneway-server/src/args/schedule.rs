//! `laneway schedule …`.

use clap::{Args as ClapArgs, Subcommand};

use super::common::{Common, Consent, WatchArgs};

/// Arguments of `laneway schedule`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ScheduleArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: ScheduleVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleVerb {
    /// List schedules.
    #[command(visible_alias = "list")]
    Ls(WatchArgs),
    /// Add a schedule, or change one that is there: what is not said stays as it is.
    Add(ScheduleAdd),
    /// Remove a schedule.
    #[command(visible_alias = "remove")]
    Rm(ScheduleRemove),
    /// Send its event now, beside its times.
    Run(ScheduleName),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ScheduleName {
    /// Name of the schedule.
    pub(crate) schedule: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ScheduleAdd {
    /// Name of the schedule.
    pub(crate) schedule: String,
    /// The stream that gets an event each time.
    #[arg(long, value_name = "NAME")]
    pub(crate) stream: String,
    /// Times as cron has them, such as "0 3 * * *".
    #[arg(long, value_name = "TIMES", conflicts_with = "every", required_unless_present = "every")]
    pub(crate) cron: Option<String>,
    /// Time zone of the cron times, such as Europe/Berlin [default: UTC].
    #[arg(long, value_name = "ZONE", requires = "cron")]
    pub(crate) time_zone: Option<String>,
    /// Length between two times, such as 5m.
    #[arg(long, value_name = "LENGTH")]
    pub(crate) every: Option<String>,
    /// Lane of the events.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Type of the events.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Payload of the events as JSON.
    #[arg(long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Pass over what is due, or no longer do so.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) paused: Option<bool>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ScheduleRemove {
    /// Name of the schedule.
    pub(crate) schedule: String,
    #[command(flatten)]
    pub(crate) consent: Consent,
}
