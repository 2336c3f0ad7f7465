//! An empty index for tests, and a checkpoint to write into it.

use std::path::Path;

use laneway_core::Incarnation;

use super::{Index, Meta, Patience};
use crate::clock::ClockMark;
use crate::file::disk::Disk;
use crate::file::disk::simulated::SimulatedDisk;
use crate::file::log::{Mark, Position};

pub(crate) fn new_index() -> Index {
    let dir = Path::new("store");
    let disk = SimulatedDisk::new();
    Disk::create_dir(&disk, dir).unwrap();
    Index::open(&disk, dir, 1 << 20, Patience::new(false)).unwrap()
}

pub(crate) fn meta() -> Meta {
    Meta {
        store: 1,
        incarnation: Incarnation(1),
        mark: Mark { position: Position::START, number: 1 },
        clock: ClockMark::default(),
    }
}
