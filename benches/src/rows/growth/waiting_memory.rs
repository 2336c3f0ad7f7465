//! Small events that wait for a worker, written between large ones of another stream: the memory that they hold.
//!
//! Runs in a process of its own, so that the memory of other rows is not in it.

use std::path::Path;
use std::time::Duration;

use laneway_embedded::FileOptions;
use laneway_engine::ProcessorSettings;

use super::figure::at_most;
use crate::arguments::Child;
use crate::context::{Context, progress};
use crate::load::{DAY, Folder, draft, keeping};
use crate::report::Row;
use crate::{Failure, children, memory, seam};

pub(super) const NAME: &str = "growth waiting events";

const EVENT_BYTES: usize = 100;
/// What the process may have resident beside the payload.
const BESIDE_MIB: f64 = 64.0;
const DRAIN: Duration = Duration::from_secs(1);
/// Until a processor that was started again has read its backlog.
const READ_AGAIN: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
struct Sizes {
    events: u64,
    /// Of the other stream after each event.
    between_kib: usize,
}

const QUICK: Sizes = Sizes { events: 600, between_kib: 256 };
const LONG: Sizes = Sizes { events: 4_000, ..QUICK };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let Sizes { events, between_kib } = context.choose(QUICK, LONG);
    progress(&format!(
        "{NAME}: {events} events of {EVENT_BYTES} bytes, {between_kib} KiB of others after each"
    ));
    let dir = context.place.join(NAME);
    let answer = children::answer_of(&Child::WaitingMemory { dir, events, between_kib })?;
    context.place.clear(NAME)?;
    let figure = |name| children::figure(&answer, name);
    let (before, waiting, again) =
        (figure("before_mib")?, figure("waiting_mib")?, figure("started_again_mib")?);
    let payload_mib = (events * EVENT_BYTES as u64) as f64 / (1 << 20) as f64;
    let must = payload_mib + BESIDE_MIB;
    let note = format!(
        "{events} events of {EVENT_BYTES} bytes wait for a worker, {between_kib} KiB of another stream after each; {before:.0} \
         MiB before them"
    );
    let memory = |name: &str, mib, note| Row {
        rss_mb: Some(mib),
        ..at_most(&format!("{NAME}, {name}"), mib, "MiB resident", must, note)
    };
    Ok(vec![memory("memory", waiting, note), memory("memory after a restart", again, String::new())])
}

/// The child process: prints its memory before, with the events waiting, and after the store was opened again.
pub(crate) fn child(dir: &Path, events: u64, between_kib: usize) -> Result<String, Failure> {
    let runtime = seam::runtime()?;
    runtime.block_on(async {
        let folder = Folder::open(dir, FileOptions::default())?;
        let small = folder.stream("small", keeping(1, DAY)).await?;
        let large = folder.stream("large", keeping(1, DAY)).await?;
        let engine = folder.engine();
        engine.process_at_desk("small", "small", ProcessorSettings::default()).await?;
        let before = memory::resident_mib()?;
        for number in 0..events {
            small.append(0, vec![draft(&format!("key-{number}"), EVENT_BYTES)?]).await?;
            large.append(0, vec![draft("large", between_kib << 10)?]).await?;
        }
        let waiting = memory::resident_mib()?;
        engine.drain(DRAIN).await;
        drop((engine, small, large));
        folder.close()?;
        let again = start_again(dir).await?;
        let answer =
            serde_json::json!({ "before_mib": before, "waiting_mib": waiting, "started_again_mib": again });
        Ok(answer.to_string())
    })
}

/// Memory after the same events were read from the files.
async fn start_again(dir: &Path) -> Result<f64, Failure> {
    let folder = Folder::open(dir, FileOptions::default())?;
    let engine = folder.engine();
    engine.process_at_desk("small", "small", ProcessorSettings::default()).await?;
    seam::pause(READ_AGAIN).await;
    let resident = memory::resident_mib()?;
    engine.drain(DRAIN).await;
    Ok(resident)
}
