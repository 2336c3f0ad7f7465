//! `laneway lane …`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::common::{Common, Consent, WatchArgs};

/// Arguments of `laneway lane`.
#[derive(Debug, ClapArgs)]
pub(crate) struct LaneArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: LaneVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LaneVerb {
    /// List lanes that do not simply go on.
    #[command(visible_alias = "list")]
    Ls(LaneList),
    /// Show a lane: its end, and how it stands for each processor.
    #[command(visible_alias = "show")]
    Get(LaneName),
    /// Stop lanes; what runs goes on.
    Pause(LanePick),
    /// Let paused or parked lanes go on.
    Resume(LanePick),
    /// Try the heads of lanes again now.
    Retry(LanePick),
    /// Pass the heads of lanes over.
    Skip(LanePick),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LaneList {
    /// Name of the stream.
    pub(crate) stream: String,
    /// Only lanes of this status.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<LaneStatusArg>,
    /// Only for this processor.
    #[arg(long, value_name = "NAME")]
    pub(crate) processor: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

/// Statuses by which lanes are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LaneStatusArg {
    /// Its head waits for its turn.
    Waiting,
    /// Its head runs.
    Running,
    /// Its head is tried again later.
    Retrying,
    /// Its head was given up.
    Parked,
    /// Stopped on request.
    Paused,
    /// Its events go aside as dead letters.
    Diverting,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LaneName {
    /// Name of the stream.
    pub(crate) stream: String,
    /// Key of the lane.
    pub(crate) key: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LanePick {
    /// Name of the stream.
    pub(crate) stream: String,
    /// Key of the lane.
    #[arg(required_unless_present_any = ["reference", "status"], conflicts_with_all = ["reference", "status"])]
    pub(crate) key: Option<String>,
    /// One event of the lane, such as orders/3/17: the only name of a lane without a key.
    #[arg(long = "ref", id = "reference", value_name = "REF", conflicts_with = "status")]
    pub(crate) reference: Option<String>,
    /// All lanes of this status.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<LaneStatusArg>,
    /// For which processor [default: the stream's only one].
    #[arg(long, value_name = "NAME")]
    pub(crate) processor: Option<String>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}
