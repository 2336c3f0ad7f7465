//! Every exit code, and the words beside it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use super::{at, on, with_stream};
use crate::program::{self, Program};
use crate::seam;

/// A server that answers everything with this.
fn answering(status: &str, body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    seam::beside(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut asked = [0; 4096];
            // A caller that is gone needs no answer.
            if connection.read(&mut asked).is_ok() {
                drop(connection.write_all(answer.as_bytes()));
            }
        }
    });
    address
}

fn problem(status: u16, code: &str) -> String {
    serde_json::json!({
        "type": format!("urn:laneway:error:{code}"), "title": code, "status": status, "detail": "so it is",
        "code": code, "retryable": false,
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_exit_code_has_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    assert_eq!(on(&program, &["stream", "ls"]).code, 0);
    assert_eq!(on(&program, &["stream", "get"]).code, 2, "an argument is missing");
    assert_eq!(on(&program, &["stream", "edit", "orders"]).code, 2, "nothing to change");
    assert_eq!(
        on(&program, &["stream", "create", "orders", "--keep", "soon"]).code,
        2,
        "the server cannot use it"
    );
    assert_eq!(on(&program, &["stream", "get", "nope"]).code, 3);
    assert_eq!(on(&program, &["stream", "create", "orders", "--partitions", "3"]).code, 4);
    let waits =
        on(&program, &["job", "submit", "orders", "1", "--key", "slow", "--delay", "1h", "--wait=1s"]);
    assert_eq!(waits.code, 5, "{}", waits.err);
    assert_eq!(at("http://127.0.0.1:1", &["stream", "ls"]).code, 6);
    let failed = on(&program, &["job", "submit", "orders", "1", "--key", "bad", "--wait=30s"]);
    assert_eq!(failed.code, 7, "{}", failed.err);
    assert_eq!(at(&answering("403 Forbidden", &problem(403, "forbidden")), &["stream", "ls"]).code, 8);
    let internal = answering("500 Internal Server Error", &problem(500, "internal"));
    assert_eq!(at(&internal, &["stream", "ls"]).code, 1);
    assert_eq!(at(&answering("200 OK", "<html>"), &["stream", "ls"]).code, 6, "somebody else listens there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_a_command_with_130() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let args = ["stream", "ls", "--watch=1h", "-o", "jsonl", "--server", program.address()];
    let mut child = program::command(folder.path(), &args).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// One or two lines: what is wrong, and what to do next.
#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_to_do_next() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let check = |args: &[&str], expected: &str| {
        let ran = on(&program, args);
        assert_eq!(ran.err, expected, "{args:?}");
        assert_eq!(ran.out, "", "{args:?}");
    };
    check(
        &["stream", "get", "nope"],
        "laneway: stream \"nope\" does not exist (stream_not_found)\n\
         laneway stream ls shows all; laneway stream create NAME makes one\n",
    );
    check(
        &["job", "submit", "mails", "1"],
        "laneway: stream \"mails\" has no processor (processor_required)\n\
         name it: --processor NAME; laneway processor ls shows all\n",
    );
    check(
        &["stream", "rm", "mails"],
        "laneway: would remove stream mails with its 0 events, and nobody can be asked here\n\
         add --yes to do it, or --dry-run to only look\n",
    );
    check(
        &["event", "get", "mails/17"],
        "laneway: \"mails/17\": is no ref, must be STREAM/PARTITION/ID such as orders/3/17\n",
    );
    check(
        &["stream", "ls", "--watch=often"],
        "laneway: --watch \"often\": must be a number and a unit (us, ms, s, m, h, d, w), such as \"30s\" or \
         \"1h30m\", more than nothing\n",
    );
    check(
        &["stream", "ls", "--token-file", "/nowhere/token"],
        "laneway: --token-file /nowhere/token: No such file or directory (os error 2)\n",
    );
    let gone = at("http://127.0.0.1:1", &["stream", "ls"]);
    assert_eq!(
        gone.err,
        "laneway: no server answers at http://127.0.0.1:1: Connection refused (os error 111)\n\
         start one: laneway dev. Or name another: --server URL, or LANEWAY_SERVER\n"
    );
}
