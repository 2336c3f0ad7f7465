//! How long events wait from their append to their run. Each event carries its number, and the handler looks it up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use laneway_core::{Draft, Kind};
use laneway_engine::handler::{Handler, LaneAnswer, Run};
use parking_lot::Mutex;

use super::{Latencies, Stream, numbered_key};
use crate::{Failure, seam};

/// Bytes of an event.
const EVENT_BYTES: usize = 100;
/// How often to check whether everything has run.
const CHECK_EVERY: Duration = Duration::from_millis(1);

/// The events that are followed.
#[derive(Clone, Default)]
pub(crate) struct RunWaits(Arc<Mutex<Events>>);

#[derive(Default)]
struct Events {
    next: u64,
    /// When each event that has not run was sent, by its number.
    open: HashMap<u64, Instant>,
    /// Waits of those that have run, in microseconds.
    waits: Vec<u32>,
}

impl RunWaits {
    /// Ends the wait of every event that is run.
    pub(crate) fn handler(&self) -> Arc<dyn Handler> {
        let waits = self.clone();
        Arc::new(move |run: Run| {
            waits.note(&run);
            std::future::ready(run.lanes.iter().map(LaneAnswer::all_done).collect())
        })
    }

    /// Ends the wait of the events of a run. Events that are not followed are passed over.
    pub(crate) fn note(&self, run: &Run) {
        let mut events = self.0.lock();
        for event in run.lanes.iter().flat_map(|lane| &lane.events) {
            let Some(number) = event.data.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) else {
                continue;
            };
            if let Some(sent) = events.open.remove(&number) {
                events.waits.push(micros_since(sent));
            }
        }
    }

    /// Appends an event to a partition; its wait begins now.
    pub(crate) async fn send(&self, stream: &Stream, partition: u32) -> Result<(), Failure> {
        let draft = self.draft(u64::from(partition))?;
        stream.append(partition, vec![draft]).await.map(drop)
    }

    /// Sends so many events each second to partitions chosen by chance, whether earlier ones were answered or not.
    pub(crate) async fn send_at(
        &self,
        stream: &Stream,
        per_second: u32,
        length: Duration,
    ) -> Result<(), Failure> {
        let (start, mut rng) = (seam::now(), fastrand::Rng::with_seed(11));
        let mut beats = seam::beats(Duration::from_secs(1) / per_second);
        let mut sent = Vec::new();
        while seam::now().duration_since(start) < length {
            beats.tick().await;
            let (stream, waits, partition) = (stream.clone(), self.clone(), rng.u32(..stream.partitions()));
            sent.push(seam::spawn(async move { waits.send(&stream, partition).await }));
        }
        for sent in sent {
            sent.await??;
        }
        Ok(())
    }

    /// An event whose wait begins now.
    pub(crate) fn draft(&self, lane: u64) -> Result<Draft, Failure> {
        let number = {
            let mut events = self.0.lock();
            let number = events.next;
            events.next += 1;
            events.open.insert(number, seam::now());
            number
        };
        let mut data = vec![0; EVENT_BYTES];
        data[..8].copy_from_slice(&number.to_le_bytes());
        Ok(Draft::new(Some(numbered_key("quiet", lane)?), Kind::default(), Bytes::from(data)))
    }

    /// The waits of events that have run since they were taken last.
    pub(crate) fn take(&self) -> Latencies {
        Latencies::new(std::mem::take(&mut self.0.lock().waits))
    }

    /// How many events have not run.
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().open.len()
    }

    /// Waits until everything has run, for at most so long. What has not run by then has waited until now.
    pub(crate) async fn finish(&self, within: Duration) -> (Latencies, usize) {
        let start = seam::now();
        while !self.0.lock().open.is_empty() && seam::now().duration_since(start) < within {
            seam::pause(CHECK_EVERY).await;
        }
        let mut events = self.0.lock();
        let open: Vec<u32> = events.open.drain().map(|(_, sent)| micros_since(sent)).collect();
        let mut waits = std::mem::take(&mut events.waits);
        waits.extend(&open);
        (Latencies::new(waits), open.len())
    }
}

fn micros_since(then: Instant) -> u32 {
    u32::try_from(seam::now().duration_since(then).as_micros()).unwrap_or(u32::MAX)
}
