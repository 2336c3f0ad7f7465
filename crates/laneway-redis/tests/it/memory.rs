//! What lanes cost a server that have nothing to do, and that retention gives everything else back.

use laneway_core::store::{Define, Trim};
use laneway_core::{Store, StreamSettings};
use laneway_redis::RedisStore;

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
async fn an_idle_lane_costs_little_and_retention_frees_the_rest() {
    let server = Server::start(&["--appendonly", "no"]);
    let store = RedisStore::open(options(&server)).await.unwrap();
    let settings =
        StreamSettings { partitions: 1, keep: std::time::Duration::ZERO, ..StreamSettings::default() };
    let define = Define::Stream { name: "orders".to_owned(), expect: None, settings };
    let orders = store.define(define).await.unwrap().stream.unwrap();
    let before = used(&server);
    for first in (0..LANES).step_by(BATCH) {
        store.append(append_from(&store, &orders, first, BATCH)).await.unwrap();
    }
    let full = used(&server);
    store.trim(Trim { shard: shard_of(&orders) }).await.unwrap();
    let per_lane = (used(&server) - before) / LANES as f64;
    println!(
        "{per_lane:.0} bytes per idle lane, {:.0} with its event of 100 bytes",
        (full - before) / LANES as f64
    );
    assert!(per_lane <= BYTES_MAX, "{per_lane:.0} bytes");
    assert!(used(&server) < full - 100.0 * LANES as f64, "the events are gone");
}
