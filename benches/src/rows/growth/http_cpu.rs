//! The CPU of the server per event at a low rate: 1,000 events a second come over HTTP and are run by an HTTP handler.
//!
//! The handler is the bare one of the rows over HTTP, in a process of its own. Its CPU per request at this rate is the
//! baseline: a machine that sleeps between events makes all of them dear.

use std::net::SocketAddr;
use std::time::Duration;

use super::figure::at_most;
use crate::context::{Context, progress};
use crate::http::{Bare, Connection, LanewayServer, event, post};
use crate::report::Row;
use crate::workload::{RESULT_BYTES, SHARDS};
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth low rate over HTTP";

const CPU_MAX_US: f64 = 200.0;
const STREAM: &str = "bench";
const KEYS: u32 = 10_000;
const CONNECTIONS: u32 = 10;
const PER_SECOND: u32 = 1_000;
const WITHIN: Duration = Duration::from_secs(30);
const CHECK_EVERY: Duration = Duration::from_millis(20);

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let length = context.length(3_000, 20_000);
    progress(&format!("{NAME}: {PER_SECOND} events/s for {length:?}"));
    let handler = Bare::start()?;
    let settings = format!(
        "[[stream]]\nname = \"{STREAM}\"\npartitions = {SHARDS}\n[[processor]]\nname = \"http\"\nstream = \"{STREAM}\"\nhttp = \
         \"http://{}/{RESULT_BYTES}\"\n",
        handler.address
    );
    let server = LanewayServer::start(&context.place.join(NAME), &settings)?;
    let sending = seam::sending_runtime()?;
    // Connections, caches and the handler's connections are there before it counts.
    sending.block_on(send(server.address, Duration::from_secs(1)))?;
    sending.block_on(until_run(&server))?;
    let (start, before, bare_before) = (seam::now(), server.cpu_seconds()?, handler.cpu_seconds()?);
    let events = sending.block_on(send(server.address, length))?;
    sending.block_on(until_run(&server))?;
    let (used, seconds) = (server.cpu_seconds()? - before, seam::seconds_since(start));
    let bare = handler.cpu_seconds()? - bare_before;
    drop(server);
    handler.end()?;
    context.place.clear(NAME)?;
    let note = format!(
        "{events} events in {seconds:.1} s over {CONNECTIONS} connections, run by an HTTP handler; CPU of the server alone"
    );
    let per_event = |seconds: f64| seconds * 1e6 / events as f64;
    Ok(vec![Row {
        baseline: Some("bare handler"),
        baseline_rate: Some(per_event(bare)),
        ..at_most(&format!("{NAME}, CPU"), per_event(used), "us per event", CPU_MAX_US, note)
    }])
}

/// Sends events at their rate for so long; answers how many.
async fn send(address: SocketAddr, length: Duration) -> Result<u64, Failure> {
    let senders: Vec<_> =
        (0..CONNECTIONS).map(|number| seam::spawn(send_on(address, number, length))).collect();
    let mut events = 0;
    for sender in senders {
        events += sender.await??;
    }
    Ok(events)
}

async fn send_on(address: SocketAddr, number: u32, length: Duration) -> Result<u64, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut rng = fastrand::Rng::with_seed(u64::from(number));
    let path = format!("/v1/streams/{STREAM}/events");
    let every = Duration::from_secs(1) * CONNECTIONS / PER_SECOND;
    // Not all connections at the same moment.
    seam::pause(every * number / CONNECTIONS).await;
    let (start, mut beats, mut events) = (seam::now(), seam::beats(every), 0);
    while seam::now().duration_since(start) < length {
        beats.tick().await;
        let key = rng.u32(..KEYS);
        let body = event(&mut rng, key);
        let answer = connection.call(&post(&path, &body)).await?;
        if answer.status != 201 {
            return Err(answer.unexpected());
        }
        events += 1;
    }
    Ok(events)
}

/// Waits until everything has run.
async fn until_run(server: &LanewayServer) -> Result<(), Failure> {
    let start = seam::now();
    loop {
        let lag = server.lag(STREAM).await?;
        if lag == 0 {
            return Ok(());
        }
        if seam::now().duration_since(start) > WITHIN {
            return Err(format!("{lag} events have not run after {WITHIN:?}").into());
        }
        seam::pause(CHECK_EVERY).await;
    }
}
