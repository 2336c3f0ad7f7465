//! Follows the events of a stream as they come (`text/event-stream`), over one partition or all of them.
//!
//! The id of every event carries the place in all partitions that are followed, so whoever comes back with the last one as
//! `Last-Event-ID` misses nothing and gets nothing twice. A task per follower reads and hands over piece by piece: it reads
//! on when a piece is taken, so a follower costs a bounded piece of memory, and one that takes nothing is dropped.
//!
//! Wake-ups are hints: every partition is looked at now and then without one.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use laneway::core::store::{Entry, Read, ReadFrom};
use laneway::core::{Event, Key, Shard, StoreError, StreamInfo, Topic};
use laneway::engine::observe::EventView;
use laneway::{EventId, Ref};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::code::Code;
use super::error::{Failure, Result};
use super::follow_place::Places;
use super::wire as convert;
use crate::node::Node;
use crate::seam;
use crate::telemetry;

/// Most followers of one node.
pub(crate) const FOLLOWERS_MAX: usize = 256;
/// Events, and bytes of them, of one piece.
const PIECE_EVENTS_MAX: usize = 100;
const PIECE_BYTES_MAX: usize = 256 << 10;
/// How long a follower may take nothing before it is dropped.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often every partition is looked at without a hint.
const LOOK_AFTER: Duration = Duration::from_secs(5);
/// When a browser comes back after a cut.
const RETRY_MS: u32 = 1_000;
const MEDIA_TYPE: &str = "text/event-stream";

/// Whether a caller wants to follow rather than a page.
pub(super) fn is_meant(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter();
    let mut types = accepts.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    types.any(|given| {
        let given = given.split(|byte| *byte == b';').next().unwrap_or_default();
        given.trim_ascii().eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
    })
}

/// What is followed.
pub(super) struct Wish {
    pub(super) places: Places,
    /// Only events of this lane.
    pub(super) key: Option<Key>,
    pub(super) heartbeat: Duration,
}

/// Begins to follow.
pub(super) fn answer(node: &Node, info: &Arc<StreamInfo>, wish: Wish) -> Result<Response> {
    let permit = node.follower().ok_or_else(|| {
        let detail = format!("{FOLLOWERS_MAX} followers are here, and no more are taken");
        Failure::new(Code::TooManyFollowers, detail)
    })?;
    let (pieces, taken) = mpsc::channel(1);
    let (last, reason) = oneshot::channel();
    let follower = Follower { node: node.clone(), info: Arc::clone(info), wish, pieces, _permit: permit };
    seam::spawn(async move {
        let words = follower.run().await;
        // A follower that has gone away does not ask why.
        let _gone = last.send(words);
    });
    let head = Bytes::from(format!("retry: {RETRY_MS}\n\n"));
    let pieces = futures::stream::unfold(taken, |mut taken| async { Some((taken.recv().await?, taken)) });
    let end = futures::stream::once(async { reason.await.unwrap_or_default() });
    let events = futures::stream::iter([head]).chain(pieces).chain(end);
    let headers = [(CONTENT_TYPE, MEDIA_TYPE), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(events.map(Ok::<_, std::convert::Infallible>))).into_response())
}

struct Follower {
    node: Node,
    info: Arc<StreamInfo>,
    wish: Wish,
    pieces: mpsc::Sender<Bytes>,
    /// Its place among all followers.
    _permit: OwnedSemaphorePermit,
}

/// Why a follower gets nothing more: the last words for it.
type End = Bytes;

impl Follower {
    /// Follows until the end, and answers the last words.
    async fn run(mut self) -> Bytes {
        let node = self.node.clone();
        let stopped = tokio::select! {
            Err(end) = self.follow() => return end,
            () = node.stopping() => Failure::new(Code::ShuttingDown, "the server is about to end: come back with the last id"),
        };
        ended(&stopped)
    }

    async fn follow(&mut self) -> std::result::Result<std::convert::Infallible, End> {
        let wakeups = Arc::clone(&self.node.engine().stores().wakeups);
        let wait = |at: usize, shard: Shard, seen: u64| {
            let wakeups = Arc::clone(&wakeups);
            async move { (at, wakeups.wait(Topic::Shard(shard), seen).await) }
        };
        let shards: Vec<Shard> =
            self.wish.places.partitions().map(|partition| self.info.shard(partition)).collect();
        let mut hints: FuturesUnordered<_> =
            shards.iter().enumerate().map(|(at, shard)| wait(at, *shard, 0)).collect();
        // Counts from the last word, however often it is looked in between.
        let mut silent = Box::pin(seam::pass(self.wish.heartbeat));
        loop {
            for (at, shard) in shards.iter().enumerate() {
                if self.read_on(at, *shard).await? {
                    silent = Box::pin(seam::pass(self.wish.heartbeat));
                }
            }
            // Everything that is there was read: wait for more.
            let hinted = loop {
                tokio::select! {
                    () = &mut silent => {
                        self.hand_over(id_line(&self.wish.places, ": nothing new\n")).await?;
                        silent = Box::pin(seam::pass(self.wish.heartbeat));
                    }
                    Some(hinted) = hints.next() => break hinted,
                    () = seam::pass(LOOK_AFTER) => break (usize::MAX, Ok(0)),
                }
            };
            // One that fails is not asked again: the partition is looked at now and then.
            if let (at, Ok(point)) = hinted
                && let Some(shard) = shards.get(at)
            {
                hints.push(wait(at, *shard, point));
            }
        }
    }

