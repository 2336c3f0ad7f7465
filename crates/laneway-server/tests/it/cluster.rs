//! Several servers on one Redis: they share the work, follow one that dies, and any of them answers for all.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use http::Method;
use laneway_client::wire::{EventDraft, Lease, NodeView};
use laneway_testkit::servers::RedisServer;
use rustix::process::Signal;
use serde_json::json;

use crate::cli::on;
use crate::errors::refused;
use crate::program::{Program, paste};
use crate::seam;

/// A dead node's lanes run elsewhere within the usual lease and two seconds.
const RECOVERY_MAX: Duration = Duration::from_secs(12);
const PARTITIONS: usize = 8;
const LANES: usize = 20;
const EACH: u32 = 30;

/// The same file for every node: what runs is written down, one line each.
const CONFIG: &str = r#"
[[stream]]
name = "orders"
partitions = 8

[[processor]]
name = "charge"
stream = "orders"
exec = ["sh", "-c", 'cat >/dev/null; echo "$LANEWAY_KEY $LANEWAY_SEQ" >> ran']
concurrency = 8
"#;

/// Three partitions; what has a pipe of the name of its lane waits until somebody writes to it.
const HELD_CONFIG: &str = r#"
[[stream]]
name = "orders"
partitions = 3

[[processor]]
name = "charge"
stream = "orders"
exec = ["sh", "-c", 'cat >/dev/null; echo "begun $LANEWAY_KEY $LANEWAY_FENCE" >> ran; if [ -p "$LANEWAY_KEY" ]; then read go < "$LANEWAY_KEY"; fi; echo "done $LANEWAY_KEY $LANEWAY_FENCE" >> ran']
"#;

async fn node(folder: &Path, redis: &RedisServer, name: &str, lease: &str) -> Program {
    node_with(CONFIG, folder, redis, name, lease).await
}

async fn node_with(config: &str, folder: &Path, redis: &RedisServer, name: &str, lease: &str) -> Program {
    std::fs::write(folder.join("laneway.toml"), config).unwrap();
    let variables =
        [("LANEWAY_NODE_NAME", name), ("LANEWAY_NODE_LEASE", lease), ("LANEWAY_NODE_SETTLE", "100ms")];
    Program::serve_plainly(folder, &["--store", &redis.url()], &variables).await
}

fn named<'a>(nodes: &'a [NodeView], name: &str) -> Option<&'a NodeView> {
    nodes.iter().find(|node| node.name == name)
}

/// Waits until this node sees each of these nodes own so many partitions, and no others.
async fn owned(at: &Program, seats: &[(&str, usize)]) -> Vec<NodeView> {
    let what = format!("partitions are owned as {seats:?}");
    seam::until(&what, || async {
        let nodes = seam::in_time(at.client().nodes()).await?.ok()?;
        let is_so =
            |(name, seats): &(&str, usize)| named(&nodes, name).is_some_and(|node| node.seats == *seats);
        (nodes.len() == seats.len() && seats.iter().all(is_so)).then_some(nodes)
    })
    .await
}

async fn send(at: &Program) {
    for number in 0..EACH {
        let events: Vec<EventDraft> = (0..LANES)
            .map(|lane| {
                serde_json::from_value(json!({"key": format!("lane-{lane}"), "data": number})).unwrap()
            })
            .collect();
        at.client().append("orders", &events).await.unwrap();
    }
}

