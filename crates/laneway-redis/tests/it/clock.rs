//! A server whose wall clock jumps, by libfaketime: no process that uses it deletes anything, runs anything early or loses its
//! lease for it.

use std::path::Path;
use std::time::Duration;

use laneway_core::store::{Promote, Trim};
use laneway_core::{Delay, DelayMode, Documents, Draft, StartAfter, Store, Timestamp};
use laneway_redis::{RedisOptions, RedisStore};
use laneway_testkit::servers::libfaketime;

use crate::conformance::next_number;
use crate::life::{append, shard_of, stream};
use crate::server::Server;

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

/// Sets the clock to so far from now, in one step: the file is read at any moment.
fn set(folder: &Path, offset: &str) {
    std::fs::write(folder.join("next"), offset).expect("a folder to write to");
    std::fs::rename(folder.join("next"), folder.join("offset")).expect("the same folder");
}

async fn clock(store: &RedisStore) -> Timestamp {
    store.clock().await.expect("a server that answers").expect("a store with a clock")
}

#[tokio::test]
async fn jumps_of_the_servers_clock_move_nothing_on_any_node() {
    // Debian's Redis uses jemalloc, which reads the clock while it initialises. libfaketime then allocates, and both
    // deadlock. Preloading another allocator avoids that.
    let library = libfaketime();
    let allocator = library.ancestors().nth(2).expect("a folder of libraries").join("libc_malloc_debug.so.0");
    let preloaded = format!("{}:{}", allocator.display(), library.display());
    let folder = tempfile::tempdir().unwrap();
    set(folder.path(), "+0");
    let offset = folder.path().join("offset");
    let variables = [
        ("LD_PRELOAD", &*preloaded),
        ("FAKETIME_TIMESTAMP_FILE", offset.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    let server = Server::start_with(&[], &variables);
    let namespace = format!("clock-{}", next_number());
    let options = || RedisOptions { namespace: namespace.clone(), ..RedisOptions::new(server.url()) };
    let first = RedisStore::open(options()).await.unwrap();
    let nodes = [
        first.clone(),
        RedisStore::open(options()).await.unwrap(),
        RedisStore::open(options()).await.unwrap(),
    ];
    let orders = stream(&first).await;
    let shard = shard_of(&orders);
    let until = [StartAfter::Delay(HOUR), StartAfter::At(clock(&first).await.after(HOUR))];
    for until in until {
        let mut later = append(&first, &orders, 1);
        let delay = Some(Delay { until, mode: DelayMode::Join });
        later.drafts = later.drafts.into_iter().map(|draft| Draft { delay, ..draft }).collect();
        first.append(later).await.unwrap();
    }
    first.append(append(&first, &orders, 3)).await.unwrap();
    for (jumps, jump) in (1..).zip(["+365d", "+0", "-365d", "+0"]) {
        let before = clock(&first).await;
        set(folder.path(), jump);
        for node in &nodes {
            let trimmed = node.trim(Trim { shard }).await.unwrap();
            assert_eq!((trimmed.events, trimmed.rows), (0, 0), "{jump}");
            let promoted = node.promote(Promote { shard, limit: 10 }).await.unwrap();
            assert_eq!(promoted.moved, 0, "{jump}");
            assert!(promoted.next.unwrap() > HOUR - MINUTE, "{jump}: {promoted:?}");
            let after = clock(node).await;
            assert!(before <= after && after < before.after(MINUTE), "{jump}: {before:?}, then {after:?}");
            let report = node.clock_report().unwrap();
            assert_eq!((report.jumps, report.is_settled()), (jumps, false), "{jump}");
        }
    }
    // One that starts now learns what the others have found.
    let late = RedisStore::open(options()).await.unwrap();
    assert_eq!(late.promote(Promote { shard, limit: 10 }).await.unwrap().moved, 0);
    assert!(!late.clock_report().unwrap().is_settled());
}
