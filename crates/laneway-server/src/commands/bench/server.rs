//! A server: appends one by one and in batches, and the whole way of an event through workers that pull.

use std::sync::Arc;
use std::time::Duration;

use laneway_client::wire::{
    ClaimRequest, EventDraft, Outcome, ProcessorSettings, Settle, Settlement, StreamSettings, json,
};
use laneway_client::{Client, ClientError};

use super::{KEYS, Measured, Meter, PAYLOAD, name};
use crate::exit::Fault;
use crate::output::{Progress, Writer};
use crate::seam;

/// Who appends single events at the same time.
const SINGLES: u64 = 64;
/// Who appends batches at the same time, and how long they are.
const BATCHES: u64 = 8;
const BATCH: u64 = 100;
/// Workers, and the lanes that each asks for.
const WORKERS: u64 = 4;
const LANES: usize = 100;

pub(super) async fn measure(
    client: &Client,
    length: Duration,
    writer: Writer,
) -> Result<Vec<Measured>, Fault> {
    let name = name();
    client.put_stream(&name, &StreamSettings::default()).await?;
    let progress = Progress::of_steps("measuring", writer.is_quiet());
    let measured = all(client, &name, length, &progress).await;
    drop(progress);
    client.delete_stream(&name).await?;
    measured
}

async fn all(
    client: &Client,
    stream: &str,
    length: Duration,
    progress: &Progress,
) -> Result<Vec<Measured>, Fault> {
    let durability = client.append(stream, &[draft(0)?]).await?.durability;
    progress.say("appends, one by one");
    let (count, took) = appends(client, stream, length, SINGLES, 1).await?;
    let mut measured =
        vec![Measured::rate("HTTP append, 64 at a time, one event each", count, took, &durability)];
    progress.say("appends in batches");
    let (count, took) = appends(client, stream, length, BATCHES, BATCH).await?;
    measured.push(Measured::rate("HTTP append, 8 at a time, 100 events each", count, took, &durability));
    progress.say("workers");
    let pull = ProcessorSettings {
        stream: stream.to_owned(),
        pull: true,
        concurrency: Some(1_000),
        ..ProcessorSettings::default()
    };
    client.put_processor(stream, &pull).await?;
    let (count, took) = works(client, stream, length).await?;
    measured.push(Measured::rate("claim and settle, 4 workers, 100 lanes each", count, took, &durability));
    Ok(measured)
}

fn draft(number: u64) -> Result<EventDraft, ClientError> {
    let data = Some(json(&"x".repeat(PAYLOAD))?);
    Ok(EventDraft { key: Some((number % KEYS).to_string()), data, ..EventDraft::default() })
}

async fn appends(
    client: &Client,
    stream: &str,
    length: Duration,
    at_once: u64,
    each: u64,
) -> Result<(u64, Duration), Fault> {
    let meter = Arc::new(Meter::default());
    let producers: Vec<_> = (0..at_once)
        .map(|number| {
            let (client, meter, stream) = (client.clone(), Arc::clone(&meter), stream.to_owned());
            seam::spawn(async move {
                let mut next = number;
                while !meter.is_over() {
                    let drafts =
                        (0..each).map(|at| draft(next + at * 7_919)).collect::<Result<Vec<_>, _>>()?;
                    next += each * 7_919;
                    client.append(&stream, &drafts).await?;
                    meter.add(drafts.len());
                }
                Ok::<(), ClientError>(())
            })
        })
        .collect();
    joined(&meter, length, producers).await
}

async fn works(client: &Client, processor: &str, length: Duration) -> Result<(u64, Duration), Fault> {
    let meter = Arc::new(Meter::default());
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (client, meter, processor) = (client.clone(), Arc::clone(&meter), processor.to_owned());
            seam::spawn(async move {
                let wish = ClaimRequest { max_lanes: Some(LANES), ..ClaimRequest::default() };
                while !meter.is_over() {
                    let claims = client.claim(&processor, &wish).await?.claims;
                    let settlements: Vec<Settlement> =
                        claims.into_iter().map(|claim| done(claim.claim)).collect();
                    if !settlements.is_empty() {
                        let told = client.settle(&processor, &Settle { settlements }).await?.settlements;
                        meter.add(told.iter().filter(|told| told.accepted).count());
                    }
                }
                Ok::<(), ClientError>(())
            })
        })
        .collect();
    joined(&meter, length, workers).await
}

fn done(claim: String) -> Settlement {
    Settlement {
        claim,
        outcome: Outcome::Done,
        through: None,
        result: None,
        state: None,
        emit: Vec::new(),
        error: None,
        retry_after: None,
    }
}

async fn joined(
    meter: &Meter,
    length: Duration,
    tasks: Vec<tokio::task::JoinHandle<Result<(), ClientError>>>,
) -> Result<(u64, Duration), Fault> {
    let measured = meter.run(length).await;
    meter.end();
    for task in tasks {
        task.await.map_err(Fault::internal)??;
    }
    Ok(measured)
}
