//! The server used raw: pipelined XADD, and XREADGROUP with XACK.

use redis::aio::MultiplexedConnection;
use redis::{Client, Value};

use super::rows::{PER_CALL, WORKERS};
use crate::workload::{EVENT_BYTES, SHARDS};
use crate::{Failure, seam};

const GROUP: &str = "raw";
/// Entries of one read.
const READ: usize = 1_000;
/// Calls that do nothing.
const PINGS: usize = 2_000;

fn stream(shard: u32) -> String {
    format!("raw:{shard}")
}

async fn connection(url: &str) -> Result<MultiplexedConnection, Failure> {
    Ok(Client::open(url)?.get_multiplexed_async_connection().await?)
}

/// The microseconds of calls that do nothing, one after the other.
pub(super) async fn pings(url: &str) -> Result<Vec<u32>, Failure> {
    let mut connection = connection(url).await?;
    let mut calls = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let start = seam::now();
        redis::cmd("PING").query_async::<()>(&mut connection).await?;
        calls.push(u32::try_from(seam::now().duration_since(start).as_micros()).unwrap_or(u32::MAX));
    }
    Ok(calls)
}

/// Adds so many entries, in pipelines of as many as the store takes per call; answers the seconds.
pub(super) async fn append(url: &str, events: u64) -> Result<f64, Failure> {
    let start = seam::now();
    let calls = events / PER_CALL as u64 / u64::from(WORKERS);
    let workers: Vec<_> =
        (0..WORKERS).map(|worker| seam::spawn(add(url.to_owned(), worker, calls))).collect();
    for worker in workers {
        worker.await??;
    }
    Ok(seam::seconds_since(start))
}

async fn add(url: String, worker: u32, calls: u64) -> Result<(), Failure> {
    let mut connection = connection(&url).await?;
    let payload = vec![7u8; EVENT_BYTES];
    for call in 0..calls {
        let name = stream((call as u32 * WORKERS + worker) % SHARDS);
        let mut pipe = redis::pipe();
        for _ in 0..PER_CALL {
            pipe.cmd("XADD").arg(&name).arg("*").arg("e").arg(&payload).ignore();
        }
        pipe.query_async::<()>(&mut connection).await?;
    }
    Ok(())
}

/// Reads and acknowledges everything; answers how many there were, and the seconds.
pub(super) async fn drain(url: &str) -> Result<(u64, f64), Failure> {
    let mut connection = connection(url).await?;
    for shard in 0..SHARDS {
        let mut group = redis::cmd("XGROUP");
        group.arg("CREATE").arg(stream(shard)).arg(GROUP).arg(0).arg("MKSTREAM");
        group.query_async::<()>(&mut connection).await?;
    }
    let start = seam::now();
    let workers: Vec<_> = (0..WORKERS).map(|worker| seam::spawn(take(url.to_owned(), worker))).collect();
    let mut count = 0;
    for worker in workers {
        count += worker.await??;
    }
    Ok((count, seam::seconds_since(start)))
}

async fn take(url: String, worker: u32) -> Result<u64, Failure> {
    let mut connection = connection(&url).await?;
    let mut count = 0;
    for shard in (worker..SHARDS).step_by(WORKERS as usize) {
        let name = stream(shard);
        loop {
            let mut read = redis::cmd("XREADGROUP");
            read.arg("GROUP").arg(GROUP).arg("one").arg("COUNT").arg(READ).arg("STREAMS").arg(&name).arg(">");
            let found: Value = read.query_async(&mut connection).await?;
            let ids = ids(found)?;
            if ids.is_empty() {
                break;
            }
            count += ids.len() as u64;
            redis::cmd("XACK").arg(&name).arg(GROUP).arg(ids).query_async::<()>(&mut connection).await?;
        }
    }
    Ok(count)
}

/// The ids of the entries of one stream.
fn ids(found: Value) -> Result<Vec<Vec<u8>>, Failure> {
    type Read = Vec<(String, Vec<(Vec<u8>, Value)>)>;
    let read: Option<Read> = redis::from_redis_value(found)?;
    let entries = read.unwrap_or_default().into_iter().flat_map(|(_, entries)| entries);
    Ok(entries.map(|(id, _)| id).collect())
}

/// The processor time that the server's main thread has used, in microseconds, and the bytes of what it holds.
pub(super) async fn used(url: &str) -> Result<(f64, f64), Failure> {
    let info: String = redis::cmd("INFO").query_async(&mut connection(url).await?).await?;
    let fact = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let value = line.and_then(|value| value.trim().parse::<f64>().ok());
        value.ok_or_else(|| Failure::from(format!("INFO does not tell {name}")))
    };
    let seconds = fact("used_cpu_user_main_thread")? + fact("used_cpu_sys_main_thread")?;
    Ok((seconds * 1e6, fact("used_memory_dataset")?))
}
