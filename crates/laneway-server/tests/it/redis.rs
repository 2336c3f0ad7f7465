//! The program on a Redis server: served, examined, moved to and from; and its password is never told.

use std::path::Path;
use std::process::Output;

use http::{HeaderName, Method};
use laneway_testkit::servers::RedisServer;
use serde_json::{Value, json};

use crate::errors::refused;
use crate::program::{Program, run};
use crate::seam;

/// What the server takes as its password.
const PASSWORD: &str = "canary-of-the-redis-server";

fn server(settings: &[&str]) -> (RedisServer, String) {
    let server = RedisServer::start(&[&["--requirepass", PASSWORD], settings].concat());
    let url = format!("redis://:{PASSWORD}@{}", server.address());
    (server, url)
}

/// All that a command said; nothing of it is the password.
fn said(output: &Output) -> String {
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains(PASSWORD), "{said}");
    said
}

fn good(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    let said = said(&output);
    assert!(output.status.success(), "{args:?}: {said}");
    said
}

async fn call(program: &Program, method: &str, path: &str, body: Value) -> Value {
    let body = (!body.is_null()).then(|| body.to_string().into_bytes());
    let answer = program.client().send(method.parse().unwrap(), path, &[], body).await.unwrap();
    assert!(answer.status.is_success(), "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
}

async fn serve(folder: &Path, url: &str) -> Program {
    let mut program = Program::serve_as(folder, &["--store", url], &[]).await;
    program.keep_secret([PASSWORD.to_owned()]);
    program
}

/// Appends an event for ann and answers its receipt.
async fn append(program: &Program) -> Value {
    let answer = call(program, "POST", "/v1/streams/orders/events", json!({"key": "ann", "data": 1})).await;
    json!({"durability": answer["durability"], "id": answer["events"][0]["id"], "seq": answer["events"][0]["seq"]})
}

#[tokio::test]
async fn a_server_on_redis_keeps_everything_and_says_how_safe_it_is() {
    let (folder, (_redis, url)) = (tempfile::tempdir().unwrap(), server(&["--appendfsync", "everysec"]));
    let program = serve(folder.path(), &url).await;
    call(&program, "PUT", "/v1/streams/orders", json!({"partitions": 1})).await;
    assert_eq!(append(&program).await, json!({"durability": "buffered", "id": 1, "seq": 1}));
    assert!(program.errors().contains("appendfsync everysec"), "{}", program.errors());
    program.stop().await;
    let program = serve(folder.path(), &url).await;
    assert_eq!(append(&program).await, json!({"durability": "buffered", "id": 2, "seq": 2}));
    let backup = Some(json!({"name": "one"}).to_string());
    let says = "copy its RDB file after BGSAVE";
    let (client, post) = (program.client(), Method::POST);
    refused(&client, post, "/v1/store/backup", &[], backup, "backup_unavailable", says).await;
    // Another application on the same server sees nothing of it.
    let mut other =
        Program::serve_as(folder.path(), &["--store", &url], &[("LANEWAY_STORE_NAMESPACE", "other")]).await;
    other.keep_secret([PASSWORD.to_owned()]);
    let seen = call(&other, "GET", "/v1/streams", Value::Null).await.to_string();
    assert!(!seen.contains("orders"), "{seen}");
}

#[test]
fn doctor_and_config_check_know_the_server() {
    let (folder, (_redis, url)) = (tempfile::tempdir().unwrap(), server(&["--appendfsync", "always"]));
    let found = good(folder.path(), &["doctor", "--store", &url, "--listen", "127.0.0.1:0"]);
    assert!(found.contains("appendfsync always") && found.contains("answers are synced"), "{found}");
    let wrong = run(
        folder.path(),
        &["doctor", "--store", &url.replace(PASSWORD, "wrong"), "--listen", "127.0.0.1:0"],
    );
    assert!(
        !wrong.status.success() && said(&wrong).contains("does not let this user in"),
        "{}",
        said(&wrong)
    );

    let write = |text: String| std::fs::write(folder.path().join("laneway.toml"), text).unwrap();
    write(format!(
        "[store]\nurl = \"{url}\"\nnamespace = \"shop\"\nwait_replicas = 1\nanswer_within = \"2s\"\n"
    ));
    good(folder.path(), &["config", "check"]);
    let shown = good(folder.path(), &["config", "show"]);
    assert!(shown.contains("wait_replicas") && shown.contains("redis://***@"), "{shown}");
    let refused = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(said(&refused).contains("wait_replicas is 1, must be at most 0"), "{}", said(&refused));
    for (line, fault) in [
        ("namespace = \"a b\"", "namespace"),
        ("tls_ca = \"ca.pem\"", "ca.pem cannot be read"),
        ("wait_replicas = 0", "store.wait_replicas"),
    ] {
        write(format!("[store]\nurl = \"{url}\"\n{line}\n"));
        let refused = run(folder.path(), &["config", "check"]);
        assert!(!refused.status.success() && said(&refused).contains(fault), "{line}: {}", said(&refused));
    }
    write("[store]\nurl = \"file:./data\"\nwait_replicas = 1\n".to_owned());
    let refused = run(folder.path(), &["config", "check"]);
    assert!(said(&refused).contains("has no server"), "{}", said(&refused));
}

#[tokio::test]
async fn calls_that_the_server_refuses_or_leaves_unanswered_say_which() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let variables = [("LANEWAY_STORE_ANSWER_WITHIN", "2s")];
    let program = Program::serve_as(folder.path(), &["--store", &redis.url()], &variables).await;
    call(&program, "PUT", "/v1/streams/orders", json!({"partitions": 1})).await;
    append(&program).await;
    let (client, event) = (program.client(), Some(r#"{"key":"ann"}"#.to_owned()));
    let events = "/v1/streams/orders/events";

    assert_eq!(redis.ask("CONFIG SET min-replicas-to-write 1"), "+OK");
    let says = "too few replicas for its min-replicas-to-write";
    refused(&client, Method::POST, events, &[], event, "store_down", says).await;
    assert_eq!(redis.ask("CONFIG SET min-replicas-to-write 0"), "+OK");
    append(&program).await;

    redis.signal("STOP");
    let says = "the call may or may not have happened";
    let page = "/v1/streams/orders/events?partition=0";
    refused(&client, Method::GET, page, &[], None, "store_unavailable", says).await;
    redis.signal("CONT");
    seam::until("it is reached again", || async {
        let answer = client.send(Method::GET, page, &[], None).await.ok()?;
        answer.status.is_success().then_some(())
    })
    .await;
    program.stop().await;
}

/// Wake-ups are hints. Nodes that hear none find by polling what others wrote, and say that they do.
#[tokio::test]
async fn nodes_that_may_not_subscribe_find_everything_by_polling() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    assert_eq!(redis.ask("ACL SETUSER mute on >secret ~* &* +@all -subscribe"), "+OK");
    let declared = "[[stream]]\nname = \"orders\"\npartitions = 4\n\
                    [[processor]]\nname = \"charge\"\nstream = \"orders\"\nexec = [\"true\"]\n";
    std::fs::write(folder.path().join("laneway.toml"), declared).unwrap();
    let url = redis.url().replace("redis://", "redis://mute:secret@");
    let mut nodes = Vec::new();
    for name in ["one", "two"] {
        let variables = [("LANEWAY_NODE_NAME", name), ("LANEWAY_NODE_SETTLE", "200ms")];
        nodes.push(Program::serve_plainly(folder.path(), &["--store", &url], &variables).await);
    }
    for number in 0..6 {
        // Whoever takes a job waits for its end, which the owner of its lane writes.
        let (client, body) = (nodes[number % 2].client(), json!({"key": format!("lane-{number}")}));
        let prefer = [(HeaderName::from_static("prefer"), "wait=40")];
        let body = Some(body.to_string().into_bytes());
        let job = client.send(Method::POST, "/v1/streams/orders/jobs", &prefer, body).await.unwrap();
        let job: Value = serde_json::from_slice(&job.body).unwrap();
        assert_eq!(job["status"], "done", "{job}");
    }
    for node in nodes {
        assert_eq!(node.errors().matches("no wake-ups are heard: changes are found by polling").count(), 1);
        node.stop().await;
    }
}

#[test]
fn servers_that_would_lose_events_are_refused_with_what_to_set() {
    let (folder, (_redis, url)) =
        (tempfile::tempdir().unwrap(), server(&["--maxmemory-policy", "allkeys-lru"]));
    let refused = run(folder.path(), &["serve", "--store", &url, "--listen", "127.0.0.1:0"]);
    assert!(said(&refused).contains("CONFIG SET maxmemory-policy noeviction"), "{}", said(&refused));
}

#[tokio::test]
async fn a_store_moves_to_redis_and_back_with_ids_and_jobs() {
    let (folder, (_redis, url)) = (tempfile::tempdir().unwrap(), server(&[]));
    let program = Program::serve_untouched(folder.path()).await;
    call(&program, "PUT", "/v1/streams/orders", json!({"partitions": 1})).await;
    call(&program, "PUT", "/v1/processors/charge", json!({"stream": "orders", "pull": true})).await;
    let job = call(&program, "POST", "/v1/streams/orders/jobs", json!({"key": "ann", "data": 1})).await;
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    let claims = call(&program, "POST", "/v1/processors/charge/claim", json!({"wait": "20s"})).await;
    let settled = json!({"settlements": [{"claim": claims["claims"][0]["claim"], "outcome": "done", "result": "paid"}]});
    call(&program, "POST", "/v1/processors/charge/settle", settled).await;
    append(&program).await;
    let before = call(&program, "GET", &path, Value::Null).await;
    let daily = json!({"stream": "orders", "key": "ann", "cron": "0 4 * * *", "zone": "Europe/Berlin"});
    call(&program, "PUT", "/v1/schedules/daily", daily).await;
    let schedule = call(&program, "GET", "/v1/schedules/daily", Value::Null).await;
    program.stop().await;

    let copied = good(folder.path(), &["store", "copy", "file:./data", &url, "--namespace", "moved"]);
    assert!(copied.contains("verified 2 events, 1 lanes, 1 job ends"), "{copied}");
    assert!(copied.contains("; 1 schedules"), "{copied}");
    let again = run(folder.path(), &["store", "copy", "file:./data", &url, "--namespace", "moved"]);
    assert_eq!(again.status.code(), Some(4), "{}", said(&again));
    let mut program =
        Program::serve_as(folder.path(), &["--store", &url], &[("LANEWAY_STORE_NAMESPACE", "moved")]).await;
    program.keep_secret([PASSWORD.to_owned()]);
    assert_eq!(call(&program, "GET", &path, Value::Null).await, before);
    assert_eq!(call(&program, "GET", "/v1/schedules/daily", Value::Null).await, schedule);
    assert_eq!(append(&program).await, json!({"durability": "buffered", "id": 3, "seq": 3}));
    program.stop().await;

    let copied = good(folder.path(), &["store", "copy", &url, "file:./back", "--namespace", "moved"]);
    assert!(copied.contains("verified 3 events"), "{copied}");
    let program = Program::serve_as(folder.path(), &["--store", "file:./back"], &[]).await;
    assert_eq!(call(&program, "GET", &path, Value::Null).await, before);
    assert_eq!(call(&program, "GET", "/v1/schedules/daily", Value::Null).await, schedule);
    assert_eq!(append(&program).await, json!({"durability": "synced", "id": 4, "seq": 4}));
    let verified = good(folder.path(), &["verify", "orders", "--server", program.address()]);
    assert!(verified.contains("orders is in order: 4 events"), "{verified}");
}

/// Owners adopt their partitions at once: ids have jumped, and no event has come since.
#[tokio::test]
async fn a_stream_that_was_adopted_and_has_no_new_events_is_read_to_its_end() {
    let (folder, (mut redis, url)) = (tempfile::tempdir().unwrap(), server(&["--appendfsync", "always"]));
    let program = serve(folder.path(), &url).await;
    call(&program, "PUT", "/v1/streams/orders", json!({"partitions": 1})).await;
    call(&program, "PUT", "/v1/processors/charge", json!({"stream": "orders", "pull": true})).await;
    append(&program).await;
    redis.kill();
    seam::until("ids have jumped", || async {
        let answer = program.client().send(Method::GET, "/v1/streams/orders", &[], None).await.ok()?;
        let stream: Value = serde_json::from_slice(&answer.body).ok()?;
        let head = &stream["heads"][0];
        (head["head"].as_u64()? > 1 && head["events"] == 1).then_some(())
    })
    .await;
    let page = call(&program, "GET", "/v1/streams/orders/events?partition=0&after=1", Value::Null).await;
    assert_eq!((&page["events"], &page["next"], &page["head"]), (&json!([]), &Value::Null, &json!(1)));
    let verified = good(folder.path(), &["verify", "orders", "--server", program.address()]);
    assert!(verified.contains("orders is in order: 1 events"), "{verified}");
    let listed = good(folder.path(), &["stream", "ls", "--server", program.address()]);
    assert!(listed.lines().any(|line| line.starts_with("orders") && !line.contains(",")), "{listed}");
}

/// What a restart may have lost is told to operators: by a metric, and by who reads the stream again.
#[tokio::test]
async fn a_restart_of_redis_is_counted_and_verified() {
    let (folder, (mut redis, url)) = (tempfile::tempdir().unwrap(), server(&["--appendfsync", "always"]));
    let program = serve(folder.path(), &url).await;
    call(&program, "PUT", "/v1/streams/orders", json!({"partitions": 1})).await;
    assert_eq!(append(&program).await, json!({"durability": "synced", "id": 1, "seq": 1}));
    redis.kill();
    seam::until("events are taken again", || async {
        let body = json!({"key": "ann", "data": 2}).to_string().into_bytes();
        let sent = program.client().send(Method::POST, "/v1/streams/orders/events", &[], Some(body)).await;
        sent.ok().filter(|answer| answer.status.is_success())
    })
    .await;
    let metrics = program.client().send(Method::GET, "/metrics", &[], None).await.unwrap();
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    let adoptions = metrics.lines().find_map(|line| line.strip_prefix("laneway_store_adoptions_total "));
    assert!(adoptions.is_some_and(|count| count.parse::<u64>().unwrap() > 0), "{adoptions:?}");
    let verified = good(folder.path(), &["verify", "orders", "--server", program.address()]);
    let jump = verified.lines().find(|line| line.contains(" follows id 1"));
    assert!(jump.is_some(), "{verified}");
}
