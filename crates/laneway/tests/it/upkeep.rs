//! What an app does by itself once it is started: retention, schedules, reports; and jobs in batches.

use laneway::prelude::*;
use laneway::testing::App;
use laneway::{CatchUp, EventId, JobError, Overlap, Partition, SubmitError, WaitError};

#[derive(Record, Serialize, Deserialize, Debug, PartialEq)]
#[record(key = "account")]
struct Payment {
    account: String,
    cents: i64,
}

async fn book(Event(payment): Event<Payment>, ctx: Ctx) -> Result<String> {
    if payment.cents < 0 {
        return Err(Error::permanent("the account is closed"));
    }
    Ok(ctx.caller().unwrap_or("nobody").to_owned())
}

fn payment(account: &str, cents: i64) -> Payment {
    Payment { account: account.to_owned(), cents }
}

async fn started() -> (App, Stream<Payment>) {
    let app = App::new();
    let payments = app.stream::<Payment>("payments").partitions(1).keep(mins(1));
    app.processor("book", &payments, book);
    app.start().await.expect("nothing is wrong");
    (app, payments)
}

#[tokio::test(start_paused = true)]
async fn started_app_removes_what_retention_allows() {
    let (app, payments) = started().await;
    payments.send(&payment("a1", 5)).await.expect("sent");
    app.run_until_quiet().await;
    assert_eq!(app.sent(&payments).await, [payment("a1", 5)]);
    app.advance(mins(5)).await;
    assert!(app.sent(&payments).await.is_empty(), "a minute has passed");
}

#[tokio::test(start_paused = true)]
async fn started_app_reports_parked_lanes() {
    let (app, payments) = started().await;
    payments.send(&payment("a1", -5)).await.expect("sent");
    app.run_until_quiet().await;
    let looker = app.engine().looker();
    let reports = looker.events("_laneway", Partition(0), EventId(0), 10).await.expect("it is there");
    let kinds: Vec<_> = reports.events.iter().map(|view| view.event.kind.as_str()).collect();
    assert_eq!(kinds, ["lane.parked"]);
}

#[tokio::test(start_paused = true)]
async fn schedule_fires_while_the_app_runs_and_goes_on_when_it_is_started_again() {
    let (app, payments) = started().await;
    let tick = payment("tick", 1);
    app.schedule("tick", &payments, &tick)
        .every(secs(10))
        .catch_up(CatchUp::All { max: 100 })
        .await
        .expect("put");
    app.advance(secs(35)).await;
    let fired = app.sent(&payments).await.len();
    assert!((3..=4).contains(&fired), "every ten seconds, {fired}");
    app.stop(secs(1)).await;
    app.advance(secs(100)).await;
    app.start().await.expect("nothing is wrong");
    app.schedule("tick", &payments, &tick)
        .every(secs(10))
        .catch_up(CatchUp::All { max: 100 })
        .await
        .expect("put");
    app.advance(secs(5)).await;
    let caught_up = app.sent(&payments).await.len();
    assert!(caught_up >= fired + 10, "said again, it is the same schedule and has missed ten: {caught_up}");
}

#[tokio::test(start_paused = true)]
async fn paused_schedule_stays_paused_when_a_program_says_it_again() {
    let (app, payments) = started().await;
    let tick = payment("tick", 1);
    let all = CatchUp::All { max: 100 };
    let declare = async || {
        let declared = app.schedule("tick", &payments, &tick).every(secs(10)).catch_up(all).await;
        declared.expect("put");
        app.schedules().get("tick").await.expect("it is there")
    };
    declare().await;
    app.schedules().pause("tick").await.expect("paused");
    let paused = app.schedules().get("tick").await.expect("it is there");
    app.advance(secs(35)).await;
    let again = declare().await;
    assert!(again.paused, "somebody paused it, and nobody resumed it");
    assert_eq!(again.since, paused.since);
    app.advance(secs(35)).await;
    assert!(app.sent(&payments).await.is_empty());
    app.schedules().resume("tick").await.expect("resumed");
    app.advance(secs(15)).await;
    assert_eq!(app.sent(&payments).await.len(), 1, "what was due meanwhile is not made up for");
    assert!(!declare().await.paused);
}

#[tokio::test(start_paused = true)]
async fn schedule_whose_firings_would_not_be_newer_is_refused() {
    #[derive(Record, Serialize, Deserialize)]
    #[record(key = "pod", generation = "revision", incarnation = "life", deleted = "gone")]
    struct Pod {
        pod: String,
        revision: Option<u64>,
        life: u64,
        gone: bool,
    }
    let app = App::new();
    let (pods, all) = (app.stream::<Pod>("pods").mode(Mode::Latest), app.stream::<Pod>("all"));
    let check = async |revision, life, gone, wrong: &str| {
        let pod = Pod { pod: "web".to_owned(), revision, life, gone };
        let refused = app.schedule("sync", &pods, &pod).every(mins(1)).await.expect_err("one state for ever");
        let limit = "absent in a schedule where the newest wins, because all its firings would be the same";
        assert_eq!(refused.to_string(), format!("{wrong}, must be {limit}"));
        app.schedule("sync", &all, &pod).every(mins(1)).await.expect("where all run it means nothing");
    };
    check(Some(7), 0, false, "generation is 7").await;
    check(None, 2, false, "incarnation is 2").await;
    check(None, 0, true, "deleted is true").await;
    let plain = Pod { pod: "web".to_owned(), revision: None, life: 0, gone: false };
    app.schedule("sync", &pods, &plain).every(mins(1)).await.expect("each firing is newer by itself");
}

