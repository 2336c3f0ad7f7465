//! Tokens and scopes: who may call what, and that no call is forgotten.

use http::Method;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use laneway_client::{Answer, Client};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::Program;
use crate::protected::{Token, serve_with_tokens, write_private};
use crate::seam;

async fn call(client: &Client, method: &Method, path: &str, token: Option<&Token>) -> Answer {
    let bearer = token.map(|token| format!("Bearer {}", token.secret));
    let headers: Vec<_> = bearer.iter().map(|bearer| (AUTHORIZATION, bearer.as_str())).collect();
    let body = (*method != Method::GET).then(|| b"{}".to_vec());
    client.send(method.clone(), path, &headers, body).await.unwrap()
}

fn code(answer: &Answer) -> String {
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    told["code"].as_str().unwrap_or_default().to_owned()
}

/// Every call of the description, with its path filled in.
async fn all_calls(client: &Client, token: &Token) -> Vec<(Method, String)> {
    let answer = call(client, &Method::GET, "/openapi.json", Some(token)).await;
    let described: Value = serde_json::from_slice(&answer.body).unwrap();
    let mut calls = Vec::new();
    for (path, item) in described["paths"].as_object().unwrap() {
        let filled: Vec<&str> =
            path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
        for method in item.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            calls.push((method, filled.join("/")));
        }
    }
    calls
}

/// What a reader of the documentation expects.
fn expected(method: &Method, path: &str) -> &'static str {
    let last = path.rsplit('/').next().unwrap_or_default();
    match last {
        _ if *method == Method::GET => "read",
        "query" => "read",
        "claim" | "settle" | "extend" => "work",
        "events" | "jobs" => "write",
        _ if path.starts_with("/v1/jobs") => "write",
        _ => "admin",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_refuses_without_a_token_and_with_each_lacking_scope() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = ["read", "write", "work", "admin"].map(|scope| Token::new(scope, scope));
    let program = serve_with_tokens(folder.path(), &tokens).await;
    let client = program.client();
    let calls = all_calls(&client, &tokens[0]).await;
    assert!(calls.len() > 20, "{calls:?}");
    for (method, path) in calls {
        let without = call(&client, &method, &path, None).await;
        if matches!(path.as_str(), "/livez" | "/readyz" | "/startupz") {
            assert!(without.status == 200 && &without.body[..] == b"ok\n", "{path} says only that it is up");
            continue;
        }
        assert_eq!(
            (without.status.as_u16(), code(&without).as_str()),
            (401, "token_required"),
            "{method} {path}"
        );
        assert_eq!(without.headers[WWW_AUTHENTICATE], "Bearer realm=\"laneway\"");
        for token in &tokens {
            let answer = call(&client, &method, &path, Some(token)).await;
            let refused = code(&answer) == "scope_required";
            let needs = expected(&method, &path);
            assert_eq!(refused, token.name != needs, "{method} {path} with {}: {answer:?}", token.name);
            if refused {
                let told = String::from_utf8_lossy(&answer.body).into_owned();
                assert!(answer.status == 403 && told.contains(&format!("the call needs {needs}")), "{told}");
            } else {
                assert_ne!(answer.status, 401, "{method} {path}");
            }
        }
    }
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_wrong_in_any_way_is_refused_alike() {
    let folder = tempfile::tempdir().unwrap();
    let token = Token::new("billing", "read");
    let program = serve_with_tokens(folder.path(), std::slice::from_ref(&token)).await;
    let client = program.client();
    let secret = &token.secret;
    let wrong = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {secret}"),
        format!("Bearer {}", &secret[1..]),
        format!("Bearer {secret}x"),
        format!("Bearer {} {secret}", "x".repeat(43)),
    ];
    let mut told = Vec::new();
    for header in &wrong {
        let headers = [(AUTHORIZATION, header.as_str())];
        let answer = client.send(Method::GET, "/v1/streams", &headers, None).await.unwrap();
        assert_eq!(answer.status, 401, "{header:?}");
        told.push(answer.body);
    }
    let twice = format!("Bearer {secret}");
    let twice = [(AUTHORIZATION, twice.as_str()), (AUTHORIZATION, twice.as_str())];
    assert_eq!(client.send(Method::GET, "/v1/streams", &twice, None).await.unwrap().status, 401);
    told.dedup();
    assert_eq!(told.len(), 1, "the answer does not say what was wrong");
    // There is no such call, and only callers learn that.
    assert_eq!(call(&client, &Method::GET, "/v1/nothing", None).await.status, 401);
    assert_eq!(call(&client, &Method::GET, "/v1/nothing", Some(&token)).await.status, 404);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_knows_the_token_that_submitted_it() {
    let folder = tempfile::tempdir().unwrap();
    let token = Token::new("billing", "read,write,work,admin");
    let program = serve_with_tokens(folder.path(), std::slice::from_ref(&token)).await;
    let client = program.client();
    let bearer = format!("Bearer {}", token.secret);
    let send = |method: Method, path: &'static str, body: Value| {
        let (client, bearer) = (client.clone(), bearer.clone());
        async move {
            let headers = [(AUTHORIZATION, bearer.as_str())];
            let answer =
                client.send(method, path, &headers, Some(body.to_string().into_bytes())).await.unwrap();
            assert!(answer.status.is_success(), "{path}: {answer:?}");
            serde_json::from_slice::<Value>(&answer.body).unwrap()
        }
    };
    send(Method::PUT, "/v1/streams/orders", json!({"partitions":1})).await;
    send(Method::PUT, "/v1/processors/charge", json!({"stream":"orders","pull":true})).await;
    send(Method::POST, "/v1/streams/orders/jobs", json!({"key":"a","data":1})).await;
    let claims = send(Method::POST, "/v1/processors/charge/claim", json!({"wait":"20s"})).await;
    let headers = &claims["claims"][0]["events"][0]["headers"];
    assert_eq!(headers["laneway-caller"], "billing", "{claims}");
    program.stop().await;
}

