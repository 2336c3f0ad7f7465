//! The physical limit: how often this disk confirms a small write into space that exists already.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::context::{Context, progress};
use crate::measured::percentile_ms;
use crate::report::Row;
use crate::{Failure, seam};

pub(crate) const NAME: &str = "sync";

const FILE_BYTES: u64 = 64 << 20;
const WRITE_BYTES: usize = 4096;

/// Single syncs, one at a time.
pub(crate) struct Syncs {
    pub(crate) rate: f64,
    /// Length of every one in microseconds.
    pub(crate) calls: Vec<u32>,
}

pub(crate) fn run(context: &Context) -> Result<Row, Failure> {
    progress("sync: 4 KiB writes into space filled with zeros, one sync each");
    let Syncs { rate, calls } = measure(context, context.length(1_000, 5_000), Duration::ZERO)?;
    Ok(Row {
        name: NAME.to_owned(),
        rate,
        unit: "syncs/s",
        durability: "synced",
        syncs_per_second: Some(rate),
        p50_ms: percentile_ms(&calls, 0.5),
        p99_ms: percentile_ms(&calls, 0.99),
        note: "fdatasync after each 4 KiB write into pre-zeroed space, one writer: the limit of this disk"
            .to_owned(),
        ..Row::default()
    })
}

/// Syncs small writes for so long, one every so often: with no time between them one after the other.
///
/// A sync that begins on an idle machine takes longer than one in a row of them, because threads and disk are to be woken.
pub(crate) fn measure(context: &Context, length: Duration, every: Duration) -> Result<Syncs, Failure> {
    let path = context.place.join("sync");
    let file = OpenOptions::new().create_new(true).read(true).write(true).open(&path)?;
    let zeros = vec![0; 1 << 20];
    for at in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()?;
    let bytes = [1; WRITE_BYTES];
    let (start, mut at, mut calls) = (seam::now(), 0, Vec::new());
    let (mut begun, mut next) = (start, start);
    while begun.duration_since(start) < length {
        file.write_all_at(&bytes, at)?;
        file.sync_data()?;
        at = (at + WRITE_BYTES as u64) % FILE_BYTES;
        calls.push(u32::try_from(seam::now().duration_since(begun).as_micros())?);
        next += every;
        seam::rest_until(next);
        begun = seam::now();
    }
    let rate = calls.len() as f64 / begun.duration_since(start).as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(Syncs { rate, calls })
}
