//! The file store against the memory store: one seeded history of calls, every answer the same. Controls with planted
//! bugs show that a difference is seen.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use laneway_embedded::FileOptions;
use laneway_testkit::fault::Bug;
use laneway_testkit::fault::planted_cases::planted;
use laneway_testkit::{Fixture, differential};

use super::FileFixture;
use crate::memory::MemoryFixture;

/// Long enough that dedup ids, ends, chunks and dead letters expire and backups are restored.
const STEPS: usize = 1_500;

fn memory() -> Arc<dyn Fixture> {
    Arc::new(MemoryFixture::default())
}

fn file() -> Arc<dyn Fixture> {
    Arc::new(FileFixture::default())
}

/// A folder that keeps next to nothing in memory: small segments, checkpoints all the time, lane ends and frames read
/// from files.
fn forgetful() -> Arc<dyn Fixture> {
    let options = FileOptions {
        segment_bytes: 2 << 20,
        checkpoint_bytes: 64 << 10,
        tail_cache: 2,
        index_cache_bytes: 64 << 10,
        recent_bytes: 4 << 10,
        ..FileOptions::default()
    };
    Arc::new(FileFixture { options })
}

#[test]
fn the_folder_answers_as_memory_does() {
    for seed in [1, 114, 116] {
        differential(memory(), file(), seed, STEPS);
    }
}

#[test]
fn a_forgetful_folder_answers_as_memory_does() {
    for seed in [3, 115, 117] {
        differential(memory(), forgetful(), seed, STEPS);
    }
}

/// What the comparison with a store that has this bug says; `None` if it saw nothing.
fn seen(subject: Arc<dyn Fixture>, bug: Bug, seed: u64) -> Option<String> {
    let compare = || differential(memory(), planted(subject, bug), seed, STEPS);
    catch_unwind(AssertUnwindSafe(compare)).err().map(|panic| said(&*panic))
}

fn said(panic: &(dyn Any + Send)) -> String {
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic without words".to_owned())
}

#[test]
fn control_a_bug_in_the_folder_is_seen() {
    for bug in [Bug::ForgetDedup, Bug::RepeatAppliesTwice, Bug::TrimPastUnprocessed] {
        let words = seen(file(), bug, 1).unwrap_or_else(|| panic!("{bug:?} is not seen"));
        assert!(words.contains("differ"), "{bug:?}: {words}");
    }
}

#[test]
fn control_every_planted_bug_is_seen() {
    for bug in Bug::ALL {
        let words = (1..=8).find_map(|seed| seen(memory(), bug, seed));
        let words = words.unwrap_or_else(|| panic!("{bug:?} is not seen"));
        assert!(words.contains("differ"), "{bug:?}: {words}");
    }
}
