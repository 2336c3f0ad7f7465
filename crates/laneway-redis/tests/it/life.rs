//! What only a real server shows: how safe it is, that it may come back with less, who may use it, what it costs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::{Append, Define, Owner, Query, Read, ReadFrom, Receipt, Rows, Seize, Trim};
use laneway_core::store::{Commit, Origin, Source};
use laneway_core::{
    Bytes, CommitId, Documents, Draft, Durability, EventId, Incarnation, Key, Kind, ManualClock, Nonce,
    Partition, Seat, Shard, StartAt, Store, StoreError, StreamInfo, StreamSettings, Term,
};
use laneway_redis::{RedisOptions, RedisStore};

use crate::conformance::next_number;
use crate::server::{SHARED, Server};

pub(crate) fn options(server: &Server) -> RedisOptions {
    RedisOptions { namespace: format!("life-{}", next_number()), ..RedisOptions::new(server.url()) }
}

pub(crate) async fn stream(store: &RedisStore) -> StreamInfo {
    let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
    let define = Define::Stream { name: "orders".to_owned(), expect: None, settings };
    store.define(define).await.expect("a new stream").stream.expect("it is there")
}

pub(crate) fn shard_of(stream: &StreamInfo) -> Shard {
    stream.shard(Partition(0))
}

/// An append of so many events in as many lanes.
pub(crate) fn append(store: &RedisStore, stream: &StreamInfo, count: usize) -> Append {
    append_from(store, stream, 0, count)
}

/// The same, from the lane of this number on.
pub(crate) fn append_from(store: &RedisStore, stream: &StreamInfo, first: usize, count: usize) -> Append {
    let draft = |number: usize| {
        let key = Key::new(format!("customer-{number}")).expect("a short key");
        Draft::new(Some(key), Kind::new("paid").expect("a short type"), Bytes::from(vec![b'x'; 100]))
    };
    Append {
        shard: shard_of(stream),
        incarnation: store.about().incarnation,
        layout: stream.layout,
        origin: None,
        drafts: (first..first + count).map(draft).collect(),
        object: None,
    }
}

/// Repeats a call for as long as it has no answer.
pub(crate) async fn answered<T>(
    mut call: impl AsyncFnMut() -> laneway_core::Result<T>,
) -> laneway_core::Result<T> {
    loop {
        match call().await {
            Err(StoreError::Unknown { .. }) => {}
            answer => return answer,
        }
    }
}

#[tokio::test]
async fn receipts_say_what_the_server_really_does() {
    for (settings, expected) in [
        (&["--appendfsync", "always"][..], Durability::Synced),
        (&["--appendfsync", "everysec"], Durability::Buffered),
        (&["--appendonly", "no"], Durability::Memory),
    ] {
        let server = Server::start(settings);
        let store = RedisStore::open(options(&server)).await.unwrap();
        let stream = stream(&store).await;
        let appended = store.append(append(&store, &stream, 1)).await.unwrap();
        assert_eq!(appended.durability, expected, "{settings:?}");
        assert_eq!(store.about().capabilities.durability, expected);
    }
}

#[tokio::test]
async fn a_server_that_may_drop_events_is_refused() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru"]);
    let error = RedisStore::open(options(&server)).await.unwrap_err().to_string();
    assert!(error.starts_with("maxmemory-policy is allkeys-lru, must be noeviction"), "{error}");
}

/// These errors come from commands inside a script, wrapped in its own; nothing is damaged, and nothing was written.
#[tokio::test]
async fn what_the_server_refuses_for_now_is_neither_damage_nor_half_done() {
    let server = Server::start(&[]);
    let store = RedisStore::open(options(&server)).await.unwrap();
    let stream = stream(&store).await;
    let again = || store.append(append(&store, &stream, 2));
    again().await.unwrap();

    server.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let refused = again().await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Down { reason } if reason.contains("too few replicas")),
        "{refused}"
    );
    server.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "0"]);

    server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = again().await.unwrap_err();
    assert!(matches!(&refused, StoreError::Full(_)), "{refused}");
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);

    // As after a failover: the connection leads to what is a replica by now.
    server.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    let refused = again().await.unwrap_err();
    assert!(matches!(&refused, StoreError::Unknown { .. }), "{refused}");
    server.command::<()>(&["REPLICAOF", "NO", "ONE"]);

    let appended = answered(async || again().await).await.unwrap();
    let Receipt::New { id, .. } = appended.receipts[0] else { panic!("{appended:?}") };
    assert_eq!(id, EventId(3), "two before, and nothing in between");
}

