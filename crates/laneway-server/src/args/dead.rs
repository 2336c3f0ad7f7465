//! `laneway dead …`: dead letters.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::common::{Common, Consent, WatchArgs};

/// Arguments of `laneway dead`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DeadArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: DeadVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadVerb {
    /// List dead letters.
    #[command(visible_alias = "list")]
    Ls(DeadList),
    /// Bring dead letters back.
    Redrive(DeadRedrive),
    /// Forget dead letters for good.
    Discard(DeadDiscard),
    /// Write dead letters with their payloads as JSON lines.
    Export(DeadExport),
}

/// Which dead letters.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct DeadPick {
    /// Only of this stream.
    #[arg(long, value_name = "NAME")]
    pub(crate) stream: Option<String>,
    /// Only of this processor.
    #[arg(long, value_name = "NAME")]
    pub(crate) processor: Option<String>,
    /// Only of this lane.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeadList {
    #[command(flatten)]
    pub(crate) pick: DeadPick,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeadChoice {
    /// Names of events, such as orders/3/17.
    pub(crate) refs: Vec<String>,
    #[command(flatten)]
    pub(crate) pick: DeadPick,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeadRedrive {
    #[command(flatten)]
    pub(crate) choice: DeadChoice,
    /// Where to.
    #[arg(long, value_name = "WHERE", default_value = "place")]
    pub(crate) to: RedriveToArg,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeadDiscard {
    #[command(flatten)]
    pub(crate) choice: DeadChoice,
}

/// Where dead letters come back to.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RedriveToArg {
    /// Their place in the lane, as long as nothing that came after them is done.
    Place,
    /// The end of the lane, as a copy.
    Tail,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeadExport {
    #[command(flatten)]
    pub(crate) pick: DeadPick,
    /// File to write; it must not exist [default: stdout].
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
