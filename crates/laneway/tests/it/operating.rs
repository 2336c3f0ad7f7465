//! What operators can name, and what they are told when a wish cannot be granted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laneway::prelude::*;
use laneway::testing::App;
use laneway::{EventId, Ref, Status, Terminal};

#[derive(Record, Serialize, Deserialize)]
#[record(key = "account")]
struct Payment {
    account: String,
    cents: i64,
}

/// Refuses nothing but odd amounts.
async fn book(Event(payment): Event<Payment>) -> Result<()> {
    if payment.cents % 2 == 0 { Ok(()) } else { Err(Error::permanent("odd")) }
}

async fn app_with(cents: &[i64]) -> App {
    let app = App::new();
    let payments = app.stream::<Payment>("payments");
    app.processor("book", &payments, book).on_failure(OnFailure::DeadLetter);
    app.start().await.expect("all is declared");
    for cents in cents {
        payments.send(&Payment { account: "a1".to_owned(), cents: *cents }).await.expect("memory takes it");
    }
    app.run_until_quiet().await;
    app
}

#[tokio::test(start_paused = true)]
async fn redrive_into_a_place_that_is_passed_says_why_not() {
    let app = app_with(&[1, 2]).await;
    let operations = app.operations("book");
    let dead = operations.dead_letters().await.unwrap().remove(0);
    let refused = operations.redrive(&dead.reference).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "refused (successors_done): later events of its lane are done: a copy can be sent to the lane's end"
    );
}

#[tokio::test(start_paused = true)]
async fn discarded_dead_letters_are_gone() {
    let app = app_with(&[1, 2, 3, 5]).await;
    let operations = app.operations("book");
    let dead = operations.dead_letters().await.unwrap();
    assert_eq!(dead.len(), 3);
    operations.discard(&dead[0].reference).await.unwrap();
    assert_eq!(operations.dead_letters().await.unwrap().len(), 2);
    operations.discard_lane("a1").await.unwrap();
    assert!(operations.dead_letters().await.unwrap().is_empty());
}

#[derive(Record, Serialize, Deserialize, Debug, PartialEq)]
#[record(keyless)]
struct Visit {
    number: u32,
}

/// Lets nobody in before somebody has opened.
#[derive(Clone, Default)]
struct Door(Arc<AtomicBool>);

async fn visit(Event(visit): Event<Visit>, State(door): State<Door>) -> Result<u32> {
    if door.0.load(Ordering::Relaxed) { Ok(visit.number) } else { Err(Error::permanent("the door is shut")) }
}

async fn app_with_visits(on_failure: OnFailure, count: u32) -> (App, Stream<Visit>, Door) {
    let door = Door::default();
    let app = App::new().state(door.clone());
    let visits = app.stream::<Visit>("visits");
    app.processor("visit", &visits, visit).on_failure(on_failure);
    app.start().await.expect("all is declared");
    for number in 0..count {
        visits.send(&Visit { number }).await.expect("memory takes it");
    }
    app.run_until_quiet().await;
    (app, visits, door)
}

async fn status(app: &App, reference: &Ref) -> Status {
    app.engine().looker().event(reference).await.expect("it is kept").statuses[0].status
}

#[tokio::test(start_paused = true)]
async fn parked_event_without_a_key_is_skipped_or_retried_by_its_name() {
    let (app, _, door) = app_with_visits(OnFailure::Park, 3).await;
    let operations = app.operations("visit");
    let parked = operations.parked().await.unwrap();
    let names: Vec<Ref> = parked.iter().map(|lane| lane.head.clone().expect("it is the event")).collect();
    assert_eq!((names.len(), &parked[0].key), (3, &None));
    operations.skip_event(&names[0]).await.unwrap();
    operations.retry_event(&names[1]).await.unwrap();
    app.run_until_quiet().await;
    assert_eq!(status(&app, &names[0]).await, Status::Ended(Terminal::Skipped));
    assert_eq!(status(&app, &names[1]).await, Status::Parked, "the door is shut");
    door.0.store(true, Ordering::Relaxed);
    operations.retry_event(&names[1]).await.unwrap();
    app.run_until_quiet().await;
    assert_eq!(status(&app, &names[1]).await, Status::Ended(Terminal::Done));
    assert_eq!(status(&app, &names[2]).await, Status::Parked, "nobody asked for it");
    let again = operations.skip_event(&names[1]).await.unwrap_err();
    let done = format!("event {} is done for processor \"visit\", must be parked or retrying", names[1]);
    assert_eq!(again.to_string(), done);
}

#[tokio::test(start_paused = true)]
async fn head_of_a_lane_with_a_key_has_a_name_too() {
    let app = App::new();
    let payments = app.stream::<Payment>("payments");
    app.processor("book", &payments, book);
    app.start().await.expect("all is declared");
    for cents in [1, 3, 4] {
        payments.send(&Payment { account: "a1".to_owned(), cents }).await.expect("memory takes it");
    }
    app.run_until_quiet().await;
    let operations = app.operations("book");
    let first = operations.parked().await.unwrap().remove(0).head.expect("odd");
    let second = Ref { id: EventId(first.id.0 + 1), ..first.clone() };
    let waits = operations.skip_event(&second).await.unwrap_err().to_string();
    assert!(waits.contains("is waiting for processor"), "its turn has not come: {waits}");
    operations.skip_event(&first).await.unwrap();
    app.run_until_quiet().await;
    operations.skip_event(&second).await.unwrap();
    app.run_until_quiet().await;
    assert!(operations.parked().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn dead_letter_without_a_key_is_redriven_or_discarded_by_its_name() {
    let (app, visits, door) = app_with_visits(OnFailure::DeadLetter, 3).await;
    let operations = app.operations("visit");
    let dead: Vec<Ref> =
        operations.dead_letters().await.unwrap().into_iter().map(|dead| dead.reference).collect();
    assert_eq!(dead.len(), 3);
    door.0.store(true, Ordering::Relaxed);
    operations.redrive(&dead[0]).await.unwrap();
    operations.redrive_to_tail(&dead[1]).await.unwrap();
    operations.discard(&dead[2]).await.unwrap();
    app.run_until_quiet().await;
    assert!(operations.dead_letters().await.unwrap().is_empty());
    assert_eq!(status(&app, &dead[0]).await, Status::Ended(Terminal::Done));
    assert_eq!(app.sent(&visits).await.len(), 4, "a copy of the second");
    let gone = operations.discard(&dead[2]).await.unwrap_err().to_string();
    assert_eq!(gone, format!("event {} is no dead letter of processor \"visit\"", dead[2]));
    let elsewhere = Ref { stream: "payments".to_owned(), ..dead[0].clone() };
    let wrong = operations.redrive(&elsewhere).await.unwrap_err().to_string();
    let limit = "an event of stream visits, which visit processes";
    assert_eq!(wrong, format!("reference is {elsewhere}, must be {limit}"));
}
