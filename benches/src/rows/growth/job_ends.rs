//! Ends of jobs in the reverse order of their events, as a bulk cancel has them: a commit must not become slower with the
//! number of ends before it.

use std::path::Path;

use bytes::Bytes;
use laneway_core::store::{Commit, JobEnd, JobResult};
use laneway_core::{CommitId, Draft, EventId, JobDraft, Terminal, Timestamp};
use laneway_embedded::FileOptions;

use super::figure::at_most;
use crate::context::{Context, progress};
use crate::load::{DAY, Folder, draft, keeping};
use crate::measured::median;
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth job ends";

const PER_COMMIT: usize = 1_000;
/// Commits of the last quarter over those of the first. A commit waits for one sync, whose length varies.
const GROWTH_MAX: f64 = 2.0;

#[derive(Clone, Copy)]
struct Sizes {
    jobs: u64,
}

const QUICK: Sizes = Sizes { jobs: 24_000 };
const LONG: Sizes = Sizes { jobs: 100_000 };

#[derive(Clone, Copy)]
enum Order {
    Same,
    Reverse,
}

/// Milliseconds of a commit, the median of a quarter.
struct Quarters {
    first: f64,
    last: f64,
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let Sizes { jobs } = context.choose(QUICK, LONG);
    progress(&format!("{NAME}: {jobs} ends in the order of their events, then in reverse"));
    let path = context.place.join(NAME);
    let same = measure(&path, jobs, Order::Same)?;
    context.place.clear(NAME)?;
    let reverse = measure(&path, jobs, Order::Reverse)?;
    context.place.clear(NAME)?;
    let note = format!(
        "{jobs} ends, {PER_COMMIT} per commit: the last quarter of the commits beside the first; in the order of their \
         events {:.2} and {:.2} ms",
        same.first, same.last
    );
    let must = GROWTH_MAX * reverse.first;
    let row = at_most(&format!("{NAME}, reverse order"), reverse.last, "ms per commit", must, note);
    Ok(vec![Row { baseline: Some("the first quarter"), baseline_rate: Some(reverse.first), ..row }])
}

fn measure(path: &Path, jobs: u64, order: Order) -> Result<Quarters, Failure> {
    let runtime = seam::runtime()?;
    let folder = Folder::open(path, FileOptions::default())?;
    let commits = runtime.block_on(end_all(&folder, jobs, order))?;
    drop(runtime);
    folder.close()?;
    let quarter = commits.len() / 4;
    let middle = |commits: &[f64]| median(commits, |ms| *ms);
    Ok(Quarters { first: middle(&commits[..quarter]), last: middle(&commits[commits.len() - quarter..]) })
}

/// Milliseconds of every commit.
async fn end_all(folder: &Folder, jobs: u64, order: Order) -> Result<Vec<f64>, Failure> {
    let mut stream = folder.stream("jobs", keeping(1, DAY)).await?;
    let responder = stream.register("jobs").await?;
    let seat = stream.seat(0, responder);
    let job = Some(JobDraft { responder, keep: DAY });
    let submit = |number| Ok(Draft { job, ..draft(&format!("key-{}", number % 1_000), 20)? });
    stream.append_many(0, jobs, submit).await?;
    let mut fence = stream.seize(seat).await?;
    let mut ids: Vec<EventId> = (1..=jobs).map(EventId).collect();
    if matches!(order, Order::Reverse) {
        ids.reverse();
    }
    let mut took = Vec::new();
    for (number, ids) in (1..).zip(ids.chunks(PER_COMMIT)) {
        let mut commit = Commit::new(seat, fence, CommitId(number));
        commit.passed = ids.iter().copied().collect();
        commit.jobs = ids.iter().map(|id| cancelled(*id)).collect();
        let begun = seam::now();
        fence = stream.store.commit(commit).await?.fence;
        took.push(seam::seconds_since(begun) * 1e3);
    }
    Ok(took)
}

fn cancelled(id: EventId) -> JobEnd {
    JobEnd {
        id,
        end: Terminal::Cancelled,
        error: Bytes::new(),
        attempts: 0,
        started_at: None,
        finished_at: Timestamp(0),
        result: JobResult::None,
        keep: DAY,
    }
}
