//! A backlog that workers drain over HTTP: claim, settle, and claim again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::place::{KEYS, Place, STREAM};
use super::rounds::{About, in_turns};
use crate::context::Context;
use crate::http::{Connection, post};
use crate::measured::{Counts, Measured};
use crate::report::Row;
use crate::rows::engine::raw_drain;
use crate::{Failure, cpu, seam};

pub(super) const NAME: &str = "http pull drain";

const PROCESSOR: &str = "pull";
const WORKERS: usize = 4;
/// Lanes that a worker asks for, with one event each.
const LANES: usize = 100;
/// Bytes of what the server tells of one claim, and of one settlement.
const CLAIM_BYTES: usize = 480;
const SETTLED_BYTES: usize = 130;
/// Bytes that the raw log writes for an event that is done: its id.
pub(super) const END_BYTES: usize = 8;

pub(super) fn run(context: &Context) -> Result<Row, Failure> {
    let settings = format!(
        "[[processor]]\nname = \"{PROCESSOR}\"\nstream = \"{STREAM}\"\npull = true\nconcurrency = 1000\n"
    );
    let place = Place::new(context, &settings)?;
    let events = context.choose(20_000, 200_000);
    let Place { server, bare, .. } = &place;
    let mut raw_rounds = 0;
    let rounds = in_turns(
        context,
        NAME,
        |_| {
            place.load(events)?;
            server.wait_until_quiet()?;
            let ours =
                [format!("/v1/processors/{PROCESSOR}/claim"), format!("/v1/processors/{PROCESSOR}/settle")];
            drain(&place, server.address, || server.cpu_seconds(), &ours, events)
        },
        |_| {
            let theirs = [format!("/{}", LANES * CLAIM_BYTES), format!("/{}", LANES * SETTLED_BYTES)];
            drain(&place, bare.address, || bare.cpu_seconds(), &theirs, events)
        },
        |_| {
            raw_rounds += 1;
            let folder = place.folder.join(format!("raw drain {raw_rounds}"));
            raw_drain(&place.runtime, &folder, u64::from(events), END_BYTES)
        },
    )?;
    let about = About { name: NAME, baseline: "bare axum", unit: "events/s", must: None };
    let note = format!(
        "{events} events of {KEYS} keys; {WORKERS} workers, {LANES} lanes a claim, one event each; times are of a claim and \
         its settlement; the bare handler is asked as often and answers as much, the raw log is scanned and {END_BYTES} bytes \
         an event are written"
    );
    let row = rounds.row(about, server.resident_mib()?, &note);
    place.end(context)?;
    Ok(row)
}

/// Asks until everything is settled: for claims, then what became of them.
fn drain(
    place: &Place,
    address: SocketAddr,
    cpu_seconds: impl Fn() -> Result<f64, Failure>,
    [claim, settle]: &[String; 2],
    events: u32,
) -> Result<Measured, Failure> {
    place.sending.block_on(async {
        let settled = Arc::<AtomicU64>::default();
        let (start, own_before, cpu_before) = (seam::now(), cpu::seconds(), cpu_seconds()?);
        let mut workers = Vec::new();
        for _ in 0..WORKERS {
            let worker = Worker {
                connection: Connection::open(address).await?,
                claim: post(claim, &format!(r#"{{"max_lanes":{LANES},"lease":"60s"}}"#)),
                settle: settle.clone(),
                settled: Arc::clone(&settled),
                events: u64::from(events),
            };
            workers.push(seam::spawn(worker.work()));
        }
        let (mut calls, mut end) = (Vec::new(), start);
        for worker in workers {
            let worked = worker.await??;
            calls.extend(worked.calls);
            // Whoever found nothing any more waited a while for that; what counts is the last settlement.
            end = end.max(worked.end);
        }
        let counts = Counts { events: settled.load(Ordering::Relaxed), ..Counts::default() };
        Ok(Measured {
            seconds: end.duration_since(start).as_secs_f64(),
            cpu_seconds: cpu_seconds()? - cpu_before,
            sender_cpu_seconds: cpu::seconds() - own_before,
            counts,
            calls,
        })
    })
}

struct Worker {
    connection: Connection,
    claim: Vec<u8>,
    settle: String,
    settled: Arc<AtomicU64>,
    events: u64,
}

/// What a worker did.
struct Worked {
    /// How long it took to claim and settle, in microseconds.
    calls: Vec<u32>,
    /// When it had settled its last claims.
    end: Instant,
}

impl Worker {
    async fn work(mut self) -> Result<Worked, Failure> {
        let mut worked = Worked { calls: Vec::new(), end: seam::now() };
        while self.settled.load(Ordering::Relaxed) < self.events {
            let begun = seam::now();
            let answer = self.connection.call(&self.claim).await?;
            let settlements = match answer.status {
                200 => settlements(answer.body)?,
                // The bare handler has no claims to tell: as many as there would be are settled.
                201 => vec![settlement("no-claim-but-as-long-as-one-of-the-server-is-in-its-base64"); LANES],
                _ => return Err(answer.unexpected()),
            };
            if settlements.is_empty() {
                continue;
            }
            let body = format!(r#"{{"settlements":[{}]}}"#, settlements.join(","));
            let answer = self.connection.call(&post(&self.settle, &body)).await?;
            let accepted = answer.body.windows(15).filter(|text| text == br#""accepted":true"#).count();
            if answer.status != 201 && (answer.status != 200 || accepted != settlements.len()) {
                return Err(answer.unexpected());
            }
            self.settled.fetch_add(settlements.len() as u64, Ordering::Relaxed);
            worked.end = seam::now();
            worked.calls.push(u32::try_from(worked.end.duration_since(begun).as_micros())?);
        }
        Ok(worked)
    }
}

fn settlement(claim: &str) -> String {
    format!(r#"{{"claim":"{claim}","outcome":"done"}}"#)
}

fn settlements(body: &[u8]) -> Result<Vec<String>, Failure> {
    let marker = r#"{"claim":""#;
    let names = std::str::from_utf8(body)?.split(marker).skip(1).filter_map(|rest| rest.split('"').next());
    Ok(names.map(settlement).collect())
}
