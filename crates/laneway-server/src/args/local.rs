//! Commands that look at this machine: `store`, `config`, `bench`, `doctor`, `completions`; and `event`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use clap_complete::Shell;

use super::common::{Common, OutputArgs, ServerArgs};
use crate::settings::Flags;

/// Arguments of `laneway event`.
#[derive(Debug, ClapArgs)]
pub(crate) struct EventArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: EventVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EventVerb {
    /// Show an event, and where it stands for each processor.
    #[command(visible_alias = "show")]
    Get(EventName),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct EventName {
    /// Name of the event, such as orders/3/17.
    #[arg(value_name = "REF")]
    pub(crate) reference: String,
}

/// Arguments of `laneway store`.
#[derive(Debug, ClapArgs)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(subcommand)]
    pub(crate) verb: StoreVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreVerb {
    /// Read a closed store from the first byte to the last and tell what is wrong with it; changes nothing.
    Verify(StoreVerify),
    /// Copy everything of one store into another that is empty; nobody may work on either.
    Copy(StoreCopy),
    /// Make a backup of a running server's store, or of a closed store in files.
    Backup(StoreBackup),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StoreVerify {
    /// The store, such as file:./laneway-data.
    #[arg(value_name = "URL")]
    pub(crate) store: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StoreCopy {
    /// The store to read.
    #[arg(value_name = "FROM-URL")]
    pub(crate) from: String,
    /// The store to write.
    #[arg(value_name = "TO-URL")]
    pub(crate) to: String,
    /// Which application to copy on a server that holds several [default: laneway].
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// File with the authorities that may vouch for a server over TLS, as PEM [default: those that the machine trusts].
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// File with the certificate to show to a server that asks for one, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// File with the key of that certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(allow_missing_positional = true)]
pub(crate) struct StoreBackup {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// A closed store, such as file:./laneway-data [default: the store of the running server].
    #[arg(value_name = "URL", conflicts_with_all = ["server", "token_file", "ca_file"])]
    pub(crate) store: Option<String>,
    /// Folder to write, empty or absent; for a running server the name of a new folder in its store.backup_dir.
    #[arg(value_name = "FOLDER")]
    pub(crate) to: PathBuf,
}

/// Arguments of `laneway bench`.
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Store to measure in this process; a stream is added and removed again [default: a folder of its own, unless
    /// --server is given].
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    pub(crate) store: Option<String>,
    /// How long each measurement takes.
    #[arg(long, value_name = "LENGTH", default_value = "3s")]
    pub(crate) length: String,
}

/// Arguments of `laneway doctor`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// As `laneway serve` would have them.
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// Arguments of `laneway completions`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// For which shell.
    pub(crate) shell: Shell,
}
