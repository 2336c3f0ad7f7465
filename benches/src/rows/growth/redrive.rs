//! Redrive of many dead letters, one request each as the server files them: the CPU from the moment all are filed until all
//! have run again. What filing costs is said beside it: it is one synced call per letter.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::store::{RedriveTo, Request, RequestOp};
use laneway_core::{EventId, LaneName, OnFailure, ProcessorId, TokenId};
use laneway_embedded::FileOptions;
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::Policy;

use super::figure::at_most;
use crate::context::{Context, progress};
use crate::load::{DAY, Folder, Stream, draft, failing_until, keeping, numbered_key, stateless};
use crate::report::Row;
use crate::{Failure, cpu, seam};

pub(super) const NAME: &str = "growth redrive";

const LETTER_BYTES: usize = 300;
/// For the fewest letters.
const CPU_MAX_S: f64 = 0.5;
/// CPU per letter of the most letters over that of the fewest.
const GROWTH_MAX: f64 = 1.5;
/// Callers that file requests at one time.
const CALLERS: u64 = 64;
const CHECK_EVERY: Duration = Duration::from_millis(5);
const WITHIN: Duration = Duration::from_secs(300);

#[derive(Clone, Copy)]
struct Sizes {
    letters: &'static [u64],
}

const QUICK: Sizes = Sizes { letters: &[4_000] };
const LONG: Sizes = Sizes { letters: &[4_000, 12_000] };

/// What it took.
struct Redriven {
    letters: u64,
    filing_cpu_seconds: f64,
    cpu_seconds: f64,
    seconds: f64,
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let Sizes { letters } = context.choose(QUICK, LONG);
    progress(&format!("{NAME}: {letters:?} dead letters"));
    let mut rounds = Vec::new();
    for letters in letters {
        rounds.push(measure(&context.place.join(NAME), *letters)?);
        context.place.clear(NAME)?;
    }
    let (first, more) = rounds.split_first().ok_or("nothing was redriven")?;
    let mut rows = vec![row(first, CPU_MAX_S)];
    rows.extend(more.iter().map(|round| {
        let times = round.letters as f64 / first.letters as f64;
        row(round, GROWTH_MAX * times * first.cpu_seconds)
    }));
    Ok(rows)
}

fn row(redriven: &Redriven, must: f64) -> Row {
    let Redriven { letters, filing_cpu_seconds, cpu_seconds, seconds } = redriven;
    let note = format!(
        "{letters} dead letters of one partition, all filed ({filing_cpu_seconds:.2} CPU s), then run in {seconds:.1} s"
    );
    let row = at_most(&format!("{NAME}, {letters}"), *cpu_seconds, "CPU s", must, note);
    Row { cpu_s_per_million: Some(cpu::per_million(*cpu_seconds, *letters)), ..row }
}

fn measure(path: &Path, letters: u64) -> Result<Redriven, Failure> {
    let runtime = seam::runtime()?;
    let folder = Folder::open(path, FileOptions::default())?;
    let redriven = runtime.block_on(measure_on(&folder, letters))?;
    drop(runtime);
    folder.close()?;
    Ok(redriven)
}

async fn measure_on(folder: &Folder, letters: u64) -> Result<Redriven, Failure> {
    let failed = folder.stream("failed", keeping(1, DAY)).await?;
    let (mended, runs) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let engine = folder.engine();
    let policy = Policy { max_attempts: 1, on_failure: OnFailure::DeadLetter, ..Policy::default() };
    let settings = ProcessorSettings { policy, ..stateless() };
    engine.process("failed", "failed", settings.clone(), failing_until(&mended, &runs)).await?;
    let info = engine.catalogue().stream("failed").await?;
    let processor = info.processors.first().ok_or("the processor is not registered")?.id;
    failed.append_many(0, letters, |number| draft(&lane(number), LETTER_BYTES)).await?;
    until(&runs, letters).await?;
    engine.drain(WITHIN).await;
    mended.store(true, Ordering::Relaxed);
    let cpu_before = cpu::seconds();
    file_all(&failed, processor, letters).await?;
    let (start, cpu_filed) = (seam::now(), cpu::seconds());
    let engine = folder.engine();
    engine.process("failed", "failed", settings, failing_until(&mended, &runs)).await?;
    until(&runs, 2 * letters).await?;
    let cpu_seconds = cpu::seconds() - cpu_filed;
    let seconds = seam::seconds_since(start);
    engine.drain(WITHIN).await;
    Ok(Redriven { letters, filing_cpu_seconds: cpu_filed - cpu_before, cpu_seconds, seconds })
}

fn lane(number: u64) -> String {
    format!("lane-{number:09}")
}

async fn file_all(failed: &Stream, processor: ProcessorId, letters: u64) -> Result<(), Failure> {
    let caller = |caller| {
        let failed = failed.clone();
        let numbers = (caller..letters).step_by(CALLERS as usize);
        seam::spawn(async move {
            for number in numbers {
                file(&failed, processor, number).await?;
            }
            Ok::<_, Failure>(())
        })
    };
    let callers: Vec<_> = (0..CALLERS).map(caller).collect();
    for caller in callers {
        caller.await??;
    }
    Ok(())
}

async fn file(failed: &Stream, processor: ProcessorId, number: u64) -> Result<(), Failure> {
    let op = RequestOp::Redrive {
        id: Some(EventId(number + 1)),
        lane: LaneName::Key(numbered_key("lane", number)?),
        to: RedriveTo::Place,
    };
    let token = TokenId(u128::from(number) + 1);
    failed.store.request(Request { seat: failed.seat(0, processor), token, op }).await?;
    Ok(())
}

async fn until(runs: &AtomicU64, count: u64) -> Result<(), Failure> {
    let start = seam::now();
    while runs.load(Ordering::Relaxed) < count {
        if seam::now().duration_since(start) > WITHIN {
            return Err(format!("{} of {count} runs after {WITHIN:?}", runs.load(Ordering::Relaxed)).into());
        }
        seam::pause(CHECK_EVERY).await;
    }
    Ok(())
}
