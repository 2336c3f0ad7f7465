//! `laneway bench`: a short measurement of a store in this process, or of a server, with the durability that it had.

mod server;
mod store;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::watch::length;
use crate::args::BenchArgs;
use crate::connection::connect;
use crate::exit::Fault;
use crate::output::{Cell, Column, Row, Writer, grouped};
use crate::seam;

/// Lanes that events are spread over.
const KEYS: u64 = 10_000;
/// Bytes of each payload.
const PAYLOAD: usize = 100;
/// How long a measurement that counts nothing goes on.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn run(args: BenchArgs) -> Result<(), Fault> {
    let writer = Writer::new(args.output);
    let length = length("--length", &args.length)?;
    let measured = match (&args.server.server, args.store) {
        (Some(_), None) => server::measure(&connect(&args.server)?, length, writer).await?,
        (_, store) => store::measure(store, length, writer).await?,
    };
    writer.list(&measured, "")
}

/// One measurement.
#[derive(Debug, Serialize)]
struct Measured {
    work: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    milliseconds: Option<f64>,
    durability: String,
}

impl Measured {
    /// So many in this time.
    fn rate(work: &str, count: u64, took: Duration, durability: &str) -> Self {
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let per_second = count.saturating_mul(1_000_000) / took_us;
        Self {
            work: work.to_owned(),
            per_second: Some(per_second),
            milliseconds: None,
            durability: durability.to_owned(),
        }
    }
}

impl Row for Measured {
    const COLUMNS: &'static [Column] =
        &[Column::left("WORK").cut(), Column::right("MEASURED"), Column::left("DURABILITY")];

    fn id(&self) -> String {
        self.work.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        let measured = match (self.per_second, self.milliseconds) {
            (Some(rate), _) => format!("{}/s", grouped(rate)),
            (None, Some(time)) => format!("{time:.2} ms"),
            (None, None) => String::new(),
        };
        vec![Cell::Text(self.work.clone()), Cell::Text(measured), Cell::Text(self.durability.clone())]
    }
}

/// Counts work until its time is over.
#[derive(Debug, Default)]
struct Meter {
    count: AtomicU64,
    over: AtomicBool,
}

impl Meter {
    fn add(&self, count: usize) {
        self.count.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Lets time pass, and more of it while nothing was counted at all; answers what was, and how long that took.
    async fn run(&self, length: Duration) -> (u64, Duration) {
        let (before, begun) = (self.count.load(Ordering::Relaxed), seam::steady());
        loop {
            seam::pass(length).await;
            let counted = self.count.load(Ordering::Relaxed) - before;
            let took = Duration::from_micros(seam::steady().0.saturating_sub(begun.0));
            if counted > 0 || took > PATIENCE {
                return (counted, took);
            }
        }
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// A name that nobody else has.
fn name() -> String {
    format!("bench-{:x}", seam::now().0)
}
