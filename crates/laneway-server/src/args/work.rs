//! Arguments of `laneway work`.

use clap::Args as ClapArgs;

use super::common::ServerArgs;

/// Arguments of `laneway work`.
#[derive(Debug, ClapArgs)]
pub(crate) struct WorkArgs {
    /// Name of a processor for remote workers (`pull = true`).
    pub(crate) processor: String,
    /// Keep the command, and give it events as lines of JSON.
    #[arg(long)]
    pub(crate) pipe: bool,
    /// Lanes at the same time, 1 to 1000.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) concurrency: usize,
    /// How long a lane stays ours when the server does not hear from us, 1s to 1h; meanwhile more time is asked for.
    #[arg(long, value_name = "LENGTH", default_value = "30s")]
    pub(crate) lease: String,
    /// How long runs may take after a signal; then they are ended and given back.
    #[arg(long, value_name = "LENGTH", default_value = "30s")]
    pub(crate) grace: String,
    /// Who works, for people [default: PID@HOST].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Your handler, called once per event: data on stdin, LANEWAY_* in its environment; exit 0 is done, 75 is try
    /// again, 65 is failed for good. With --pipe, a line in and a line out per event.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
