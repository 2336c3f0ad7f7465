//! A replica that became master without the last that was answered: the loss is noticed, and what was given is never given again.

use laneway_core::store::{Commit, Define, Owner, Query, Receipt, Rows, Seize};
use laneway_core::{Bytes, CommitId, EventId, Incarnation, Nonce, Seat, StartAt, Store, StoreError};
use laneway_redis::{RedisOptions, RedisStore};
use laneway_testkit::fault::{Proxy, Road};

use crate::life::{answered, append, append_from, options, shard_of, stream};
use crate::server::Server;

#[tokio::test]
async fn a_tail_lost_in_a_failover_is_noticed() {
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let copying = Proxy::start(master.address()).unwrap();
    let replica = Server::start(&["--replicaof", &format!("127.0.0.1 {}", copying.address().port())]);
    let front = Proxy::start(master.address()).unwrap();
    let url = format!("redis://{}", front.address());
    let store = RedisStore::open(RedisOptions { url, ..options(&master) }).await.unwrap();
    let orders = stream(&store).await;
    let shard = shard_of(&orders);
    let register = Define::Processor {
        stream: orders.id,
        name: "charge".to_owned(),
        start: StartAt::Beginning,
        settings: Bytes::new(),
    };
    let processor = store.define(register).await.unwrap().stream.unwrap().processors[0].id;
    let seat = Seat { shard, processor };
    let old = store.about().incarnation;
    let seize = Seize { seat, incarnation: old, expect: None::<Owner>, nonce: Nonce(1), node: Bytes::new() };
    let fence = store.seize(seize).await.unwrap().progress.fence;
    store.append(append(&store, &orders, 3)).await.unwrap();
    replica.follows(&master).await;
    // From here on nothing reaches the replica.
    copying.set(Road::BlackHole);
    let lost = store.append(append_from(&store, &orders, 0, 2)).await.unwrap();
    let lost_ids: Vec<EventId> = lost.receipts.iter().map(|receipt| new(receipt).0).collect();
    assert_eq!(lost_ids, [EventId(4), EventId(5)]);

    let _: String = replica.command(&["REPLICAOF", "NO", "ONE"]);
    front.lead_to(replica.address());
    front.cut_open();

    let error = answered(async || store.append(append(&store, &orders, 1)).await).await.unwrap_err();
    assert!(matches!(error, StoreError::Adopt { stored, .. } if stored == old.0), "{error}");
    store.define(Define::Adopt { shard, stored: old }).await.unwrap();
    // Whoever adopts it a second time has read old news, and changes nothing.
    store.define(Define::Adopt { shard, stored: old }).await.unwrap();
    let appended = store.append(append_from(&store, &orders, 0, 1)).await.unwrap();
    let (id, prev, seq) = new(&appended.receipts[0]);
    assert_eq!((prev, seq), (Some(EventId(1)), 2), "from what survived");
    assert!(lost_ids.iter().all(|lost| *lost < id), "no id twice");
    let Rows::Counts(counts) = store.query(Query::Counts(shard)).await.unwrap() else { panic!("counts") };
    assert_eq!(counts.adoptions, 1, "an alert is counted");
    let Rows::Seats(info, _) = store.query(Query::Seats(shard)).await.unwrap() else { panic!("seats") };
    assert_eq!(info.gaps, [(EventId(4), EventId(id.0 - 1))], "what may have been lost");
    // The failover made the old holder current again; it is refused all the same.
    let mut commit = Commit::new(seat, fence, CommitId(1));
    commit.passed.insert(EventId(1));
    let error = store.commit(commit).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced { .. }), "{error}");
}

/// A second replica, which stopped following before the first one took over, knows nothing of that: the shard is adopted from
/// the very place where it was adopted before.
#[tokio::test]
async fn a_failover_behind_a_failover_gives_no_id_again() {
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let replica_of = format!("127.0.0.1 {}", master.port());
    let replicas = [(); 2].map(|()| Server::start(&["--replicaof", &replica_of]));
    let front = Proxy::start(master.address()).unwrap();
    let url = format!("redis://{}", front.address());
    let store = RedisStore::open(RedisOptions { url, ..options(&master) }).await.unwrap();
    let orders = stream(&store).await;
    store.append(append(&store, &orders, 3)).await.unwrap();
    for replica in &replicas {
        replica.follows(&master).await;
    }
    for replica in &replicas {
        let _: String = replica.command(&["REPLICAOF", "NO", "ONE"]);
    }
    let mut given = Vec::new();
    for replica in &replicas {
        front.lead_to(replica.address());
        front.cut_open();
        let error = answered(async || store.append(append(&store, &orders, 1)).await).await.unwrap_err();
        let StoreError::Adopt { shard, stored, .. } = error else { panic!("{error}") };
        store.define(Define::Adopt { shard, stored: Incarnation(stored) }).await.unwrap();
        let appended = store.append(append(&store, &orders, 1_000)).await.unwrap();
        given.push(appended.receipts.iter().map(|receipt| new(receipt).0).collect::<Vec<_>>());
    }
    assert!(given[0].iter().all(|id| !given[1].contains(id)), "{:?} and {:?}", given[0][0], given[1][0]);
}

fn new(receipt: &Receipt) -> (EventId, Option<EventId>, u64) {
    match receipt {
        Receipt::New { id, prev, seq, .. } => (*id, *prev, seq.map_or(0, |seq| seq.0)),
        other => panic!("{other:?}"),
    }
}
