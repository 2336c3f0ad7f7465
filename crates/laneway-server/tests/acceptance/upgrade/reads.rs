//! Everything that can be read of a store, and whether it says the same as before.

use serde_json::{Map, Value, json};

use super::{Fixture, Upgraded};
use crate::support::Http;

/// What depends on who runs, and on what time it is.
const VOLATILE: [&str; 4] = ["why", "running", "next_attempt_at", "since"];
/// Texts longer than this are told by their length and first letter.
const TEXT_MAX: usize = 10_000;

/// Repeats every call that the program before answered. Returns how many there are.
pub(super) async fn compare(store: &Upgraded, http: &Http) -> usize {
    let reads = store.reads.as_object().unwrap();
    let mut different = Vec::new();
    for (path, said) in reads {
        // Its last run emitted to this stream when all this had been read.
        if store.fixture != Fixture::Closed && path.starts_with("/v1/streams/fan") {
            continue;
        }
        let mut said = said.clone();
        if path == "/v1/streams?limit=1000" && store.fixture != Fixture::Closed {
            without_emits(&mut said);
        }
        let mut says = http.get(path).await;
        if path == "/v1/streams?limit=1000" && store.fixture != Fixture::Closed {
            without_emits(&mut says);
        }
        differences(path, &expected(said), &compact(says), &mut different);
    }
    assert!(different.is_empty(), "{:?}: it says something else:\n{}", store.fixture, different.join("\n"));
    reads.len()
}

fn without_emits(streams: &mut Value) {
    streams["items"]
        .as_array_mut()
        .unwrap()
        .retain(|stream| !stream["name"].as_str().unwrap().starts_with("fan"));
}

/// What should be said where something was said before.
fn expected(said: Value) -> Value {
    match said {
        Value::Object(fields) => Value::Object(fields.into_iter().filter_map(expected_field).collect()),
        Value::Array(items) => items.into_iter().map(expected).collect(),
        other => other,
    }
}

fn expected_field((name, said): (String, Value)) -> Option<(String, Value)> {
    // When a schedule is due next, and not where the next page begins.
    let is_volatile = VOLATILE.contains(&name.as_str()) || (name == "next" && said.is_array());
    // The worker's lease is over by now.
    if is_volatile || (name == "status" && said == "running") {
        return None;
    }
    let said = match name.as_str() {
        // More than any policy may ask for today.
        "max_attempts" if said == 4_294_967_295_u32 => json!(1_000_000),
        "backoff_max" if said == "36500d" => json!("366d"),
        _ => expected(said),
    };
    Some((name, said))
}

/// What is not said any more, or said differently. New fields are fine.
fn differences(at: &str, said: &Value, says: &Value, different: &mut Vec<String>) {
    match (said, says) {
        (Value::Object(said), Value::Object(says)) => {
            for (name, said) in said {
                let says = says.get(name).unwrap_or(&Value::Null);
                differences(&format!("{at} {name}"), said, says, different);
            }
        }
        (Value::Array(said), Value::Array(says)) if said.len() == says.len() => {
            for (number, (said, says)) in said.iter().zip(says).enumerate() {
                differences(&format!("{at} {number}"), said, says, different);
            }
        }
        _ if said == says => {}
        _ => different.push(format!("{at}: {said} became {says}")),
    }
}

fn compact(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, compact(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(compact).collect(),
        Value::String(text) if text.len() > TEXT_MAX => json!({"length": text.len(), "of": text[..1]}),
        other => other,
    }
}

/// Events of all streams, their jobs and lanes, processors, schedules and dead letters.
pub(super) async fn all(http: &Http) -> Value {
    let mut all = Map::new();
    let mut paths =
        vec!["/v1/processors".to_owned(), "/v1/schedules".into(), "/v1/dead-letters?limit=1000".into()];
    for stream in http.get("/v1/streams?limit=1000").await["items"].as_array().unwrap() {
        let name = stream["name"].as_str().unwrap();
        // What is reported at a restart is new.
        if name == "_laneway" {
            continue;
        }
        paths.push(format!("/v1/jobs?stream={name}&limit=1000"));
        for processor in stream["processors"].as_array().unwrap() {
            let processor = processor["processor"].as_str().unwrap();
            paths.push(format!("/v1/streams/{name}/lanes?processor={processor}&limit=1000"));
        }
        all.insert(format!("events of {name}"), compact(http.events(name).await.into()));
    }
    for path in paths {
        let said = compact(http.get(&path).await);
        all.insert(path, said);
    }
    Value::Object(all)
}

pub(super) fn assert_same(before: &Value, after: &Value) {
    let mut different = Vec::new();
    differences("", &expected(before.clone()), after, &mut different);
    assert!(different.is_empty(), "a restart changed something:\n{}", different.join("\n"));
}
