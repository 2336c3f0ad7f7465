//! Spans of sends and runs, and the trace context that travels from producer to handler and on with what it emits.

use std::sync::Arc;

use laneway_core::{Draft, Headers, Mode, StreamSettings};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{Done, Emission, LaneAnswer, Retry, Run};
use laneway_engine::job::{By, JobError, Submit};
use laneway_engine::log::Appending;
use laneway_engine::observe::TraceContext;
use parking_lot::Mutex;

use crate::seam;
use crate::subscriber::{self, Heard};
use crate::world::{SOON, World, draft};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-11111111111111111111111111111111-b7ad6b7169203331-01";

fn context(text: &str) -> TraceContext {
    TraceContext::parse(text, Some("vendor=1")).expect("it is valid")
}

fn with_parent(text: &str, draft: Draft) -> Draft {
    Draft { headers: Headers::new([("traceparent", text)]).expect("short"), ..draft }
}

/// A handler that emits to the next stream, with what its events carried.
async fn relay(world: &World, carried: &Arc<Mutex<Vec<String>>>) {
    let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
    world.engine.define_stream("mails", settings).await.expect("a new stream");
    for (processor, stream, next) in [("charge", "orders", Some("mails")), ("mail", "mails", None)] {
        let carried = Arc::clone(carried);
        let handler = move |run: Run| {
            let carried = Arc::clone(&carried);
            async move {
                let event = run.lanes[0].events[0].clone();
                let text =
                    |name| String::from_utf8_lossy(event.headers.get(name).unwrap_or(b"none")).into_owned();
                let here =
                    TraceContext::current().map_or("none".to_owned(), |here| here.trace_id()[..4].to_owned());
                carried.lock().push(format!(
                    "{stream} {} {} {here}",
                    text("traceparent"),
                    text("tracestate")
                ));
                let emits =
                    next.map(|next| Emission { stream: next.to_owned(), draft: draft("ann", "mail") });
                if event.data == "fail" {
                    return vec![LaneAnswer::failed("no", Retry::Never)];
                }
                let done = vec![Done { result: None, emits: emits.into_iter().collect() }];
                vec![LaneAnswer { done, ..LaneAnswer::default() }]
            }
        };
        let settings = ProcessorSettings::default();
        world.engine.process(processor, stream, settings, Arc::new(handler)).await.expect("new");
    }
}

async fn send(world: &World, draft: Draft) {
    let sent =
        world.engine.producer().append("orders", Appending { drafts: vec![draft], object: None }).await;
    sent.expect("the stream exists").pop().expect("one").receipt.expect("the store takes it");
}

#[tokio::test(start_paused = true)]
async fn trace_goes_from_the_producer_through_the_handler_to_what_it_emits() {
    let heard = Heard::new();
    let _listening = heard.listen();
    let world = World::with_partitions(Mode::Queue, 1).await;
    let carried = Arc::default();
    relay(&world, &carried).await;
    context(PARENT).within(send(&world, draft("ann", "1"))).await;
    seam::wait(SOON).await;
    let both = format!("{PARENT} vendor=1 0af7");
    assert_eq!(*carried.lock(), [format!("orders {both}"), format!("mails {both}")]);
    let runs = heard.spans("process");
    let fields = |told: &subscriber::Told, names: &[&str]| {
        names.iter().map(|name| told.field(name).unwrap_or("none").to_owned()).collect::<Vec<_>>()
    };
    let about = [
        "otel.name",
        "otel.kind",
        "messaging.system",
        "messaging.operation.type",
        "messaging.destination.name",
        "messaging.destination.partition.id",
        "messaging.consumer.group.name",
        "messaging.message.id",
        "messaging.batch.message_count",
        "laneway.attempt",
        "error.type",
        "traceparent",
    ];
    let first =
        ["process orders", "consumer", "laneway", "process", "orders", "0", "charge", "1", "1", "1", "none"];
    assert_eq!(fields(&runs[0], &about), [&first[..], &[PARENT]].concat());
    assert_eq!(fields(&runs[1], &["otel.name", "traceparent"]), ["process mails", PARENT]);
    let sends = heard.spans("send");
    let about = ["otel.name", "otel.kind", "messaging.system", "messaging.operation.type"];
    assert_eq!(fields(&sends[0], &about), ["send orders", "producer", "laneway", "send"]);
}

#[tokio::test(start_paused = true)]
async fn context_of_its_own_goes_before_and_one_that_is_not_valid_counts_as_none() {
    let heard = Heard::new();
    let _listening = heard.listen();
    let world = World::with_partitions(Mode::Queue, 1).await;
    let carried = Arc::default();
    relay(&world, &carried).await;
    context(PARENT).within(send(&world, with_parent(OTHER, draft("ann", "1")))).await;
    seam::wait(SOON).await;
    send(&world, with_parent("00-what", draft("ann", "fail"))).await;
    seam::wait(SOON).await;
    let own = format!("{OTHER} none 1111");
    let invalid = "orders 00-what none none".to_owned();
    assert_eq!(*carried.lock(), [format!("orders {own}"), format!("mails {own}"), invalid]);
    let last = heard.spans("process").pop().expect("it ran");
    assert_eq!((last.field("traceparent"), last.field("error.type")), (None, Some("handler")));
}

#[tokio::test(start_paused = true)]
async fn two_tries_of_one_submission_may_belong_to_two_traces() {
    let _heard = Heard::new();
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings::default()).await;
    let by = By { idempotency_key: Some("once".into()), ..By::default() };
    let submit = async |draft: Draft| {
        let job = Submit { draft, processor: None, keep: None };
        world.engine.jobs().submit_one("orders", job, &by).await
    };
    let first = submit(with_parent(PARENT, draft("ann", "1"))).await.expect("a new one");
    let again = submit(with_parent(OTHER, draft("ann", "1"))).await.expect("the same");
    let within = context(PARENT).within(submit(draft("ann", "1"))).await.expect("the same");
    assert_eq!([again.id, within.id], [first.id; 2]);
    let other = submit(draft("ann", "2")).await.expect_err("another body");
    assert!(matches!(other, JobError::OtherBody { .. }), "{other}");
}

#[test]
fn only_valid_trace_parents_are_taken() {
    let parse = |text: &str| TraceContext::parse(text, None).map(|found| found.traceparent().to_owned());
    assert_eq!(parse(PARENT).as_deref(), Some(PARENT));
    let newer = PARENT.replacen("00", "cc", 1) + "-what-comes";
    assert_eq!(parse(&newer).as_deref(), Some(PARENT), "of a newer version, what is known");
    for wrong in [
        "",
        "00",
        &PARENT[..54],
        &format!("{PARENT}-more"),
        &PARENT.to_uppercase(),
        &PARENT.replacen("00", "ff", 1),
        &PARENT.replacen("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32), 1),
        &PARENT.replacen("b7ad6b7169203331", &"0".repeat(16), 1),
        &PARENT.replacen('-', "_", 1),
        "00-0af7651916cd43dd8448eb211c80319é-b7ad6b716920333-01",
    ] {
        assert_eq!(parse(wrong), None, "{wrong:?}");
    }
    let state = |text: &str| {
        TraceContext::parse(PARENT, Some(text)).and_then(|found| found.tracestate().map(str::to_owned))
    };
    assert_eq!(state("a=1,b=2").as_deref(), Some("a=1,b=2"));
    assert_eq!([state(""), state(&"x".repeat(513)), state("a=\u{e9}")], [None, None, None]);
}
