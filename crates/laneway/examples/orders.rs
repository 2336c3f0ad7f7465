//! Orders of customers: in order per customer, with a state per customer, and an event when somebody passes a limit.
//!
//! `cargo run -p laneway --example orders [-- FOLDER]`. Given a folder, the totals go on where the last run ended.

use std::io::Write;
use std::path::{Path, PathBuf};

use laneway::prelude::*;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const LIMIT: u64 = 1_000;

#[derive(Record, Serialize, Deserialize)]
#[record(key = "customer")] // the lane: orders of one customer never overlap and never swap places
struct Order {
    customer: String,
    cents: u64,
}

#[derive(Record, Serialize, Deserialize)]
#[record(key = "customer")]
struct LimitPassed {
    customer: String,
    total: u64,
}

/// What the processor knows of a customer, committed together with each order.
#[derive(Default, Serialize, Deserialize)]
struct Account {
    orders: u32,
    total: u64,
}

async fn charge(
    Event(order): Event<Order>,
    mut account: LaneState<Account>,
    out: Emit<LimitPassed>,
) -> Result<String> {
    let before = account.total;
    account.orders += 1;
    account.total += order.cents;
    if before <= LIMIT && account.total > LIMIT {
        out.send(LimitPassed { customer: order.customer, total: account.total })?;
    }
    Ok(format!("{} orders, {} cents", account.orders, account.total))
}

/// Where letters go; in earnest this would be a mail server.
struct Letters(UnboundedSender<String>);

async fn write_letter(Event(passed): Event<LimitPassed>, State(letters): State<Letters>) -> Result<()> {
    let letter = format!("dear {}, you have passed the limit with {} cents", passed.customer, passed.total);
    letters.0.send(letter).permanent()
}

#[tokio::main]
async fn main() -> Result<()> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let temporary = tempfile::tempdir()?;
    run(given.as_deref().unwrap_or(temporary.path()), &mut std::io::stdout()).await
}

/// Sends three orders of each of two customers and tells what came of them.
pub(crate) async fn run(folder: &Path, out: &mut impl Write) -> Result<()> {
    let (letters, mut written) = unbounded_channel();
    let app = Laneway::open(&format!("file:{}", folder.display())).await?.state(Letters(letters));
    let orders = app.stream::<Order>("orders").partitions(4);
    let passed = app.stream::<LimitPassed>("limit-passed").partitions(4);
    app.processor("charge", &orders, charge).on_failure(OnFailure::Park);
    app.processor("letters", &passed, write_letter);
    app.start().await?;

    for customer in ["ann", "bob"] {
        let order = |cents| Order { customer: customer.to_owned(), cents };
        for receipt in orders.send_many(&[order(100), order(250)]).await? {
            let receipt = receipt?;
            let seq = receipt.seq.map_or(0, |seq| seq.0);
            writeln!(out, "sent   {customer}'s order number {seq}, {}", receipt.durability)?;
        }
    }
    for (customer, cents) in [("ann", 700), ("bob", 70)] {
        let job = orders.submit_as::<String>(&Order { customer: customer.to_owned(), cents }).await?;
        writeln!(out, "done   {customer}: {}", job.wait(secs(30)).await?)?;
    }
    // A letter was emitted by this run or an earlier one; it is written once.
    app.stop(secs(10)).await;
    while let Ok(letter) = written.try_recv() {
        writeln!(out, "letter {letter}")?;
    }
    Ok(())
}