#[tokio::test]
async fn a_replica_is_refused_and_waited_for_when_asked() {
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = Server::start(&["--replicaof", &format!("127.0.0.1 {}", master.port())]);
    let error = RedisStore::open(options(&replica)).await.unwrap_err().to_string();
    assert!(error.starts_with("role is slave, must be master"), "{error}");

    replica.follows(&master).await;
    let one = RedisStore::open(RedisOptions { wait_replicas: 1, ..options(&master) }).await.unwrap();
    let orders = stream(&one).await;
    let appended = one.append(append(&one, &orders, 1)).await.unwrap();
    assert_eq!(appended.durability, Durability::Replicated(1));

    let two = RedisOptions { wait_replicas: 2, ..options(&master) };
    let error = RedisStore::open(two).await.unwrap_err().to_string();
    assert!(error.starts_with("wait_replicas is 2, must be at most 1"), "{error}");

    // A replica that stands still does not answer, so what was written counts as not answered; it comes once by its id.
    let answer_within = Duration::from_millis(200);
    let patient = RedisOptions { wait_replicas: 1, answer_within, ..options(&master) };
    let patient = RedisStore::open(patient).await.unwrap();
    let orders = stream(&patient).await;
    let mut call = append(&patient, &orders, 1);
    call.origin = Some(Origin { source: Source::Named(Bytes::from("input/1")), term: Term(1) });
    call.drafts[0].origin_seq = Some(1);
    replica.signal("STOP");
    let error = patient.append(call.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
    replica.signal("CONT");
    let again = answered(async || patient.append(call.clone()).await).await.unwrap();
    assert!(matches!(again.receipts[..], [Receipt::Duplicate { .. }]), "{again:?}");
}

#[tokio::test]
async fn a_server_that_came_back_is_another_life() {
    let mut server = Server::start(&["--appendfsync", "always"]);
    let store = RedisStore::open(options(&server)).await.unwrap();
    let orders = stream(&store).await;
    store.append(append(&store, &orders, 3)).await.unwrap();
    let old = store.about().incarnation;
    server.kill();

    let adopt = answered(async || store.append(append(&store, &orders, 1)).await).await.unwrap_err();
    let now = store.about().incarnation;
    assert_ne!(now, old);
    // The first try may still carry the life that was learned before the server went.
    assert!(
        matches!(adopt, StoreError::Adopt { stored, current, .. } if stored == old.0 && current == now),
        "{adopt}"
    );
    let shard = shard_of(&orders);
    store.define(Define::Adopt { shard, stored: old }).await.unwrap();
    let appended = store.append(append(&store, &orders, 1)).await.unwrap();
    let [Receipt::New { id, prev, .. }] = appended.receipts[..] else { panic!("{appended:?}") };
    assert!(id > EventId(4) && prev == Some(EventId(1)), "{appended:?}");
    let Rows::Counts(counts) = store.query(Query::Counts(shard)).await.unwrap() else { panic!("counts") };
    assert_eq!(counts.adoptions, 1, "an alert for each adoption");
}

#[tokio::test]
async fn a_broken_connection_is_made_anew() {
    let server = Server::start(&[]);
    let store = RedisStore::open(options(&server)).await.unwrap();
    let orders = stream(&store).await;
    let life = store.about().incarnation;
    for round in 0..3 {
        let _: i64 = server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        let name = format!("round-{round}");
        let put = answered(async || store.get(&name).await).await.unwrap();
        assert_eq!(put, None);
    }
    assert_eq!(store.about().incarnation, life, "the server is the same");
    store.append(append(&store, &orders, 1)).await.unwrap();
}

#[tokio::test]
async fn silent_producers_are_let_go() {
    let clock = ManualClock::default();
    let store = RedisStore::open(RedisOptions { clock: Some(Arc::new(clock.clone())), ..options(&SHARED) })
        .await
        .unwrap();
    let orders = stream(&store).await;
    let shard = shard_of(&orders);
    for name in ["producer/1", "input/1"] {
        let source = Source::Named(Bytes::from(name));
        let mut call = append(&store, &orders, 1);
        call.origin = Some(Origin { source, term: Term(1) });
        call.drafts[0].origin_seq = Some(1);
        store.append(call).await.unwrap();
    }
    let names = async || {
        store.trim(Trim { shard }).await.unwrap();
        let Rows::Sources(rows) = store.query(Query::Sources(shard, None, 10)).await.unwrap() else {
            panic!("sources")
        };
        rows.into_iter().map(|row| row.source).collect::<Vec<_>>()
    };
    clock.advance(Duration::from_secs(24 * 60 * 60 - 1));
    assert_eq!(names().await.len(), 2);
    clock.advance(Duration::from_secs(2));
    assert_eq!(names().await, [Source::Named(Bytes::from("input/1"))]);
}

#[tokio::test]
async fn a_definition_that_was_left_half_done_is_finished() {
    let options = options(&SHARED);
    let store = RedisStore::open(options.clone()).await.unwrap();
    let orders = stream(&store).await;
    let namespace = &options.namespace;
    // As its caller left it that died before it reached the shard.
    let row: Vec<u8> = SHARED.command(&["HGET", &format!("laneway:{{{namespace}}}:streams"), "1"]);
    let client = redis::Client::open(SHARED.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let todo = format!("laneway:{{{namespace}}}:todo");
    redis::cmd("HSET").arg(&todo).arg("1").arg(row).exec(&mut connection).unwrap();
    let _: i64 = SHARED.command(&["DEL", &format!("laneway:{{{namespace}/1/0}}:meta")]);
    store.append(append(&store, &orders, 1)).await.unwrap();
    let left: i64 = SHARED.command(&["EXISTS", &todo]);
    assert_eq!(left, 0, "the mark is gone");
}

fn cpu_micros(server: &Server) -> f64 {
    let said: String = server.command(&["INFO", "cpu"]);
    let facts: HashMap<&str, &str> = said.lines().filter_map(|line| line.split_once(':')).collect();
    let seconds = |name| facts[name].parse::<f64>().expect("INFO tells seconds");
    // The thread that runs commands; what syncs and frees in the background is not the limit of a server.
    1e6 * (seconds("used_cpu_user_main_thread") + seconds("used_cpu_sys_main_thread"))
}

/// Contract 4.3: at most 15 microseconds of the server's time for a plain event over its life.
#[tokio::test]
async fn a_plain_event_costs_the_server_little() {
    const BATCHES: u64 = 200;
    const BATCH: usize = 100;
    let server = Server::start(&["--appendfsync", "everysec"]);
    let store = RedisStore::open(options(&server)).await.unwrap();
    let orders = stream(&store).await;
    let shard = shard_of(&orders);
    let register = Define::Processor {
        stream: orders.id,
        name: "charge".to_owned(),
        start: StartAt::End,
        settings: Bytes::new(),
    };
    let processor = store.define(register).await.unwrap().stream.unwrap().processors[0].id;
    let seat = Seat { shard, processor };
    let nonce = Nonce(1);
    let seize = Seize {
        seat,
        incarnation: store.about().incarnation,
        expect: None::<Owner>,
        nonce,
        node: Bytes::new(),
    };
    let mut fence = store.seize(seize).await.unwrap().progress.fence;
    let before = cpu_micros(&server);
    for batch in 0..BATCHES {
        // More lanes than a small hash of the server holds, and each of them again and again.
        let first = usize::try_from(batch % 10).unwrap() * BATCH;
        store.append(append_from(&store, &orders, first, BATCH)).await.unwrap();
        let from = ReadFrom::After(EventId(batch * BATCH as u64));
        let read =
            Read { shard, from, limit: BATCH, bytes: 1 << 20, processor: Some(processor), states: false };
        let page = store.read(read).await.unwrap();
        assert_eq!(page.entries.len(), BATCH);
        let mut commit = Commit::new(seat, fence, CommitId(u128::from(batch)));
        commit.passed = page.entries.iter().map(|entry| entry.id()).collect();
        fence = store.commit(commit).await.unwrap().fence;
    }
    let per_event = (cpu_micros(&server) - before) / (BATCHES * BATCH as u64) as f64;
    println!("{per_event:.1} us of server CPU per plain event: append in batches of {BATCH}, read, commit");
    // Twice the budget: a machine that others use at the same time must not decide.
    assert!(per_event <= 30.0, "{per_event:.1} us");
}

#[tokio::test]
async fn a_life_that_was_given_is_the_stores() {
    let given = Incarnation(7);
    let store =
        RedisStore::open(RedisOptions { incarnation: Some(given), ..options(&SHARED) }).await.unwrap();
    assert_eq!(store.about().incarnation, given);
}
