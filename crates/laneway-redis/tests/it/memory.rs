//! What lanes cost a server that have nothing to do, and that retention gives everything back.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::{Define, Trim};
use laneway_core::{ManualClock, Store, StreamSettings};
use laneway_redis::{RedisOptions, RedisStore};

use crate::life::{append_from, options, shard_of};
use crate::server::Server;

const LANES: usize = 20_000;
const BATCH: usize = 1_000;
/// `docs/operating/redis.md` promises it for keys of up to 20 bytes.
const BYTES_MAX: f64 = 260.0;

fn used(server: &Server) -> f64 {
    let said: String = server.command(&["INFO", "memory"]);
    let used = said.lines().find_map(|line| line.strip_prefix("used_memory_dataset:"));
    used.and_then(|used| used.trim().parse().ok()).expect("INFO tells it")
}

#[tokio::test]
async fn an_idle_lane_costs_little_and_retention_frees_it() {
    let (server, clock) = (Server::start(&["--appendonly", "no"]), ManualClock::default());
    let options = RedisOptions { clock: Some(Arc::new(clock.clone())), ..options(&server) };
    let store = RedisStore::open(options).await.unwrap();
    let hour = Duration::from_secs(3_600);
    let settings = StreamSettings {
        partitions: 1,
        keep: Duration::ZERO,
        forget_lanes_after: Some(hour),
        ..StreamSettings::default()
    };
    let define = Define::Stream { name: "orders".to_owned(), expect: None, settings };
    let orders = store.define(define).await.unwrap().stream.unwrap();
    let trim = async || store.trim(Trim { shard: shard_of(&orders) }).await.unwrap();
    let before = used(&server);
    let per_lane = || (used(&server) - before) / LANES as f64;
    for first in (0..LANES).step_by(BATCH) {
        store.append(append_from(&store, &orders, first, BATCH)).await.unwrap();
    }
    let full = per_lane();
    trim().await;
    let idle = per_lane();
    clock.advance(2 * hour);
    while trim().await.rows > 0 {}
    let forgotten = per_lane();
    println!(
        "bytes per lane: {full:.0} with an event of 100 bytes, {idle:.0} idle, {forgotten:.1} forgotten"
    );
    assert!(
        idle <= BYTES_MAX && idle < full - 100.0,
        "{idle:.0} of {full:.0} bytes are left when the event is gone"
    );
    assert!(forgotten < 10.0, "{forgotten:.1} bytes are left of a lane that is forgotten");
}
