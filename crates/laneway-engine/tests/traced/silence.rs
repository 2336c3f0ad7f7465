//! What is told carries no key and no payload, whatever happens.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::StreamSettings;
use laneway_core::{Mode, Partition, Shard};
use laneway_embedded::MemoryStore;
use laneway_engine::handler::{LaneAnswer, LaneRun, OnFailure, Policy, Retry, Run};
use laneway_engine::log::Appending;
use laneway_engine::service::TokioClock;
use laneway_engine::{Engine, Env, ProcessorSettings, Stores};
use tracing::Level;

use crate::faulty::{Call, Faulty};
use crate::recorder::Told;
use crate::seam;
use crate::subscriber::Heard;
use crate::world::{SOON, draft};

const KEY: &str = "canary-key";
const DATA: &str = "canary-data";

fn misbehave(lane: &LaneRun) -> LaneAnswer {
    let event = &lane.events[0];
    let text = String::from_utf8_lossy(&event.data).into_owned();
    match text.split(' ').next() {
        Some("panics") => panic!("{text}"),
        Some("fails") if lane.attempt < 2 => LaneAnswer::failed(text, Retry::ByPolicy),
        Some("breaks") => LaneAnswer::failed(text, Retry::Never),
        // The store faults while it is put aside.
        Some("grows") => LaneAnswer::done(Some(text.repeat(100_000).into())),
        _ => LaneAnswer::all_done(lane),
    }
}

/// Failures, panics, parks, dead letters and faults of the store, all of them with a key and data to be looked for.
async fn misadventures() -> Vec<laneway_core::Status> {
    let clock = Arc::new(TokioClock::start());
    let inner = Arc::new(MemoryStore::new(clock.clone()));
    let faulty = Faulty::new(inner.clone());
    let stores = Stores { store: faulty.clone(), documents: inner.clone(), wakeups: inner };
    let engine = Engine::new(stores, Env::seeded(clock, 7));
    let mut statuses = Vec::new();
    for (stream, on_failure) in [("parks", OnFailure::Park), ("buries", OnFailure::DeadLetter)] {
        let settings = StreamSettings { partitions: 1, mode: Mode::Queue, ..StreamSettings::default() };
        let info = engine.define_stream(stream, settings).await.expect("a new stream");
        let policy = Policy { max_attempts: 3, on_failure, ..Policy::default() };
        let settings = ProcessorSettings { policy, ..ProcessorSettings::default() };
        let handler = |run: Run| async move { run.lanes.iter().map(misbehave).collect::<Vec<_>>() };
        engine.process(&format!("handle-{stream}"), stream, settings, Arc::new(handler)).await.expect("new");
        let mut jobs = Vec::new();
        for what in ["panics", "fails", "breaks", "works", "grows"] {
            let draft = draft(&format!("{KEY}-{what}"), &format!("{what} {DATA}"));
            if what == "grows" {
                faulty.arm(Call::Stash);
            }
            let job = laneway_engine::job::Submit { draft, processor: None, keep: None };
            let submitted = engine.jobs().submit(stream, vec![job]).await.expect("the stream exists");
            jobs.push(submitted.into_iter().next().expect("one").expect("the store takes it").id);
        }
        seam::wait(SOON).await;
        faulty.arm(Call::Read(Shard { stream: info.id, partition: Partition(0) }));
        let again = Appending { drafts: vec![draft(KEY, DATA)], object: None };
        engine.producer().append(stream, again).await.expect("the stream exists");
        seam::wait(SOON).await;
        assert!(faulty.has_panicked(), "the store faulted");
        for job in jobs {
            statuses.push(engine.jobs().get(job).await.expect("it is there").status.status());
        }
    }
    engine.drain(Duration::from_secs(5)).await;
    statuses
}

#[tokio::test(start_paused = true)]
async fn no_key_and_no_payload_is_told_above_trace() {
    let (heard, told) = (Heard::new(), Told::default());
    let listening = (heard.listen(), told.listen());
    misadventures().await;
    drop(listening);
    let lines = heard.lines();
    assert!(lines.iter().any(|line| line.level == Level::ERROR), "faults were told: {lines:?}");
    assert!(told.sum("laneway_faults_total", "run") > 0.0, "and counted");
    let runs = heard.spans("process");
    let kinds: BTreeSet<&str> = runs.iter().filter_map(|span| span.field("error.type")).collect();
    assert_eq!(
        kinds,
        BTreeSet::from(["handler", "panic"]),
        "a span names the kind of a failure, and nothing else of it"
    );
    let all = [heard.above(Level::TRACE), told.label_values()].concat();
    assert!(all.len() > 50, "much was told");
    let leaks: Vec<&String> = all.iter().filter(|text| text.contains("canary")).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_told_changes_what_happens() {
    let (heard, told) = (Heard::new(), Told::default());
    let quiet = misadventures().await;
    assert!(heard.lines().is_empty(), "nobody listens yet");
    let listening = (heard.listen(), told.listen());
    let loud = misadventures().await;
    drop(listening);
    assert!(!heard.lines().is_empty());
    assert_eq!(quiet, loud);
}
