//! The raw log's queue and its one writing thread: gather, checksum, write, sync, answer.
//!
//! Groups form as in the store: whatever came while the group before was synced. What was written stays in memory
//! for those it is delivered to, as the newest frames of the store do.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::segments::{SEGMENT_BYTES, Segment, Segments};
use crate::{Failure, seam};

/// Bytes in front of a frame: length, checksum, serial of the segment.
pub(super) const FRAME_HEAD: usize = 16;
/// Most bytes of a group, as in the store.
const GROUP_BYTES: usize = 4 << 20;

/// Settings of the raw log.
#[derive(Default)]
pub(crate) struct RawOptions {
    /// How long a full file is kept; `None` for ever.
    pub(crate) keep: Option<Duration>,
    /// Told of every durable group of events, in order.
    pub(crate) deliver: Option<Box<dyn Fn(Delivery) + Send>>,
}

/// What one call appends.
pub(crate) enum RawRecords {
    /// Events of a shard.
    Events { shard: u32, bytes: Vec<u8> },
    /// The ends of events, which nobody reads.
    Ends(Vec<u8>),
}

impl RawRecords {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Events { bytes, .. } | Self::Ends(bytes) => bytes,
        }
    }
}

/// Where something lies in the log.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) file: Arc<File>,
    pub(crate) offset: u64,
}

/// Durable events of a shard.
pub(crate) struct Delivery {
    pub(crate) shard: u32,
    pub(crate) bytes: Bytes,
    /// Where the first of them lies.
    pub(crate) place: Place,
}

struct Call {
    records: RawRecords,
    answer: oneshot::Sender<Place>,
}

/// A running raw log; stops when dropped.
pub(crate) struct RawLog {
    shared: Arc<Shared>,
    segments: Arc<Segments>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    frames: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Default)]
struct Queue {
    calls: Vec<Call>,
    closed: Option<String>,
}

impl RawLog {
    /// Creates a log in a new folder and waits until its first segments are ready.
    pub(crate) fn create(dir: &Path, options: RawOptions) -> Result<Self, Failure> {
        std::fs::create_dir_all(dir)?;
        let segments = Segments::new(dir, options.keep);
        let shared = Arc::<Shared>::default();
        let preparing = Arc::clone(&segments);
        let mut threads = vec![seam::thread("raw-segments", move || preparing.serve())?];
        let writer =
            Writer { shared: Arc::clone(&shared), segments: Arc::clone(&segments), deliver: options.deliver };
        threads.push(seam::thread("raw-writer", move || writer.serve())?);
        segments.wait_until_ready();
        Ok(Self { shared, segments, threads })
    }

    /// Appends and waits until it is durable; answers where it lies.
    pub(crate) async fn append(&self, records: RawRecords) -> Result<Place, Failure> {
        let (answer, answered) = oneshot::channel();
        let first = {
            let mut queue = self.shared.queue.lock();
            if let Some(reason) = &queue.closed {
                return Err(format!("raw log stopped: {reason}").into());
            }
            queue.calls.push(Call { records, answer });
            queue.calls.len() == 1
        };
        if first {
            self.shared.arrived.notify_one();
        }
        answered.await.map_err(|_| "raw log stopped before it answered".into())
    }

    /// Frames and bytes written so far; every frame is one sync.
    pub(crate) fn written(&self) -> (u64, u64) {
        (self.shared.frames.load(Ordering::Relaxed), self.shared.bytes.load(Ordering::Relaxed))
    }

    /// Waits until the next segments are prepared.
    pub(crate) fn wait_until_ready(&self) {
        self.segments.wait_until_ready();
    }
}

impl Drop for RawLog {
    fn drop(&mut self) {
        self.shared.queue.lock().closed.get_or_insert_with(|| "it was closed".to_owned());
        self.shared.arrived.notify_all();
        self.segments.stop();
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok() || std::thread::panicking(), "a thread of the raw log panicked");
        }
    }
}

struct Writer {
    shared: Arc<Shared>,
    segments: Arc<Segments>,
    deliver: Option<Box<dyn Fn(Delivery) + Send>>,
}

/// Where the next frame goes.
struct End {
    segment: Segment,
    serial: u64,
    offset: u64,
}

impl Writer {
    fn serve(self) {
        if let Err(error) = self.write_until_closed() {
            // Calls that wait are dropped with the queue, which their callers see.
            let mut queue = self.shared.queue.lock();
            queue.closed = Some(error.to_string());
            queue.calls.clear();
        }
    }

    fn write_until_closed(&self) -> Result<(), Failure> {
        let mut end = End { segment: self.segments.exchange(None)?, serial: 1, offset: 0 };
        while let Some(mut waiting) = self.take() {
            while !waiting.is_empty() {
                let mut bytes = 0;
                let fits = waiting.iter().take_while(|call| {
                    bytes += call.records.bytes().len();
                    bytes <= GROUP_BYTES
                });
                let rest = waiting.split_off(fits.count().max(1));
                end = self.write(end, std::mem::replace(&mut waiting, rest))?;
            }
        }
        Ok(())
    }

    /// Everything that waits; waits for a first call. `None` when closed.
    fn take(&self) -> Option<Vec<Call>> {
        let mut queue = self.shared.queue.lock();
        while queue.calls.is_empty() {
            if queue.closed.is_some() {
                return None;
            }
            self.shared.arrived.wait(&mut queue);
        }
        Some(std::mem::take(&mut queue.calls))
    }

    fn write(&self, mut end: End, group: Vec<Call>) -> Result<End, Failure> {
        let body: usize = group.iter().map(|call| call.records.bytes().len()).sum();
        let len = (FRAME_HEAD + body) as u64;
        if end.offset + len > SEGMENT_BYTES {
            let segment = self.segments.exchange(Some(end.segment))?;
            end = End { segment, serial: end.serial + 1, offset: 0 };
        }
        let frame = frame(end.serial, body, &group)?;
        end.segment.file.write_all_at(&frame, end.offset)?;
        end.segment.file.sync_data()?;
        self.answer(Bytes::from(frame), &end, group);
        end.offset += len;
        self.shared.frames.fetch_add(1, Ordering::Relaxed);
        self.shared.bytes.fetch_add(len, Ordering::Relaxed);
        Ok(end)
    }

    /// Answers the calls of a frame that was written at this end.
    fn answer(&self, frame: Bytes, end: &End, group: Vec<Call>) {
        let mut at = FRAME_HEAD;
        for call in group {
            let records = at..at + call.records.bytes().len();
            let place = Place { file: Arc::clone(&end.segment.file), offset: end.offset + at as u64 };
            at = records.end;
            if let (Some(deliver), RawRecords::Events { shard, .. }) = (&self.deliver, &call.records) {
                deliver(Delivery { shard: *shard, bytes: frame.slice(records), place: place.clone() });
            }
            // A producer that went away at the end of a round does not want its answer.
            let _gone = call.answer.send(place);
        }
    }
}

fn frame(serial: u64, body: usize, group: &[Call]) -> Result<Vec<u8>, Failure> {
    let mut frame = Vec::with_capacity(FRAME_HEAD + body);
    frame.extend_from_slice(&u32::try_from(body)?.to_le_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&serial.to_le_bytes());
    group.iter().for_each(|call| frame.extend_from_slice(call.records.bytes()));
    let checksum = crc32fast::hash(&frame[8..]);
    frame[4..8].copy_from_slice(&checksum.to_le_bytes());
    Ok(frame)
}