#[tokio::test(start_paused = true)]
async fn impossible_schedules_are_refused_by_what_is_wrong() {
    let (app, payments) = started().await;
    let tick = payment("tick", 1);
    let check =
        |error: laneway::ScheduleError, text: &str| assert!(error.to_string().contains(text), "{error}");
    let never = app.schedule("tick", &payments, &tick).await.expect_err("no time");
    check(never, "schedule is \"tick\", must be given a time, by cron or every");
    let nowhere = app.schedule("tick", &payments, &tick).cron("0 3 * * *", "Europe/Nowhere").await;
    check(nowhere.expect_err("no zone"), "Europe/Nowhere");
    let skips = app.schedule("tick", &payments, &tick).every(secs(5)).overlap(Overlap::Skip).await;
    check(skips.expect_err("no job to look at"), "overlap is skip");
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_schedule_can_be_waited_for_and_a_batch_too() {
    let (app, payments) = started().await;
    app.schedule("tick", &payments, &payment("tick", 1)).every(days(1)).processor("book").await.expect("put");
    let job = app.schedules().run_now("tick").await.expect("fired").expect("it makes jobs");
    assert_eq!(app.job::<String>(job).wait(secs(10)).await.expect("done"), "nobody");
    let records = [payment("a1", 1), payment("a2", 2), payment("a1", 3)];
    let batch =
        payments.submit_many_as::<String>(&records).caller("ann").idempotency_key("b1").await.expect("made");
    let results = batch.wait(secs(10)).await;
    let callers: Vec<String> = results.into_iter().map(|result| result.expect("done")).collect();
    assert_eq!(callers, ["ann"; 3]);
    let again =
        payments.submit_many_as::<String>(&records).caller("ann").idempotency_key("b1").await.expect("same");
    assert_eq!(again.id(), batch.id());
    let other = [payment("a1", 1), payment("a2", 9), payment("a1", 3)];
    let other = payments.submit_many_as::<String>(&other).caller("ann").idempotency_key("b1").await;
    assert!(matches!(other, Err(SubmitError::Job(JobError::OtherBody { .. }))), "{other:?}");
    batch.cancel().await.expect("all have ended, and that is fine");
}

#[tokio::test(start_paused = true)]
async fn results_are_kept_as_their_stream_says_unless_the_job_says_otherwise() {
    let app = App::new();
    let payments = app.stream::<Payment>("payments").partitions(1).keep_done(mins(5));
    app.processor("book", &payments, book);
    app.start().await.expect("nothing is wrong");
    let job = payments.submit_as::<String>(&payment("a1", 1)).await.expect("made");
    let longer = payments.submit_as::<String>(&payment("a1", 2)).keep(hours(1)).await.expect("made");
    let many = payments.submit_many_as::<String>(&[payment("a1", 3)]).await.expect("made");
    app.schedule("tick", &payments, &payment("a1", 4)).every(days(1)).processor("book").await.expect("put");
    let fired = app.schedules().run_now("tick").await.expect("fired").expect("it makes jobs");
    let fired = app.job::<String>(fired);
    fired.wait(secs(10)).await.expect("done, and all before it");
    app.advance(mins(4)).await;
    for job in [&job, &longer, &fired, &many.jobs()[0]] {
        job.wait(secs(1)).await.expect("kept for five minutes");
    }
    app.advance(mins(2)).await;
    for job in [&job, &fired, &many.jobs()[0]] {
        let gone = job.wait(secs(1)).await.expect_err("five minutes are over");
        assert!(matches!(gone, WaitError::Job(JobError::Gone(_))), "{gone}");
    }
    longer.wait(secs(1)).await.expect("kept for an hour");
    let never = app.stream::<Payment>("other").keep_done(secs(0)).send(&payment("a1", 5)).await;
    let limit = "keep_done is 0, must be more than nothing, or no result could be read";
    assert_eq!(never.expect_err("no result could be read").to_string(), limit);
}

#[tokio::test(start_paused = true)]
async fn ended_job_is_retried_as_another() {
    let (app, payments) = started().await;
    let job = payments.submit_as::<String>(&payment("a1", 5)).caller("ann").await.expect("made");
    job.wait(secs(10)).await.expect("done");
    let again = job.retry().await.expect("ended");
    assert_ne!(again.id(), job.id());
    assert_eq!(again.wait(secs(10)).await.expect("done"), "ann", "on the same behalf");
    app.stop(secs(1)).await;
}
