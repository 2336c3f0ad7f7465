//! What a user of the server must be allowed, as `docs/operating/redis.md` has it: it is enough, and nothing of it can be left out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use laneway_core::{Documents, Store, StoreError};
use laneway_redis::{RedisOptions, RedisStore};
use laneway_testkit::conformance::{self, Case};

use crate::conformance::RedisFixture;
use crate::life::{append, stream};
use crate::server::Server;

const PAGE: &str = include_str!("../../../../docs/operating/redis.md");

/// The words of the line that the page shows, for the namespaces of tests.
fn words() -> Vec<String> {
    let line =
        PAGE.lines().find(|line| line.starts_with("ACL SETUSER laneway ")).expect("the page has the line");
    let line = line
        .replace("{laneway}", "{test-*}")
        .replace("{laneway/", "{test-*/")
        .replace(">PASSWORD", ">secret");
    line.split_whitespace().map(str::to_owned).collect()
}

fn set_user(server: &Server, words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let _: String = server.command(&words);
    server.url().replace("redis://", "redis://laneway:secret@")
}

/// Cases that go through every script, and those that need each right.
fn cases() -> Vec<Case> {
    let wanted = [
        "commit",
        "commit_reset",
        "define",
        "documents",
        "import",
        "jobs",
        "lanes",
        "promote",
        "stash",
        "trim",
        "wakeups",
    ];
    let cases: Vec<_> = conformance::all().into_iter().filter(|case| wanted.contains(&case.module)).collect();
    assert!(cases.len() > 80, "only {} cases", cases.len());
    cases
}

#[test]
fn a_user_with_the_least_rights_is_enough() {
    let server = Server::start(&[]);
    let url = set_user(&server, &words());
    for case in cases() {
        conformance::run(Arc::new(RedisFixture::at(url.clone())), case);
    }
}

/// Rights that no case of the suite needs: for scripts that the server forgot, how a listener asks whether its connection is
/// alive, what receipts say, replicas. Without `subscribe` nobody is woken, and a case about it would wait long.
const BESIDE: [&str; 5] = ["+eval", "+ping", "+config|get", "+wait", "+subscribe"];

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let server = Server::start(&[]);
    let with_eval = set_user(&server, &words());
    let open = async |url: String, namespace: &str| {
        let options = RedisOptions { namespace: namespace.to_owned(), ..RedisOptions::new(url) };
        let store = RedisStore::open(options).await.unwrap();
        let _: String = server.command(&["SCRIPT", "FLUSH"]);
        store.get("nothing").await
    };
    assert_eq!(open(with_eval, "test-1").await.unwrap(), None);
    let fewer: Vec<String> = words().into_iter().filter(|word| word != "+eval").collect();
    let error = open(set_user(&server, &fewer), "test-2").await.unwrap_err().to_string();
    assert!(error.contains("does not let this user in"), "{error}");
}

#[test]
fn without_one_of_the_rights_the_suite_fails() {
    let server = Server::start(&[]);
    let all = words();
    let rights: Vec<&String> = all.iter().filter(|word| word.starts_with('+')).collect();
    assert!(rights.len() > 25, "{rights:?}");
    for right in rights.into_iter().filter(|right| !BESIDE.contains(&&right[..])) {
        let fewer: Vec<String> = all.iter().filter(|word| *word != right).cloned().collect();
        let url = set_user(&server, &fewer);
        // Only by its own clock the server is asked what time it is.
        let fixture = |case: &Case| match case.module {
            "stash" => RedisFixture::of(url.clone()),
            _ => RedisFixture::at(url.clone()),
        };
        let fails = |case: &Case| {
            let run = || conformance::run(Arc::new(fixture(case)), *case);
            std::panic::catch_unwind(AssertUnwindSafe(run)).is_err()
        };
        assert!(cases().iter().any(fails), "{right} is not needed");
    }
}

/// The server refuses a command inside a script: that is neither damage nor the caller's fault.
#[tokio::test]
async fn a_right_that_a_script_lacks_is_told_as_such() {
    let server = Server::start(&[]);
    let fewer: Vec<String> = words().into_iter().filter(|word| word != "+xadd").collect();
    let namespace = "test-rights".to_owned();
    let options = RedisOptions { namespace, ..RedisOptions::new(set_user(&server, &fewer)) };
    let store = RedisStore::open(options).await.unwrap();
    let stream = stream(&store).await;
    let refused = store.append(append(&store, &stream, 1)).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Down { reason } if reason.contains("see its ACL")), "{refused}");
}