/// Old and new token are valid together; the old one ends when its line is gone; a file that cannot be used changes
/// nothing.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_rotated_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Token::new("billing", "read"), Token::new("billing", "read"));
    let program = serve_with_tokens(folder.path(), std::slice::from_ref(&old)).await;
    let client = program.client();
    let status =
        async |token: &Token| call(&client, &Method::GET, "/v1/streams", Some(token)).await.status.as_u16();
    assert_eq!((status(&old).await, status(&new).await), (200, 401));
    let file = folder.path().join("tokens");
    let becomes = async |what: &str, old_status: u16, new_status: u16| {
        program.signal(Signal::HUP);
        seam::until(what, async || {
            (status(&old).await == old_status && status(&new).await == new_status).then_some(())
        })
        .await;
    };
    write_private(&file, &format!("{}\n{}\n", old.line, new.line));
    becomes("the new token beside the old one", 200, 200).await;
    write_private(&file, &new.line);
    becomes("the end of the old token", 401, 200).await;

    write_private(&file, "billing read\n");
    program.signal(Signal::HUP);
    seam::until("the refusal of the file", async || {
        program.errors().contains("tokens, line 1: has 2 words").then_some(())
    })
    .await;
    assert_eq!(status(&new).await, 200, "what was valid stays valid");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_answers_and_changes_and_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    let put = |path: &'static str, body: Value| {
        let client = client.clone();
        async move { client.send(Method::PUT, path, &[], Some(body.to_string().into_bytes())).await.unwrap() }
    };
    assert_eq!(put("/v1/streams/orders", json!({"partitions":1})).await.status, 201);
    assert_eq!(put("/v1/processors/charge", json!({"stream":"orders","pull":true})).await.status, 201);
    program.stop().await;

    let program = Program::serve_as(folder.path(), &["--read-only"], &[]).await;
    let client = program.client();
    for (method, path) in [
        (Method::PUT, "/v1/streams/more"),
        (Method::DELETE, "/v1/streams/orders"),
        (Method::POST, "/v1/streams/orders/events"),
        (Method::POST, "/v1/processors/charge/claim"),
        (Method::POST, "/v1/processors/charge/pause"),
    ] {
        let answer = call(&client, &method, path, None).await;
        assert_eq!((answer.status.as_u16(), code(&answer).as_str()), (403, "read_only"), "{method} {path}");
    }
    assert_eq!(call(&client, &Method::GET, "/v1/streams/orders", None).await.status, 200);
    assert_eq!(call(&client, &Method::GET, "/v1/streams/more", None).await.status, 404);
    program.stop().await;
}
