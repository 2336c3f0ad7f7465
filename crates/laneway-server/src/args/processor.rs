//! `laneway processor …`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::common::{Common, Consent, WatchArgs};

/// Arguments of `laneway processor`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ProcessorArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: ProcessorVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProcessorVerb {
    /// List processors.
    #[command(visible_alias = "list")]
    Ls(WatchArgs),
    /// Create a processor whose events remote workers claim (laneway work).
    Create(ProcessorCreate),
    /// Show a processor: settings, and where it stands still.
    #[command(visible_alias = "show")]
    Get(ProcessorName),
    /// Change settings of a processor.
    Edit(ProcessorEdit),
    /// Stop a processor; what runs goes on.
    Pause(ProcessorName),
    /// Let a paused or halted processor go on.
    Resume(ProcessorName),
    /// Begin a processor anew: what is behind the start runs again.
    Reset(ProcessorReset),
    /// Remove a processor with its progress, states and dead letters.
    #[command(visible_alias = "remove")]
    Rm(ProcessorRemove),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ProcessorName {
    /// Name of the processor.
    pub(crate) processor: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ProcessorCreate {
    /// Name of the processor.
    pub(crate) processor: String,
    /// The stream whose events it runs.
    #[arg(long, value_name = "NAME")]
    pub(crate) stream: String,
    /// Where it begins: beginning, end, an id, or a date [default: beginning].
    #[arg(long, value_name = "PLACE")]
    pub(crate) start: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ProcessorEdit {
    /// Name of the processor.
    pub(crate) processor: String,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

/// Settings of a processor that can be changed.
#[derive(Debug, ClapArgs)]
pub(crate) struct PolicyArgs {
    /// Runs at the same time [default: 64].
    #[arg(long, value_name = "COUNT")]
    pub(crate) concurrency: Option<usize>,
    /// How long a run may take, such as 30s [default: no limit].
    #[arg(long, value_name = "LENGTH")]
    pub(crate) timeout: Option<String>,
    /// Attempts at one event, the first included [default: 5].
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_attempts: Option<u32>,
    /// Wait after the first failed attempt; doubles with each [default: 1s].
    #[arg(long, value_name = "LENGTH")]
    pub(crate) backoff: Option<String>,
    /// Longest wait [default: 5m].
    #[arg(long, value_name = "LENGTH")]
    pub(crate) backoff_max: Option<String>,
    /// What happens to an event that is given up [default: park].
    #[arg(long, value_name = "POLICY")]
    pub(crate) on_failure: Option<OnFailureArg>,
    /// Only events of these types, with * for any ending [default: all].
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',')]
    pub(crate) types: Vec<String>,
}

/// What happens to an event that is given up.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnFailureArg {
    /// It stays the head of its lane, which stops until somebody decides.
    Park,
    /// It is kept aside and the lane goes on.
    #[value(alias = "dead_letter")]
    DeadLetter,
    /// It and all later events of its lane are kept aside.
    #[value(alias = "dead_letter_lane")]
    DeadLetterLane,
    /// The processor stops on this partition.
    Halt,
    /// It ends failed; the lane goes on.
    Drop,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ProcessorReset {
    /// Name of the processor.
    pub(crate) processor: String,
    /// Where it begins anew: beginning, end, an id, or a date.
    #[arg(long, value_name = "PLACE")]
    pub(crate) start: String,
    /// What becomes of the states of the lanes.
    #[arg(long, value_name = "WHAT", default_value = "keep")]
    pub(crate) state: ResetStateArg,
    /// Whether events emit again that were passed before; off emits from there on only.
    #[arg(long, value_name = "WHETHER", default_value = "on")]
    pub(crate) emit: ResetEmitArg,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// What becomes of the states of a processor that begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResetStateArg {
    /// They stay as they are.
    Keep,
    /// They go.
    Clear,
}

/// Whether a processor that begins anew emits what it has emitted before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResetEmitArg {
    /// It does.
    On,
    /// Not up to where it was.
    Off,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ProcessorRemove {
    /// Name of the processor.
    pub(crate) processor: String,
    #[command(flatten)]
    pub(crate) consent: Consent,
}
