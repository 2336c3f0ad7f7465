//! Appends with dedup ids once a partition remembers as many as it may, beside appends without.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::{Draft, StreamSettings};
use laneway_embedded::FileOptions;

use super::figure::at_least;
use crate::context::{Context, progress};
use crate::load::{DAY, Folder, Stream, draft, keeping};
use crate::measured::{Counts, Measured, Phase, Stopwatch, Times, percentile_ms, window};
use crate::report::Row;
use crate::workload::{PAYLOAD_BYTES, PRODUCERS};
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth dedup ids";

const RATE_MIN: f64 = 0.6;
const KEYS: u64 = 1_000;

#[derive(Clone, Copy)]
struct Sizes {
    /// Ids that a partition remembers.
    remembered: u64,
    times: Times,
}

const QUICK: Sizes = Sizes {
    remembered: 20_000,
    times: Times { warm: Duration::from_millis(300), length: Duration::from_millis(1_500) },
};
const LONG: Sizes = Sizes {
    remembered: 100_000,
    times: Times { warm: Duration::from_secs(2), length: Duration::from_secs(20) },
};

/// Whether the appends are named.
#[derive(Clone, Copy)]
enum Names {
    Without,
    With,
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let remembered = sizes.remembered;
    progress(&format!("{NAME}: one partition that remembers {remembered}, with and without them"));
    let path = context.place.join(NAME);
    let without = measure(&path, sizes, Names::Without)?;
    context.place.clear(NAME)?;
    let with = measure(&path, sizes, Names::With)?;
    context.place.clear(NAME)?;
    let note = format!(
        "{PRODUCERS} producers, one event per call, one partition that remembers {remembered} ids and forgets one with each \
         append"
    );
    let row = at_least(&format!("{NAME}, appends"), with.rate(), "events/s", RATE_MIN * without.rate(), note);
    Ok(vec![Row {
        baseline: Some("without ids"),
        baseline_rate: Some(without.rate()),
        cpu_s_per_million: Some(with.cpu_per_million()),
        baseline_cpu_s_per_million: Some(without.cpu_per_million()),
        p50_ms: percentile_ms(&with.calls, 0.5),
        p99_ms: percentile_ms(&with.calls, 0.99),
        ..row
    }])
}

fn measure(path: &Path, sizes: Sizes, names: Names) -> Result<Measured, Failure> {
    let runtime = seam::runtime()?;
    let folder = Folder::open(path, FileOptions::default())?;
    let measured = runtime.block_on(measure_on(&folder, sizes, names))?;
    drop(runtime);
    folder.close()?;
    Ok(measured)
}

async fn measure_on(folder: &Folder, sizes: Sizes, names: Names) -> Result<Measured, Failure> {
    let settings = StreamSettings { dedup_max: sizes.remembered, ..keeping(1, DAY) };
    let stream = folder.stream("named", settings).await?;
    let before = sizes.remembered + 1_000;
    stream.append_many(0, before, |number| named(number, names)).await?;
    folder.store.checkpoint()?;
    let (phase, next, finished) =
        (Arc::<Phase>::default(), Arc::new(AtomicU64::new(before)), Arc::<AtomicU64>::default());
    let producer = |_| {
        let (stream, phase) = (stream.clone(), Arc::clone(&phase));
        let (next, finished) = (Arc::clone(&next), Arc::clone(&finished));
        seam::spawn(async move { produce(&stream, names, &phase, &next, &finished).await })
    };
    let producers: Vec<_> = (0..PRODUCERS).map(producer).collect();
    let counts = || Counts { events: finished.load(Ordering::Relaxed), ..Counts::default() };
    let mut measured = window(&phase, sizes.times, counts).await;
    for producer in producers {
        measured.calls.extend(producer.await??);
    }
    Ok(measured)
}

async fn produce(
    stream: &Stream,
    names: Names,
    phase: &Phase,
    next: &AtomicU64,
    finished: &AtomicU64,
) -> Result<Vec<u32>, Failure> {
    let mut stopwatch = Stopwatch::default();
    while !phase.is_over() {
        let draft = named(next.fetch_add(1, Ordering::Relaxed), names)?;
        let begun = seam::now();
        stream.append(0, vec![draft]).await?;
        stopwatch.note(phase, begun, finished, 1);
    }
    Ok(stopwatch.into_calls())
}

fn named(number: u64, names: Names) -> Result<Draft, Failure> {
    let draft = draft(&format!("key-{}", number % KEYS), PAYLOAD_BYTES)?;
    let dedup = match names {
        Names::Without => None,
        Names::With => Some(Dedup {
            id: Bytes::from(format!("order-{number:012}")),
            body: u128::from(number),
            window: DAY,
        }),
    };
    Ok(Draft { dedup, ..draft })
}
