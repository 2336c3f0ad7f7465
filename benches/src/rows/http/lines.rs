//! Appends over HTTP as streams of lines, each answered when it is durable.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::place::{KEYS, Place, STREAM};
use super::raw::{self, Calling};
use super::rounds::{About, in_turns};
use crate::context::Context;
use crate::http::{LineAnswers, Lines, event, lines_head};
use crate::measured::{Measured, Phase, Stopwatch, Times, window_of_other};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "http append lines";

const STREAMS: usize = 4;
/// Lines that are sent in one piece.
const PIECE: usize = 100;
/// Lines of one stream that are sent and not answered.
const AHEAD: usize = 1_000;
const EVENT_BYTES: usize = 131;
/// Bytes of one answer of the bare handler: as many as the server answers to a line.
const ANSWER_BYTES: usize = 120;

pub(super) fn run(context: &Context) -> Result<Row, Failure> {
    let place = Place::new(context, "")?;
    let pieces = Arc::new(pieces());
    let ours = lines_head(&format!("/v1/streams/{STREAM}/events"));
    let theirs = lines_head(&format!("/lines/{ANSWER_BYTES}"));
    let Place { server, bare, sending, .. } = &place;
    let appended: fn(&[u8]) -> bool = |line| line.windows(14).any(|text| text == br#""append":"new""#);
    let calling =
        Calling { callers: STREAMS, per_call: AHEAD / 2, event_bytes: EVENT_BYTES, end_bytes: None };
    let rounds = in_turns(
        context,
        NAME,
        |times| {
            let streams = Streams { address: server.address, head: &ours, is_right: appended };
            streams.round(sending, || server.cpu_seconds(), &pieces, times)
        },
        |times| {
            let streams =
                Streams { address: bare.address, head: &theirs, is_right: |line| line.starts_with(b"\"b") };
            streams.round(sending, || bare.cpu_seconds(), &pieces, times)
        },
        |times| raw::round(&place.runtime, &place.raw, calling, times),
    )?;
    let about = About { name: NAME, baseline: "bare axum", unit: "events/s", must: None };
    let note = format!(
        "{STREAMS} streams, {PIECE} lines a piece, at most {AHEAD} of a stream without an answer; times are of a piece; the \
         raw log has {} per call",
        AHEAD / 2
    );
    let row = rounds.row(about, server.resident_mib()?, &note);
    place.end(context)?;
    Ok(row)
}

fn pieces() -> Vec<Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(13);
    let numbers: Vec<u32> = (0..KEYS).collect();
    let lines =
        |numbers: &[u32]| numbers.iter().map(|number| event(&mut rng, *number) + "\n").collect::<String>();
    numbers.chunks(PIECE).map(lines).map(|lines| Lines::piece(&lines)).collect()
}

/// Streams to one server.
struct Streams<'a> {
    address: SocketAddr,
    head: &'a [u8],
    is_right: fn(&[u8]) -> bool,
}

/// What the two sides of a stream share.
struct Stream {
    /// When each piece was sent that is not answered.
    sent: Mutex<VecDeque<Instant>>,
    room: Semaphore,
    phase: Arc<Phase>,
}

impl Streams<'_> {
    fn round(
        &self,
        runtime: &Runtime,
        cpu_seconds: impl Fn() -> Result<f64, Failure>,
        pieces: &Arc<Vec<Vec<u8>>>,
        times: Times,
    ) -> Result<Measured, Failure> {
        runtime.block_on(async {
            let (phase, finished) = (Arc::<Phase>::default(), Arc::<AtomicU64>::default());
            let (mut senders, mut readers) = (Vec::new(), Vec::new());
            for _ in 0..STREAMS {
                let (lines, answers) = Lines::open(self.address, self.head).await?;
                let (sent, room) = (Mutex::default(), Semaphore::new(AHEAD));
                let stream = Arc::new(Stream { sent, room, phase: Arc::clone(&phase) });
                senders.push(seam::spawn(send(lines, Arc::clone(&stream), Arc::clone(pieces))));
                readers.push(seam::spawn(read(answers, stream, self.is_right, Arc::clone(&finished))));
            }
            let mut measured = window_of_other(&phase, times, cpu_seconds, &finished).await?;
            for reader in readers {
                measured.calls.extend(reader.await??);
            }
            for sender in senders {
                drop(sender.await??);
            }
            Ok(measured)
        })
    }
}

/// Sends until the round is over. The connection is handed back: closed on this side, it would be taken for given up.
async fn send(mut lines: Lines, stream: Arc<Stream>, pieces: Arc<Vec<Vec<u8>>>) -> Result<Lines, Failure> {
    let mut next = pieces.iter().cycle();
    while !stream.phase.is_over() {
        let piece = next.next().ok_or("there is nothing to send")?;
        // A closed room means that the other side failed; it tells why.
        let Ok(permit) = stream.room.acquire_many(u32::try_from(PIECE)?).await else { return Ok(lines) };
        permit.forget();
        stream.sent.lock().push_back(seam::now());
        lines.send(piece).await?;
    }
    lines.end().await?;
    Ok(lines)
}

async fn read(
    answers: LineAnswers,
    stream: Arc<Stream>,
    is_right: fn(&[u8]) -> bool,
    finished: Arc<AtomicU64>,
) -> Result<Vec<u32>, Failure> {
    let outcome = read_to_the_end(answers, &stream, is_right, &finished).await;
    stream.room.close();
    outcome
}

async fn read_to_the_end(
    mut answers: LineAnswers,
    stream: &Stream,
    is_right: fn(&[u8]) -> bool,
    finished: &AtomicU64,
) -> Result<Vec<u32>, Failure> {
    let (mut stopwatch, mut of_piece) = (Stopwatch::default(), 0);
    while let Some(count) = answers.next(is_right).await? {
        of_piece += usize::try_from(count)?;
        while of_piece >= PIECE {
            of_piece -= PIECE;
            let begun = stream.sent.lock().pop_front().ok_or("more lines were answered than sent")?;
            stopwatch.note(&stream.phase, begun, finished, PIECE);
            stream.room.add_permits(PIECE);
        }
    }
    Ok(stopwatch.into_calls())
}
