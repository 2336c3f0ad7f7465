//! How much the log costs over the bare disk: synced frames per second beside plain write-and-sync calls.
//!
//! `cargo run --release -p laneway-embedded --example log_throughput -- FOLDER [SECONDS]`; needs 500 MB of space
//! in FOLDER. Both sides alternate in short turns, so that they meet the same disk.
#![expect(clippy::print_stdout, reason = "the figures are the purpose of this program")]

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Clock, Steady, SystemClock};
use laneway_embedded::file::disk::RealDisk;
use laneway_embedded::file::log::{FrameBuffer, Log, Opened, Options, Replay, Space, Stamp};

const FILE_BYTES: u64 = 64 << 20;
const TURN: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: log_throughput FOLDER [SECONDS]")?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let folder = tempfile::tempdir_in(folder)?;
    let raw = zero_filled(&folder.path().join("raw"))?;
    let replay = Replay::default();
    let mut opened =
        Log::open(Arc::new(RealDisk), folder.path(), Options::default(), replay, &mut |_| Ok(()))?;
    opened.log.wait_upkeep(Duration::from_secs(120));
    println!("{:>10}  {:>12}  {:>12}  {:>6}", "body bytes", "raw syncs/s", "log syncs/s", "ratio");
    for body_len in [100, 4 << 10, 64 << 10, 256 << 10] {
        let (mut raw_count, mut log_count, mut turns) = (0, 0, 0);
        let start = SystemClock.steady();
        while elapsed(start) < Duration::from_secs(seconds) {
            raw_count += raw_turn(&raw, body_len)?;
            log_count += log_turn(&mut opened, body_len)?;
            turns += 1;
        }
        let rate = |count: u32| f64::from(count) / (f64::from(turns) * TURN.as_secs_f64());
        let (raw_rate, log_rate) = (rate(raw_count), rate(log_count));
        println!("{body_len:>10}  {raw_rate:>12.0}  {log_rate:>12.0}  {:>6.2}", log_rate / raw_rate);
    }
    println!("{:?}", opened.log.spares());
    opened.writer.close()?;
    Ok(())
}

fn elapsed(start: Steady) -> Duration {
    SystemClock.steady().since(start)
}

fn zero_filled(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().create_new(true).read(true).write(true).open(path)?;
    let zeros = vec![0; 1 << 20];
    for at in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// Writes and syncs the same number of bytes as a frame, round and round in one file.
fn raw_turn(file: &File, body_len: usize) -> std::io::Result<u32> {
    let bytes = vec![1; body_len + 40];
    let (start, mut count, mut at) = (SystemClock.steady(), 0, 0);
    while elapsed(start) < TURN {
        if at + bytes.len() as u64 > FILE_BYTES {
            at = 0;
        }
        file.write_all_at(&bytes, at)?;
        file.sync_data()?;
        at += bytes.len() as u64;
        count += 1;
    }
    Ok(count)
}

/// Writes frames and releases every segment that is full, as a store that has settled everything does.
fn log_turn(opened: &mut Opened, body_len: usize) -> Result<u32, Box<dyn Error>> {
    let mut buffer = FrameBuffer::with_capacity(body_len);
    let (start, mut count) = (SystemClock.steady(), 0);
    let mut serial = opened.writer.end().position.serial;
    while elapsed(start) < TURN {
        buffer.clear();
        let len = buffer.body_mut().len() + body_len;
        buffer.body_mut().resize(len, 1);
        opened.writer.write(&mut buffer, Stamp::default(), Space::Ordinary)?;
        count += 1;
        let current = opened.writer.end().position.serial;
        if current != serial {
            opened.log.release(serial);
            serial = current;
        }
    }
    Ok(count)
}
