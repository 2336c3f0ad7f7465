//! An event that cannot be done: its lane stands, all others go on, and somebody decides.
//!
//! `cargo run -p laneway --example poison`

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laneway::prelude::*;

#[derive(Record, Serialize, Deserialize)]
#[record(key = "account")]
struct Payment {
    account: String,
    cents: i64,
}

impl Payment {
    fn new(account: &str, cents: i64) -> Self {
        Self { account: account.to_owned(), cents }
    }
}

/// A bank that refuses bob until somebody opens his account.
#[derive(Default)]
struct Bank {
    bob_is_open: AtomicBool,
    booked: Mutex<Vec<String>>,
}

impl Bank {
    fn book(&self, payment: &Payment) -> Result<()> {
        if payment.account == "bob" && !self.bob_is_open.load(Ordering::SeqCst) {
            return Err(Error::new("account bob is closed"));
        }
        let booked = format!("{} {}", payment.account, payment.cents);
        self.booked.lock().map_err(|_| Error::new("the bank has crashed"))?.push(booked);
        Ok(())
    }

    fn booked(&self) -> String {
        let booked = self.booked.lock().map(|mut booked| std::mem::take(&mut *booked));
        booked.unwrap_or_default().join(", ")
    }
}

async fn book(Event(payment): Event<Payment>, State(bank): State<Arc<Bank>>) -> Result<()> {
    bank.book(&payment)
}

#[tokio::main]
async fn main() -> Result<()> {
    run(&mut std::io::stdout()).await
}

/// Once with a lane that is parked and retried, once with dead letters that are redriven.
pub(crate) async fn run(out: &mut impl Write) -> Result<()> {
    let bank = Arc::new(Bank::default());
    let app = Laneway::open("memory:").await?.state(Arc::clone(&bank));
    let payments = app.stream::<Payment>("payments");
    let retry = Retry { max_attempts: 3, backoff: Duration::from_millis(10), ..Retry::default() };
    app.processor("book", &payments, book).retry(retry).on_failure(OnFailure::Park);
    app.start().await?;

    let poison = payments.submit_as::<()>(&Payment::new("bob", 1)).await?;
    let behind = payments.submit_as::<()>(&Payment::new("bob", 2)).await?;
    if poison.wait(secs(10)).await.is_err() {
        let status = poison.status().await?;
        writeln!(out, "first  is {} after {} attempts", status.status, status.attempts)?;
    }
    payments.submit_as::<()>(&Payment::new("ann", 3)).await?.wait(secs(10)).await?;
    writeln!(out, "booked {}", bank.booked())?;
    let operations = app.operations("book");
    for lane in operations.parked().await? {
        let key = lane.key.map_or("none".to_owned(), |key| key.to_string());
        writeln!(out, "parked lane {key}: {}", lane.cause)?;
    }
    writeln!(out, "second is {}: {}", behind.status().await?.status, without_ids(&behind.why().await?))?;

    bank.bob_is_open.store(true, Ordering::SeqCst);
    operations.retry("bob").await?;
    poison.wait(secs(10)).await?;
    behind.wait(secs(10)).await?;
    writeln!(out, "booked {}, in order, after a retry", bank.booked())?;
    app.stop(secs(10)).await;

    dead_letters(out).await
}

/// The other policy: what cannot be done is put aside, and its lane goes on.
async fn dead_letters(out: &mut impl Write) -> Result<()> {
    let bank = Arc::new(Bank::default());
    let app = Laneway::open("memory:").await?.state(Arc::clone(&bank));
    let payments = app.stream::<Payment>("payments");
    app.processor("book", &payments, book).retry(Retry::never()).on_failure(OnFailure::DeadLetter);
    app.start().await?;

    let poison = payments.submit_as::<()>(&Payment::new("bob", 4)).await?;
    if poison.wait(secs(10)).await.is_err() {
        writeln!(out, "poison is {}", poison.status().await?.status)?;
    }
    bank.bob_is_open.store(true, Ordering::SeqCst);
    payments.submit_as::<()>(&Payment::new("bob", 5)).await?.wait(secs(10)).await?;
    let operations = app.operations("book");
    for dead in operations.dead_letters().await? {
        writeln!(out, "dead   {}", dead.cause)?;
        operations.redrive_to_tail(&dead.reference).await?;
    }
    payments.submit_as::<()>(&Payment::new("bob", 6)).await?.wait(secs(10)).await?;
    app.stop(secs(10)).await;
    writeln!(out, "booked {}", bank.booked())?;
    Ok(())
}

/// Ids depend on which keys share a partition.
fn without_ids(why: &str) -> String {
    why.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>().replace("event  ", "an event ")
}
