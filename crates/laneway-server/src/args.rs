//! Arguments as they were typed. What they mean, and what is wrong with them, is said in `settings`.

use clap::{Args as ClapArgs, Parser, Subcommand};

/// Runs work in order, per key.
#[derive(Debug, Parser)]
#[command(name = "laneway", version, about, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 ended at once by a second signal (what was not settled runs again).";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try it: a store in ./.laneway, a stream `orders`, a demo processor, and lines to paste.
    Dev(DevArgs),
    /// Serve a store over HTTP.
    Serve(ServeArgs),
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
    /// Where everything is kept: `file:PATH`, or `memory:` to keep nothing [env: LANEWAY_STORE_URL] [default:
    /// file:./laneway-data].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Address to listen on; a loopback address. Port 0 picks a free one [env: LANEWAY_HTTP_LISTEN] [default:
    /// 127.0.0.1:7070].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
}
