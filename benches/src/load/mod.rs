//! Parts that the growth rows, the neighbour and the soak are put together from.
//!
//! `stream` and `folder` are what they write to, `traffic`, `bystander` and `sender` write, `sync_probe` syncs beside them, `handlers` and `run_waits` run events,
//! `latencies` and `disk` are what is looked at.

mod bystander;
mod disk;
mod folder;
mod handlers;
mod latencies;
mod run_waits;
mod sender;
mod stream;
mod sync_probe;
mod traffic;

pub(crate) use bystander::{Compared, compare};
pub(crate) use disk::folder_mib;
pub(crate) use folder::Folder;
pub(crate) use handlers::{all_done, counting, failing, failing_until, stateless};
pub(crate) use latencies::{Latencies, Recorder};
pub(crate) use run_waits::RunWaits;
pub(crate) use sender::Sender;
pub(crate) use stream::{DAY, Stream, draft, keeping, numbered_key};
pub(crate) use sync_probe::SyncProbe;
pub(crate) use traffic::{Traffic, write_mib};
