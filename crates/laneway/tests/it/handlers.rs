//! Handlers: what their arguments give, what their answers mean.

use std::sync::Arc;

use laneway::engine::handler::{LaneAnswer, Run};
use laneway::handler::Next;
use laneway::prelude::*;
use laneway::testing::App;
use laneway::{Status, Terminal, WaitError};
use parking_lot::Mutex;

#[derive(Record, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[record(key = "lane")]
struct Step {
    lane: String,
    what: String,
}

fn step(lane: &str, what: &str) -> Step {
    Step { lane: lane.to_owned(), what: what.to_owned() }
}

#[derive(Record, Serialize, Deserialize, Debug, PartialEq)]
#[record(key = "lane")]
struct Note {
    lane: String,
    text: String,
}

type Seen = Arc<Mutex<Vec<String>>>;

/// Appends what it is told to the lane's state, and fails or notes as it is told.
async fn write(
    Event(step): Event<Step>,
    mut text: LaneState<String>,
    out: Emit<Note>,
    ctx: Ctx,
) -> Result<String> {
    text.push_str(&step.what);
    out.send(Note { lane: step.lane, text: text.clone() })?;
    match step.what.as_str() {
        "fail" if ctx.attempt() < 3 => Err(Error::new("told to fail")),
        "broken" => Err(Error::permanent("told to break")),
        "forget" => {
            text.remove();
            Ok("forgotten".to_owned())
        }
        _ => Ok(text.clone()),
    }
}

async fn app() -> (App, Stream<Step>, Stream<Note>) {
    let app = App::new();
    let (steps, notes) =
        (app.stream::<Step>("steps").partitions(2), app.stream::<Note>("notes").partitions(2));
    app.processor("write", &steps, write);
    app.start().await.expect("it starts");
    (app, steps, notes)
}

#[tokio::test(start_paused = true)]
async fn failed_attempt_leaves_neither_state_nor_emits() {
    let (app, steps, notes) = app().await;
    let job = steps.submit_as::<String>(&step("a", "fail")).await.expect("submitted");
    assert_eq!(job.wait(mins(10)).await.expect("the third attempt succeeds"), "fail");
    app.run_until_quiet().await;
    assert_eq!(app.sent(&notes).await, [Note { lane: "a".to_owned(), text: "fail".to_owned() }]);
    assert_eq!(job.status().await.expect("kept").attempts, 3);
}

#[tokio::test(start_paused = true)]
async fn permanent_error_gives_up_at_once() {
    let (_app, steps, _) = app().await;
    let job = steps.submit_as::<String>(&step("a", "broken")).await.expect("submitted");
    let error = job.wait(secs(1)).await.expect_err("it fails");
    assert!(matches!(error, WaitError::Parked { cause, .. } if cause == "told to break"));
}

