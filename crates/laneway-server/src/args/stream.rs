//! `laneway stream …`, and its short forms `send`, `tail` and `verify`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::common::{Common, Consent, WatchArgs};

/// Arguments of `laneway stream`.
#[derive(Debug, ClapArgs)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: StreamVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StreamVerb {
    /// List streams.
    #[command(visible_alias = "list")]
    Ls(WatchArgs),
    /// Create a stream.
    Create(StreamCreate),
    /// Show a stream: settings, partitions, how far its processors are.
    #[command(visible_alias = "show")]
    Get(StreamName),
    /// Change settings of a stream.
    Edit(StreamEdit),
    /// Remove a stream with everything in it.
    #[command(visible_alias = "remove")]
    Rm(StreamRemove),
    /// Send events: arguments, or lines of stdin.
    Send(SendArgs),
    /// Print events as they come.
    Tail(TailArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StreamName {
    /// Name of the stream.
    pub(crate) stream: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StreamCreate {
    /// Name of the stream.
    pub(crate) stream: String,
    /// How many partitions; it cannot be changed later [default: 16].
    #[arg(long, value_name = "COUNT")]
    pub(crate) partitions: Option<u32>,
    /// Which events of a lane run; it cannot be changed later [default: queue].
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    #[command(flatten)]
    pub(crate) kept: Kept,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StreamEdit {
    /// Name of the stream.
    pub(crate) stream: String,
    #[command(flatten)]
    pub(crate) kept: Kept,
}

/// Settings of a stream that can be changed.
#[derive(Debug, ClapArgs)]
pub(crate) struct Kept {
    /// How long events stay readable after every processor passed them, such as 7d [default: 7d].
    #[arg(long, value_name = "LENGTH")]
    pub(crate) keep: Option<String>,
    /// How long the end of a job is kept, such as 1d [default: 1d].
    #[arg(long, value_name = "LENGTH")]
    pub(crate) keep_done: Option<String>,
    /// Most events waiting, over all partitions [default: no bound].
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_pending: Option<u64>,
    /// The processor that answers jobs whose submitter names none [default: the stream's only one].
    #[arg(long, value_name = "NAME")]
    pub(crate) responder: Option<String>,
    /// How long a lane must have had no event before it is forgotten, once its last one is gone, such as 90d, or never [default: never].
    #[arg(long, value_name = "LENGTH")]
    pub(crate) forget_lanes_after: Option<String>,
    /// How long ids of events and keys of submissions are remembered, such as 7d [default: 1d].
    #[arg(long, value_name = "LENGTH")]
    pub(crate) dedup_window: Option<String>,
    /// Most of them that a partition remembers [default: 100000].
    #[arg(long, value_name = "COUNT")]
    pub(crate) dedup_max: Option<u64>,
}

/// Which events of a lane run.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    /// All of them.
    Queue,
    /// Only the newest generation.
    Latest,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StreamRemove {
    /// Name of the stream.
    pub(crate) stream: String,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Arguments of `laneway stream send`.
#[derive(Debug, ClapArgs)]
pub(crate) struct SendArgs {
    /// Name of the stream.
    pub(crate) stream: String,
    /// Payloads as JSON, one event each. Without any, stdin is read: a line is a whole event such as
    /// {"key":"ann","data":1}, or only its payload with --key, --key-field or --raw.
    pub(crate) data: Vec<String>,
    /// File to read instead of stdin.
    #[arg(long, short, value_name = "FILE", conflicts_with = "data")]
    pub(crate) file: Option<PathBuf>,
    /// Key of all events.
    #[arg(long, value_name = "KEY", conflicts_with = "key_field")]
    pub(crate) key: Option<String>,
    /// Field of each payload that is its key.
    #[arg(long, value_name = "FIELD", conflicts_with = "raw")]
    pub(crate) key_field: Option<String>,
    /// Type of all events that have none of their own.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Payloads are text, sent as JSON strings.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Events per call, 1 to 1000.
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    pub(crate) batch: usize,
    /// Name of this sending [default: a new one]. Lines are known by it and their number: what was sent under the same
    /// name is never sent twice, so a sending that was cut short can be repeated with the same input. A line that was
    /// passed over as bad stays out: send it corrected under another name.
    #[arg(long, value_name = "NAME", visible_alias = "resume")]
    pub(crate) name: Option<String>,
    /// Begin with this line, as a sending that was cut short told.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) from_line: u64,
    /// End at the first bad line instead of passing it over.
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Arguments of `laneway stream tail`.
#[derive(Debug, ClapArgs)]
pub(crate) struct TailArgs {
    /// Name of the stream.
    pub(crate) stream: String,
    /// Only events of this lane.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Only events of this partition.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) partition: Option<u32>,
    /// Where to begin.
    #[arg(long, value_name = "PLACE", default_value = "end")]
    pub(crate) from: TailFrom,
    /// End after so many events.
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) count: Option<u64>,
}

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TailFrom {
    /// With the first event that is still there.
    Beginning,
    /// With what comes from now on.
    End,
}

/// Arguments of `laneway verify`.
#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// Name of the stream.
    pub(crate) stream: String,
    /// Only this partition.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) partition: Option<u32>,
}
