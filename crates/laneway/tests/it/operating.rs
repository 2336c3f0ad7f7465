//! What operators are told when a wish cannot be granted.

use laneway::prelude::*;
use laneway::testing::App;

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
    let refused = operations.redrive("a1", dead.reference.id).await.unwrap_err().to_string();
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
    operations.discard("a1", dead[0].reference.id).await.unwrap();
    assert_eq!(operations.dead_letters().await.unwrap().len(), 2);
    operations.discard_lane("a1").await.unwrap();
    assert!(operations.dead_letters().await.unwrap().is_empty());
}
