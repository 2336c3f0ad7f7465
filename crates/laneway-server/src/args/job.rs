//! `laneway job …` and `laneway why`.

use clap::{Args as ClapArgs, Subcommand};

use super::common::Common;

/// Arguments of `laneway job`.
#[derive(Debug, ClapArgs)]
pub(crate) struct JobArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: JobVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobVerb {
    /// Submit a job.
    Submit(JobSubmit),
    /// Show a job as it stands.
    #[command(visible_alias = "show")]
    Get(JobName),
    /// Wait for the end of a job.
    Wait(JobWait),
    /// Ask for jobs to be cancelled.
    Cancel(JobCancel),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobName {
    /// Id of the job.
    pub(crate) job: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobSubmit {
    /// Name of the stream.
    pub(crate) stream: String,
    /// Payload as JSON; - reads it from stdin.
    pub(crate) data: Option<String>,
    /// Lane of the job.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Type of the job.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// The payload is text, sent as a JSON string.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Which processor answers [default: the stream's only one].
    #[arg(long, value_name = "NAME")]
    pub(crate) processor: Option<String>,
    /// Begin only after this time, such as 5s.
    #[arg(long, value_name = "LENGTH")]
    pub(crate) delay: Option<String>,
    /// Higher goes first, between lanes.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) priority: Option<u8>,
    /// Give it up if it has not begun within this time, such as 1h.
    #[arg(long, value_name = "LENGTH")]
    pub(crate) ttl: Option<String>,
    /// How long the result can be read, such as 1d.
    #[arg(long, value_name = "LENGTH")]
    pub(crate) keep: Option<String>,
    /// Names the submission: the same name and payload again is the same job.
    #[arg(long, value_name = "NAME")]
    pub(crate) idempotency_key: Option<String>,
    /// Wait for the end, at most so long, and print the result; the exit code tells how it ended.
    #[arg(long, value_name = "LENGTH", num_args = 0..=1, require_equals = true, default_missing_value = "1h")]
    pub(crate) wait: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobWait {
    /// Id of the job.
    pub(crate) job: String,
    /// At most so long.
    #[arg(long, value_name = "LENGTH", default_value = "1h")]
    pub(crate) timeout: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobCancel {
    /// Ids of jobs.
    #[arg(required = true)]
    pub(crate) jobs: Vec<String>,
    /// Wait for the end, at most so long.
    #[arg(long, value_name = "LENGTH", num_args = 0..=1, require_equals = true, default_missing_value = "30s")]
    pub(crate) wait: Option<String>,
}

/// Arguments of `laneway why`.
#[derive(Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Id of a job, or name of a stream.
    #[arg(value_name = "JOB | STREAM")]
    pub(crate) what: String,
    /// Key of the lane in the stream.
    pub(crate) key: Option<String>,
    /// Only for this processor.
    #[arg(long, value_name = "NAME", requires = "key")]
    pub(crate) processor: Option<String>,
}
