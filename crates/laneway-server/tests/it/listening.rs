//! Where a server listens: for this machine only, unless everything that others take is there.

use http::Method;
use http::header::HOST;

use crate::program::{Program, run};
use crate::protected::{Token, write_private};
use crate::seam;

fn refusal(args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&["serve", "--store", "memory:"], args].concat());
    assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_address_that_others_can_reach_takes_tokens_and_tls() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let told = refusal(&["--listen", listen]);
        for says in [listen, "--token-file FILE", "--tls-cert FILE --tls-key FILE", "127.0.0.1"] {
            assert!(told.contains(says), "{says}: {told}");
        }
        let told = refusal(&["--listen", listen, "--allow-plaintext"]);
        assert!(told.contains("--token-file") && !told.contains("--tls-cert"), "{told}");
        let told = refusal(&["--listen", listen, "--allow-anonymous"]);
        assert!(!told.contains("--token-file") && told.contains("--tls-cert"), "{told}");
    }
}

/// A name is judged by what it stands for: this machine has one of its own that is not on the loopback device.
#[test]
fn a_name_is_judged_by_its_address() {
    let told = refusal(&["--listen", "no.such.name.invalid:0"]);
    assert!(told.contains("cannot listen on no.such.name.invalid:0"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_others_can_reach_is_called_by_address_or_by_the_names_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let token = Token::new("billing", "read");
    write_private(&folder.path().join("tokens"), &token.line);
    let args = [
        "--listen",
        "0.0.0.0:0",
        "--token-file",
        "tokens",
        "--allow-plaintext",
        "--hosts",
        "queue.example.org",
    ];
    let program = Program::serve_as(folder.path(), &args, &[]).await;
    let client = program.client();
    for (host, status) in
        [("127.0.0.1", 200), ("10.1.2.3:7070", 200), ("queue.example.org", 200), ("evil.example", 403)]
    {
        let answer = client.send(Method::GET, "/livez", &[(HOST, host)], None).await.unwrap();
        assert_eq!(answer.status, status, "{host}: {answer:?}");
    }
    let warned = "tokens and payloads can be read on their way to this address";
    seam::until("it warns", || std::future::ready(program.errors().contains(warned).then_some(()))).await;
    // Plaintext is allowed, being anonymous is not.
    assert_eq!(client.send(Method::GET, "/v1/streams", &[], None).await.unwrap().status, 401);
    program.stop().await;
}

#[test]
fn tokens_that_others_may_read_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    write_private(&tokens, &Token::new("billing", "read").line);
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = run(
        folder.path(),
        &["serve", "--store", "memory:", "--listen", "127.0.0.1:0", "--token-file", "tokens"],
    );
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && told.contains("mode 0644") && told.contains("chmod 600 tokens"),
        "{told}"
    );
}
