//! What all commands that talk to a server have in common.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

/// Which server, and how to write what it answers.
#[derive(Debug, ClapArgs)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which server, and who asks.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerArgs {
    /// Address of the server [env: LANEWAY_SERVER] [default: http://127.0.0.1:7070].
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) server: Option<String>,
    /// File with the token to show; the environment may have the token itself [env: LANEWAY_TOKEN].
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) token_file: Option<PathBuf>,
    /// File with the certificates (PEM) that vouch for an https server [default: those of the system].
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) ca_file: Option<PathBuf>,
}

/// How to write.
#[derive(Debug, Clone, Copy, ClapArgs)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Form of what is written [default: table on a terminal, else plain].
    #[arg(short, long, value_name = "FORM", global = true)]
    pub(crate) output: Option<Form>,
    /// Whether to use colours.
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    pub(crate) color: Color,
    /// Write only what was asked for: no progress, no remarks.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// Form of what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Columns for people, times relative.
    Table,
    /// One JSON value, indented.
    Json,
    /// One JSON value per line.
    Jsonl,
    /// Columns with tabs between them, no heading, times as dates.
    Plain,
    /// Only the name of each thing.
    Id,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Whether to look again and again.
#[derive(Debug, ClapArgs)]
pub(crate) struct WatchArgs {
    /// Look again and again, every 2s or as said, until Ctrl-C.
    #[arg(long, value_name = "LENGTH", num_args = 0..=1, require_equals = true, default_missing_value = "2s")]
    pub(crate) watch: Option<String>,
}

/// Consent to what cannot be taken back.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct Consent {
    /// Do it without asking; needed where nobody can be asked.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Only say what would be hit.
    #[arg(long)]
    pub(crate) dry_run: bool,
}
