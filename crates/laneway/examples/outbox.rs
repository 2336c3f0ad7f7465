//! The outbox: a value and the events about it change together, so that nobody hears of a change that was not made.
//!
//! `cargo run -p laneway --example outbox`

use std::io::Write;

use laneway::{SendError, prelude::*};

/// The value: one per customer, kept by the stream itself.
#[derive(Serialize, Deserialize)]
struct Customer {
    city: String,
    moves: u32,
}

#[derive(Record, Serialize, Deserialize)]
#[record(key = "customer")]
struct Moved {
    customer: String,
    to: String,
}

/// Prints the label with what the customer is now, which may be newer than the event.
async fn print_label(Event(moved): Event<Moved>, customer: Object<Customer>) -> Result<String> {
    let Some(now) = customer.value else { return Err(Error::permanent("there is no such customer")) };
    Ok(format!("{}, {} (moved to {}, {} moves)", moved.customer, now.city, moved.to, now.moves))
}

#[tokio::main]
async fn main() -> Result<()> {
    run(&mut std::io::stdout()).await
}

/// Two clerks move one customer at the same time; one of them has to look again.
pub(crate) async fn run(out: &mut impl Write) -> Result<()> {
    let app = Laneway::open("memory:").await?;
    let moves = app.stream::<Moved>("moves");
    app.processor("label", &moves, print_label);
    app.start().await?;
    let moved = |to: &str| Moved { customer: "ann".to_owned(), to: to.to_owned() };
    let customer = |city: &str, moves| Customer { city: city.to_owned(), moves };

    let seen = moves.object::<Customer>("ann").await?;
    writeln!(out, "seen   version {}", seen.version)?;
    // Both events and the new value, or nothing of it.
    let both = [moved("Basel"), moved("Bern")];
    let sent =
        moves.send_many(&both).object(&customer("Bern", 2)).expect_object_version(seen.version).await?;
    for receipt in sent {
        let receipt = receipt?;
        let (seq, version) = (receipt.seq.map_or(0, |seq| seq.0), receipt.object_version.unwrap_or(0));
        writeln!(out, "sent   event {seq} with version {version}")?;
    }
    // The second clerk saw the same version.
    let late = moves.send(&moved("Chur")).object(&customer("Chur", 1)).expect_object_version(seen.version);
    if let Err(SendError::Conflict(conflict)) = late.await {
        writeln!(out, "clash  {conflict}")?;
    }
    let seen = moves.object::<Customer>("ann").await?;
    let count = seen.value.map_or(0, |customer| customer.moves) + 1;
    let third =
        moves.send(&moved("Chur")).object(&customer("Chur", count)).expect_object_version(seen.version);
    writeln!(out, "sent   event {}", third.await?.seq.map_or(0, |seq| seq.0))?;

    let label = moves.submit_as::<String>(&moved("Chur")).await?.wait(secs(10)).await?;
    writeln!(out, "label  {label}")?;
    app.stop(secs(10)).await;
    Ok(())
}
