//! Arguments as they were typed. What they mean, and what is wrong with them, is said in `settings`.

mod cluster;
mod common;
mod dead;
mod job;
mod lane;
mod local;
mod operation;
mod processor;
#[cfg(test)]
mod reference;
mod schedule;
mod stream;
mod work;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::exit::EXIT_CODES;
use crate::settings::Flags;

pub(crate) use cluster::{ClusterVerb, LeaseVerb, NodeVerb};
pub(crate) use common::{Color, Common, Consent, Form, OutputArgs, ServerArgs, WatchArgs};
pub(crate) use dead::{DeadChoice, DeadExport, DeadList, DeadPick, DeadVerb, RedriveToArg};
pub(crate) use job::{JobCancel, JobList, JobRemove, JobSubmit, JobVerb, WhyArgs};
pub(crate) use lane::{LaneList, LanePick, LaneStatusArg, LaneVerb};
pub(crate) use local::{BenchArgs, DoctorArgs, EventVerb, StoreVerb};
pub(crate) use operation::Operation;
pub(crate) use processor::{
    OnFailureArg, PolicyArgs, ProcessorCreate, ProcessorEdit, ProcessorReset, ProcessorVerb, ResetEmitArg,
    ResetStateArg,
};
pub(crate) use schedule::{ScheduleAdd, ScheduleVerb};
pub(crate) use stream::{
    Kept, ModeArg, SendArgs, StreamCreate, StreamEdit, StreamVerb, TailArgs, TailFrom, VerifyArgs,
};
pub(crate) use work::WorkArgs;

/// Runs work in order, per key.
#[derive(Debug, Parser)]
#[command(name = "laneway", version, about, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one in the life of a process")]
pub(crate) enum Command {
    /// Try it: a store in ./.laneway, a stream `orders`, a demo processor, and lines to paste.
    Dev(DevArgs),
    /// Serve a store over HTTP.
    Serve(ServeArgs),
    /// Look at the settings of `serve`.
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(flatten)]
    Operation(Operation),
}

/// Arguments of `laneway dev`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DevArgs {
    /// Empty the store first.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Port on 127.0.0.1; 0 picks a free one.
    #[arg(long, value_name = "PORT", conflicts_with = "listen")]
    pub(crate) port: Option<String>,
    /// Address to listen on; a loopback address [env: LANEWAY_HTTP_LISTEN].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// How long your handler may take, such as 30s; then it is ended and has failed. Default: as long as it wants.
    #[arg(long, value_name = "LENGTH", requires = "handler")]
    pub(crate) timeout: Option<String>,
    /// Your handler, called once per event: data on stdin, LANEWAY_* in its environment; exit 0 is done, 75 is try
    /// again, 65 is failed for good.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) handler: Vec<String>,
}

/// Arguments of `laneway serve`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// One per setting that has a flag.
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// Commands about settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show all settings as they count.
    Show {
        /// Say where each came from.
        #[arg(long)]
        origin: bool,
        /// As for `laneway serve`.
        #[command(flatten)]
        flags: Flags,
    },
    /// Say what is wrong with the settings, all at once.
    Check {
        /// As for `laneway serve`.
        #[command(flatten)]
        flags: Flags,
    },
    /// Print a laneway.toml to begin with.
    Init,
    /// Make a token: prints it, once, and the line to keep in the token file of the server.
    Token {
        /// Whose it is: kept with the jobs of its caller.
        name: String,
        /// What it is good for: read, write, work, admin, with commas between them.
        #[arg(long, value_name = "SCOPES")]
        scopes: String,
    },
}
