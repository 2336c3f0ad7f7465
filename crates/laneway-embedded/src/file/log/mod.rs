//! The byte-level log: opaque frame bodies in, verified frame bodies out.
//!
//! It knows nothing of events. One writer appends frames, each made durable by one sync; any number of
//! readers take them back, checked on every read. `docs/design/embedded-format.md` describes the files.
//!
//! Invariants:
//! - a frame answered by [`LogWriter::write`] is found by every later recovery, in order, unchanged
//! - recovery invents nothing, and refuses instead of answering a shorter history than was acknowledged
//! - recovery changes nothing it has read, so it can be interrupted and repeated
//! - after a write or sync error nothing is written or synced again by this process

mod closed;
mod error;
pub mod frame;
mod header;
mod open;
mod options;
mod position;
mod reader;
mod recent;
mod recover;
mod scan;
mod segment;
mod spares;
mod walked;
mod writer;

pub use error::{LogError, Poison};
pub use frame::FrameBuffer;
pub(crate) use header::FIRST_FRAME;
pub use open::{Log, Opened, Pinned, Replay};
pub use options::{Options, SyncMode, Upkeep};
pub use position::{Frame, Mark, Position, Stamp};
pub use reader::LogReader;
pub use recover::{Cut, Recovered};
pub use segment::SegmentInfo;
pub use spares::SparesStatus;
pub use writer::{LogWriter, Space};