#[tokio::test(start_paused = true)]
async fn removed_state_begins_anew() {
    let (_app, steps, _) = app().await;
    let mut said = Vec::new();
    for what in ["x", "y", "forget", "z"] {
        let job = steps.submit_as::<String>(&step("a", what)).await.expect("submitted");
        said.push(job.wait(secs(10)).await.expect("done"));
    }
    assert_eq!(said, ["x", "xy", "forgotten", "z"]);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_lane_batch_pass_the_state_on() {
    let app = App::new();
    let (steps, _) = (app.stream::<Step>("steps").partitions(1), app.stream::<Note>("notes"));
    steps.send_many(&["a", "b", "c"].map(|what| step("x", what))).await.expect("sent");
    app.processor("write", &steps, write).batch(Batch::lane(10));
    app.start().await.expect("it starts");
    let job = steps.submit_as::<String>(&step("x", "d")).await.expect("submitted");
    assert_eq!(job.wait(secs(10)).await.expect("done"), "abcd");
}

#[tokio::test(start_paused = true)]
async fn batch_that_fails_in_the_middle_settles_what_it_has_done() {
    let (seen, app) = (Seen::default(), App::new());
    let app = app.state(Arc::clone(&seen));
    let steps = app.stream::<Step>("steps").partitions(1);
    steps.send_many(&["a", "b", "c"].map(|what| step("x", what))).await.expect("sent");
    async fn all(batch: LaneBatch<Step>, State(seen): State<Seen>, ctx: Ctx) -> Result<()> {
        for (index, step) in batch.iter().enumerate() {
            if step.what == "b" && ctx.attempt() == 1 {
                return Err(Error::new("not yet"));
            }
            seen.lock().push(step.what.clone());
            batch.done_through(index + 1);
        }
        Ok(())
    }
    app.processor("all", &steps, all);
    app.start().await.expect("it starts");
    app.run_until_quiet().await;
    assert_eq!(*seen.lock(), ["a", "b", "c"], "nothing that was done runs again");
}

#[tokio::test(start_paused = true)]
async fn data_that_is_no_record_is_parked_at_once() {
    #[derive(Record, Serialize, Deserialize)]
    #[record(key = "lane", kind = "step")]
    struct Other {
        lane: u64,
    }
    let (app, steps, _) = app().await;
    app.stream::<Other>("steps").send(&Other { lane: 7 }).await.expect("sent");
    app.run_until_quiet().await;
    let parked = app.operations("write").parked().await.expect("listed");
    assert!(parked[0].cause.starts_with("the event's data is not the JSON it should be: "), "{parked:?}");
    assert_eq!(parked[0].attempts, 1);
    let fine = steps.submit_as::<String>(&step("a", "x")).await.expect("submitted");
    assert_eq!(fine.wait(secs(10)).await.expect("done"), "x");
}

#[tokio::test(start_paused = true)]
async fn layers_run_around_the_handler_the_first_outermost() {
    let (seen, app) = (Seen::default(), App::new());
    let steps = app.stream::<Step>("steps");
    app.stream::<Note>("notes");
    let layer = |name: &'static str| {
        let seen = Arc::clone(&seen);
        move |run: Run, next: Next| {
            let seen = Arc::clone(&seen);
            async move {
                seen.lock().push(format!("{name} in"));
                let answers: Vec<LaneAnswer> = next.run(run).await;
                seen.lock().push(format!("{name} out"));
                answers
            }
        }
    };
    app.processor("write", &steps, write).layer(layer("first")).layer(layer("second"));
    app.start().await.expect("it starts");
    let job = steps.submit_as::<String>(&step("a", "x")).await.expect("submitted");
    job.wait(secs(10)).await.expect("done");
    assert_eq!(*seen.lock(), ["first in", "second in", "second out", "first out"]);
}

#[tokio::test(start_paused = true)]
async fn job_that_takes_longer_than_it_says_fails() {
    #[derive(Job, Serialize, Deserialize)]
    #[job(keyless, output = "()", timeout = "5s")]
    struct Endless;
    async fn never(Job(_): Job<Endless>) -> Result<()> {
        std::future::pending().await
    }
    let app = App::new();
    let endless = app.stream::<Endless>("endless");
    app.processor("never", &endless, never).retry(Retry::never()).on_failure(OnFailure::Drop);
    app.start().await.expect("it starts");
    let job = endless.submit(&Endless).await.expect("submitted");
    let error = job.wait(secs(60)).await.expect_err("it fails");
    assert!(matches!(&error, WaitError::Ended { end: Terminal::Failed, .. }), "{error}");
    assert!(error.to_string().ends_with("timed out after 5s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn kept_lane_state_fails_the_run() {
    async fn keep(Event(_): Event<Step>, text: LaneState<String>, State(kept): State<Kept>) -> Result<()> {
        *kept.0.lock() = Some(text);
        Ok(())
    }
    #[derive(Default)]
    struct Kept(Mutex<Option<LaneState<String>>>);
    let app = App::new().state(Kept::default());
    let steps = app.stream::<Step>("steps");
    app.processor("keep", &steps, keep).on_failure(OnFailure::Drop);
    app.start().await.expect("it starts");
    let job = steps.submit_as::<()>(&step("a", "x")).await.expect("submitted");
    let error = job.wait(secs(10)).await.expect_err("it fails");
    assert!(error.to_string().ends_with("kept its LaneState past the end of its run"), "{error}");
    assert_eq!(job.status().await.expect("kept").status, Status::Ended(Terminal::Failed));
}