    /// Hands over what one partition has, to its end. Answers whether there was anything.
    async fn read_on(&mut self, at: usize, shard: Shard) -> std::result::Result<bool, End> {
        let mut said = false;
        loop {
            let after = self.wish.places.after(at);
            let from = ReadFrom::After(after);
            let (limit, bytes) = (PIECE_EVENTS_MAX, PIECE_BYTES_MAX);
            let read = Read { shard, from, limit, bytes, processor: None, states: false };
            let page = match self.node.engine().stores().store.read(read).await {
                Ok(page) => page,
                Err(StoreError::Trimmed { first, .. }) => {
                    self.wish.places.advance(at, EventId(first.0.saturating_sub(1)));
                    let told = json!({"partition": shard.partition.0, "after": after.0, "first": first.0});
                    let words = id_line(&self.wish.places, &format!("event: trimmed\ndata: {told}\n"));
                    self.hand_over(words).await?;
                    said = true;
                    continue;
                }
                Err(StoreError::NotFound { .. }) => {
                    let detail = format!("stream {:?} was removed", self.info.name);
                    return Err(ended(&Failure::new(Code::StreamNotFound, detail)));
                }
                Err(error) => return Err(ended(&Failure::from(error))),
            };
            let Some(last) = page.entries.last().map(Entry::id) else { return Ok(said) };
            let before = self.wish.places.clone();
            let mut piece = String::new();
            for entry in page.entries {
                self.wish.places.advance(at, entry.id());
                // Newest wins: what is not newest any more is not told.
                if let Entry::Event(event) = entry
                    && self.wish.key.as_ref().is_none_or(|key| event.key.as_ref() == Some(key))
                {
                    piece.push_str(&self.told(shard, event));
                }
            }
            if !piece.is_empty() {
                deliver(&self.pieces, Bytes::from(piece), PATIENCE, &before).await?;
                said = true;
            }
            if last >= page.head {
                return Ok(said);
            }
        }
    }

    fn told(&self, shard: Shard, event: Event) -> String {
        let reference = Ref { stream: self.info.name.clone(), partition: shard.partition, id: event.id };
        let view = EventView { reference, event, statuses: Vec::new() };
        let json = serde_json::to_string(&convert::event(&view)).expect("answers are plain data");
        event_text(&self.wish.places.to_string(), &json)
    }

    /// Hands over what is no event, so that nobody misses it.
    async fn hand_over(&self, piece: Bytes) -> std::result::Result<(), End> {
        deliver(&self.pieces, piece, PATIENCE, &self.wish.places).await
    }
}

/// Hands a piece over, or says why the follower is dropped, and where it comes back to miss nothing: `before` the piece.
async fn deliver(
    pieces: &mpsc::Sender<Bytes>,
    piece: Bytes,
    patience: Duration,
    before: &Places,
) -> std::result::Result<(), End> {
    match seam::within(patience, pieces.send(piece)).await {
        Some(Ok(())) => Ok(()),
        // It has gone away.
        Some(Err(_)) => Err(Bytes::new()),
        None => {
            tracing::warn!("a follower took nothing for {patience:?} and was dropped");
            telemetry::follower_dropped();
            let reason = format!("nothing was taken for {patience:?}");
            let told = json!({"reason": reason, "at": before.to_string()});
            Err(Bytes::from(format!("event: dropped\ndata: {told}\n\n")))
        }
    }
}

/// The last words of a follower that can come back.
fn ended(why: &Failure) -> Bytes {
    let problem = serde_json::to_string(&why.problem()).expect("answers are plain data");
    Bytes::from(format!("event: end\ndata: {problem}\n\n"))
}

/// Something that is no event of the stream, with the place it is true for.
fn id_line(places: &Places, words: &str) -> Bytes {
    Bytes::from(format!("{words}id: {places}\n\n"))
}

/// One event; payloads are JSON as it was sent, so they may have line breaks between their tokens.
fn event_text(id: &str, json: &str) -> String {
    let mut text = format!("id: {id}\n");
    for line in json.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use laneway::Partition;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_follower_that_takes_nothing_is_dropped_with_a_reason() {
        let places = Places::at([(Partition(2), EventId(7))]);
        let (pieces, mut taken) = mpsc::channel(1);
        let hand_over = || deliver(&pieces, Bytes::from_static(b"x"), PATIENCE, &places);
        assert_eq!(hand_over().await, Ok(()));
        let words = String::from_utf8(hand_over().await.unwrap_err().to_vec()).unwrap();
        let expected = "event: dropped\ndata: {\"at\":\"2:7\",\"reason\":\"nothing was taken for 30s\"}\n\n";
        assert_eq!(words, expected);
        // One that reads gets on.
        assert!(taken.recv().await.is_some());
        assert_eq!(hand_over().await, Ok(()));
        drop(taken);
        assert_eq!(hand_over().await, Err(Bytes::new()));
    }

    #[test]
    fn line_breaks_of_a_payload_stay_inside_its_event() {
        assert_eq!(event_text("0:1", "{\"a\":\n1}"), "id: 0:1\ndata: {\"a\":\ndata: 1}\n\n");
    }

    #[test]
    fn who_wants_to_follow_says_so() {
        let accepts =
            |value: &'static str| is_meant(&HeaderMap::from_iter([(ACCEPT, value.parse().unwrap())]));
        assert!(accepts("text/event-stream") && accepts("application/json, Text/Event-Stream; q=0.5"));
        assert!(!accepts("*/*") && !is_meant(&HeaderMap::new()));
    }
}
