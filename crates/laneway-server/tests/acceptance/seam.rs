//! Where these scenarios touch the real world: as the other tests of the server do, and the clock that terms and times of events are told by.

#[path = "../it/seam.rs"]
mod shared;

pub(crate) use shared::*;

/// Microseconds by the clock of this machine, which is the clock of a store on it.
#[expect(clippy::disallowed_methods, reason = "compared with what the store says")]
pub(crate) fn wall_clock() -> u64 {
    let passed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(passed.as_micros()).unwrap()
}
