//! Many connections that each ask, wait for the answer, and ask again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::runtime::Runtime;

use crate::http::{Answer, Connection};
use crate::measured::{Measured, Phase, Stopwatch, Times, window_of_other};
use crate::{Failure, seam};

/// What is asked, over and over.
pub(super) struct Asking {
    /// The requests of each connection, in turn.
    pub(super) requests: Vec<Vec<Vec<u8>>>,
    /// Events of one request.
    pub(super) per_call: usize,
    /// Whether an answer is what it must be.
    pub(super) is_right: fn(&Answer<'_>) -> bool,
}

/// Asks one server for one window.
pub(super) fn round(
    runtime: &Runtime,
    address: SocketAddr,
    cpu_seconds: impl Fn() -> Result<f64, Failure>,
    asking: &Arc<Asking>,
    times: Times,
) -> Result<Measured, Failure> {
    runtime.block_on(async {
        let (phase, finished) = (Arc::<Phase>::default(), Arc::<AtomicU64>::default());
        let mut tasks = Vec::new();
        for number in 0..asking.requests.len() {
            let connection = Connection::open(address).await?;
            let (asking, phase, finished) = (Arc::clone(asking), Arc::clone(&phase), Arc::clone(&finished));
            tasks.push(seam::spawn(async move { ask(connection, &asking, number, &phase, &finished).await }));
        }
        let mut measured = window_of_other(&phase, times, cpu_seconds, &finished).await?;
        for task in tasks {
            measured.calls.extend(task.await??);
        }
        Ok(measured)
    })
}

async fn ask(
    mut connection: Connection,
    asking: &Asking,
    number: usize,
    phase: &Phase,
    finished: &AtomicU64,
) -> Result<Vec<u32>, Failure> {
    let mut stopwatch = Stopwatch::default();
    let mut requests = asking.requests[number].iter().cycle();
    while !phase.is_over() {
        let request = requests.next().ok_or("a connection has nothing to ask")?;
        let begun = seam::now();
        let answer = connection.call(request).await?;
        if !(asking.is_right)(&answer) {
            return Err(answer.unexpected());
        }
        stopwatch.note(phase, begun, finished, asking.per_call);
    }
    Ok(stopwatch.into_calls())
}
