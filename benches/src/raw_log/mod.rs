//! The baseline of the durable rows: what the disk allows when nothing is looked up, checked or kept.
//!
//! Producers put bytes into a queue; one thread takes whatever waits, writes it as one frame (length, checksum,
//! serial of the segment) into space that was filled with zeros before, syncs, and answers. There are no keys, no
//! chain, no index and no rules. `segments` prepares files ahead, `writer` is the thread, `replay` scans the
//! files again.

mod replay;
mod segments;
mod writer;

pub(crate) use replay::replay;
pub(crate) use writer::{Delivery, Place, RawLog, RawOptions, RawRecords};
