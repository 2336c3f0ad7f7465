//! Orders of three customers run in lanes: in order for each, side by side for all, with a retry and a drain.
//!
//! `cargo run -p laneway-lanes --example lanes`
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::time::Duration;

use laneway_lanes::{Lanes, Outcome, Run, Settings};

async fn charge(run: Run<&'static str, u32>) -> Outcome<String, String> {
    let (customer, order, attempt) = (*run.key(), *run.value(), run.attempt());
    println!("{customer}: order {order}, attempt {attempt}");
    if order == 2 && attempt < 3 {
        let error = "the bank is busy".to_owned();
        return Outcome::Retry { after: Duration::from_millis(50), error };
    }
    Outcome::Done(format!("{customer} paid order {order}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let lanes = Lanes::start(Settings::default(), charge)?;
    let orders = (1..=3).flat_map(|order| ["alice", "bob", "carol"].map(|customer| (customer, order)));
    for ticket in lanes.push_many(orders).await {
        println!("{:?}", ticket?.await);
    }
    let drained = lanes.drain(Duration::from_secs(5)).await;
    println!("drained in time: {}, done in all: {}", drained.in_time, lanes.snapshot().totals.done);
    Ok(())
}