/// Waits until nothing waits any more, then checks what was run: every lane whole, and each event for the first time in its order.
async fn all_ran_in_order(at: &Program, folder: &Path) {
    seam::until("everything is settled", || async {
        let stream = at.client().stream("orders").await.ok()?;
        let is_settled =
            stream.processors.iter().all(|processor| processor.lag == 0 && processor.held_lanes == 0);
        is_settled.then_some(())
    })
    .await;
    let mut lanes: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for line in std::fs::read_to_string(folder.join("ran")).unwrap().lines() {
        let (key, seq) = line.split_once(' ').unwrap();
        let (lane, seq) = (lanes.entry(key.to_owned()).or_default(), seq.parse().unwrap());
        if !lane.contains(&seq) {
            lane.push(seq);
        }
    }
    assert_eq!(lanes.len(), LANES);
    for (key, seqs) in lanes {
        assert_eq!(seqs, (1..=EACH).collect::<Vec<_>>(), "lane {key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_is_followed_within_its_lease_and_two_seconds() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let one = node(folder.path(), &redis, "one", "10s").await;
    let two = node(folder.path(), &redis, "two", "10s").await;
    owned(&two, &[("one", PARTITIONS / 2), ("two", PARTITIONS / 2)]).await;
    send(&two).await;
    one.signal(Signal::KILL);
    let killed = seam::later(RECOVERY_MAX);
    owned(&two, &[("two", PARTITIONS)]).await;
    assert!(!killed.is_over(), "it took {:?} longer than {RECOVERY_MAX:?}", killed.passed());
    let status = on(&two, &["cluster", "status"]).good();
    assert!(status.starts_with("node two (all): 8 seats, leader\n"), "{status}");
    all_ran_in_order(&two, folder.path()).await;
    assert!(on(&two, &["verify", "orders"]).good().contains("600 events"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_stopped_past_its_lease_finds_itself_fenced_and_joins_again() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let one = node(folder.path(), &redis, "one", "2s").await;
    let two = node(folder.path(), &redis, "two", "2s").await;
    let before = owned(&two, &[("one", PARTITIONS / 2), ("two", PARTITIONS / 2)]).await;
    send(&two).await;
    one.signal(Signal::STOP);
    owned(&two, &[("two", PARTITIONS)]).await;
    one.signal(Signal::CONT);
    let after = owned(&two, &[("one", PARTITIONS / 2), ("two", PARTITIONS / 2)]).await;
    assert_ne!(
        named(&before, "one").unwrap().node,
        named(&after, "one").unwrap().node,
        "it is another node now"
    );
    let told = seam::until("it tells that it lost its lease", || async {
        let metrics = one.client().send(Method::GET, "/metrics", &[], None).await.ok()?;
        let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
        metrics.lines().find(|line| line.starts_with("laneway_lease_lost_total")).map(str::to_owned)
    });
    assert_eq!(told.await, "laneway_lease_lost_total 1");
    all_ran_in_order(&two, folder.path()).await;
}

/// Two lanes of each partition, of which the first is held from now on. All have run once.
async fn held_and_free(at: &Program, folder: &Path, partitions: usize) -> Vec<[String; 2]> {
    let mut lanes = vec![Vec::new(); partitions];
    for key in (0..LANES).map(|lane| format!("lane-{lane}")) {
        let partition = send_one(at, &key).await;
        lanes[partition].push(key);
    }
    settled(at).await;
    let lanes: Vec<_> = lanes.into_iter().map(|mut lanes| [lanes.remove(0), lanes.remove(0)]).collect();
    for [held, _] in &lanes {
        paste(format!("mkfifo {}", folder.join(held).display()));
    }
    lanes
}

/// Answers the partition.
async fn send_one(at: &Program, key: &str) -> usize {
    let event = serde_json::from_value(json!({"key": key, "data": 1})).unwrap();
    let told = at.client().append("orders", &[event]).await.unwrap();
    told.events[0].partition.unwrap() as usize
}

async fn settled(at: &Program) {
    seam::until("all is settled", || async {
        let stream = at.client().stream("orders").await.ok()?;
        (stream.processors.first()?.lag == 0).then_some(())
    })
    .await;
}

/// Lets the run of a held lane end.
fn let_go(folder: &Path, key: &str) {
    let pipe = folder.join(key);
    // Beside the test: it would wait for ever if the run was cut.
    seam::beside(move || drop(std::fs::write(pipe, "go\n")));
}

/// What runs wrote down after this word, sorted.
fn wrote(folder: &Path, word: &str) -> Vec<String> {
    let ran = std::fs::read_to_string(folder.join("ran")).unwrap_or_default();
    let mut found: Vec<String> =
        ran.lines().filter_map(|line| line.strip_prefix(word)).map(str::to_owned).collect();
    found.sort();
    found
}

/// Waits until so many runs wrote it down.
async fn written(folder: &Path, word: &str, count: usize) {
    let enough = || std::future::ready((wrote(folder, word).len() == count).then_some(()));
    seam::until(&format!("{count} times {word:?}"), enough).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_seat_moves_to_a_node_that_joins_and_the_runs_of_the_others_are_left_alone() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let folder = folder.path();
    let one = node_with(HELD_CONFIG, folder, &redis, "one", "10s").await;
    let lanes = held_and_free(&one, folder, 3).await;
    for [held, _] in &lanes {
        send_one(&one, held).await;
        written(folder, &format!("begun {held} "), 2).await;
    }
    let _two = node_with(HELD_CONFIG, folder, &redis, "two", "10s").await;
    let leases = async |is_so: fn(&Lease) -> bool, count: usize| {
        seam::until("so many leases stand so", || async {
            let leases = one.client().leases().await.ok()?;
            (leases.len() == 3 && leases.iter().filter(|lease| is_so(lease)).count() == count)
                .then_some(leases)
        })
        .await
    };
    let before = leases(|lease| lease.moves_to.is_some(), 1).await;
    let (moving, staying): (Vec<&Lease>, Vec<&Lease>) =
        before.iter().partition(|lease| lease.moves_to.is_some());

    // What stays goes on, event after event, while the move waits for the run.
    for number in 2..=5 {
        for lease in &staying {
            let free = &lanes[lease.partition as usize][1];
            send_one(&one, free).await;
            written(folder, &format!("done {free} "), number).await;
        }
    }
    assert_eq!(one.client().leases().await.unwrap(), before, "it still moves, and nothing else has changed");
    let_go(folder, &lanes[moving[0].partition as usize][0]);
    let after = leases(|lease| lease.moves_to.is_none(), 3).await;
    let moved = &after[moving[0].partition as usize];
    assert!(moved.node != moving[0].node && moved.term > moving[0].term, "{before:?} {after:?}");
    for lease in staying {
        assert_eq!(after[lease.partition as usize], *lease, "nobody took it anew");
        let_go(folder, &lanes[lease.partition as usize][0]);
    }
    settled(&one).await;
    let done = wrote(folder, "done ");
    assert_eq!(wrote(folder, "begun "), done, "what began ended, with its fence");
    assert_eq!(done.len(), LANES + 3 + 2 * 4, "and nothing ran twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_answers_for_all_and_steers_them() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let one = node(folder.path(), &redis, "one", "10s").await;
    let two = node(folder.path(), &redis, "two", "10s").await;
    owned(&one, &[("one", PARTITIONS / 2), ("two", PARTITIONS / 2)]).await;
    assert_eq!(on(&one, &["lease", "ls", "-o", "id"]).good().lines().count(), PARTITIONS);

    on(&one, &["node", "drain", "two", "--yes"]).good();
    let at_once = two.client().nodes().await.unwrap();
    assert!(named(&at_once, "two").unwrap().drained, "what is told is read from the store at that moment");
    assert_eq!(on(&two, &["node", "ls", "-o", "id"]).good().lines().count(), 2);
    let nodes = owned(&two, &[("one", PARTITIONS), ("two", 0)]).await;
    assert!(named(&nodes, "two").unwrap().drained);
    send(&one).await;
    on(&two, &["node", "drain", "two", "--undo"]).good();
    owned(&one, &[("one", PARTITIONS / 2), ("two", PARTITIONS / 2)]).await;

    let term = |leases: &[Lease]| leases.iter().find(|lease| lease.partition == 3).unwrap().term;
    let before = term(&one.client().leases().await.unwrap());
    on(&two, &["lease", "break", "charge/orders/3", "--yes"]).good();
    seam::until("it is taken anew", || async {
        let leases = one.client().leases().await.ok()?;
        (leases.len() == PARTITIONS && term(&leases) > before).then_some(())
    })
    .await;
    on(&two, &["lease", "break", "node/one", "--yes"]).good();
    owned(&two, &[("one", PARTITIONS / 2), ("two", PARTITIONS / 2)]).await;
    all_ran_in_order(&one, folder.path()).await;

    on(&two, &["node", "drain", "three", "--yes"]).bad(3);
    on(&two, &["lease", "break", "node/three", "--yes"]).bad(3);
    on(&two, &["lease", "break", "charge/orders/8", "--yes"]).bad(3);
    for (path, body, code, says) in [
        ("/v1/nodes/three/drain", "", "node_not_found", "three"),
        ("/v1/leases/break", r#"{"lease":"node/three"}"#, "node_not_found", "GET /v1/nodes lists all"),
        ("/v1/leases/break", r#"{"lease":"charge/orders/8"}"#, "lease_not_found", "GET /v1/leases lists"),
    ] {
        refused(&two.client(), Method::POST, path, &[], Some(body.to_owned()), code, says).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_that_no_owner_decides_is_to_be_repeated_and_counts_once() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let (one, two) =
        (node(folder.path(), &redis, "one", "60s").await, node(folder.path(), &redis, "two", "60s").await);
    on(&one, &["stream", "create", "mails", "--partitions", "1"]).good();
    on(&one, &["processor", "create", "mailer", "--stream", "mails"]).good();
    on(&one, &["stream", "send", "mails", "--key", "ann", "1"]).good();
    let owner = seam::until("it is owned", || async {
        let leases = one.client().leases().await.ok()?;
        let token = leases.into_iter().find(|lease| lease.processor == "mailer")?.node;
        let nodes = one.client().nodes().await.ok()?;
        nodes.into_iter().find(|node| node.node == token).map(|node| node.name)
    })
    .await;
    let (owner, other) = if owner == "one" { (&one, &two) } else { (&two, &one) };
    let wish = serde_json::from_value(json!({"lease": "5m", "wait": "20s"})).unwrap();
    let claims = owner.client().claim("mailer", &wish).await.unwrap().claims;
    let settle = json!({"settlements": [{"claim": claims[0].claim, "outcome": "done"}]}).to_string();
    let settled = async || {
        let body = Some(settle.clone().into_bytes());
        let answer =
            other.client().send(Method::POST, "/v1/processors/mailer/settle", &[], body).await.unwrap();
        let told: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        told["settlements"][0].clone()
    };
    owner.signal(Signal::STOP);
    let undecided = settled().await;
    assert_eq!(undecided["code"], "claim_undecided", "{undecided}");
    owner.signal(Signal::CONT);
    seam::until("it is settled", || async {
        let stream = other.client().stream("mails").await.ok()?;
        (stream.processors.first()?.lag == 0).then_some(())
    })
    .await;
    let again = settled().await;
    assert_eq!((&again["accepted"], &again["already"]), (&json!(true), &json!(true)), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_that_only_answers_and_one_that_only_runs_are_a_cluster() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    std::fs::write(folder.path().join("laneway.toml"), CONFIG).unwrap();
    let url = redis.url();
    let start = async |role: &str| {
        let args = ["--store", &url, "--role", role, "--node-name", role];
        Program::serve_plainly(folder.path(), &args, &[("LANEWAY_NODE_SETTLE", "100ms")]).await
    };
    let (api, _engine) = (start("api").await, start("engine").await);
    owned(&api, &[("api", 0), ("engine", PARTITIONS)]).await;
    send(&api).await;
    all_ran_in_order(&api, folder.path()).await;
    let done = on(&api, &["job", "submit", "orders", "7", "--key", "ann", "--wait", "-o", "json"]).good();
    assert!(done.contains(r#""status": "done""#), "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_is_told_all_nodes_do() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let one = node(folder.path(), &redis, "one", "10s").await;
    let two = node(folder.path(), &redis, "two", "10s").await;
    on(&one, &["stream", "create", "mails", "--partitions", "4"]).good();
    on(&one, &["processor", "create", "mailer", "--stream", "mails"]).good();
    for lane in 0..8 {
        on(&one, &["stream", "send", "mails", "--key", &format!("k{lane}"), "1"]).good();
    }
    // A worker that knows the other node only reaches every lane through it, and may settle anywhere.
    seam::until("nothing waits", || async {
        let wish = serde_json::from_value(json!({"max_lanes": 8, "wait": "1s", "worker": "w"})).unwrap();
        let claims = two.client().claim("mailer", &wish).await.ok()?.claims;
        for claim in &claims {
            let settle = json!({"settlements": [{"claim": claim.claim, "outcome": "done"}]});
            one.client().settle("mailer", &serde_json::from_value(settle).unwrap()).await.unwrap();
        }
        let stream = two.client().stream("mails").await.ok()?;
        (stream.processors.first()?.lag == 0).then_some(())
    })
    .await;
    // A job is waited for at another node than the one that has it.
    let done = on(&two, &["job", "submit", "orders", "7", "--key", "ann", "--wait", "-o", "json"]).good();
    assert!(done.contains(r#""status": "done""#), "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_of_one_name_are_told_apart_by_their_tokens() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let one = node(folder.path(), &redis, "same", "10s").await;
    let two = node(folder.path(), &redis, "same", "10s").await;
    let nodes = seam::until("both are there", || async {
        Some(one.client().nodes().await.ok()?).filter(|nodes| nodes.len() == 2)
    })
    .await;
    assert!(on(&two, &["lease", "break", "node/same", "--yes"]).bad(4).contains("2 nodes are called"));
    on(&two, &["lease", "break", &format!("node/{}", nodes[0].node), "--yes"]).good();
}
