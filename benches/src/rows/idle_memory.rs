//! What a key costs when nothing of it is left to do: resident memory before and after many distinct keys.
//!
//! Runs in a process of its own, so that the memory of other rows is not in it.

use crate::arguments::Child;
use crate::context::{Context, progress};
use crate::report::{Better, Row};
use crate::{Failure, children, memory, seam};

pub(crate) const NAME: &str = "lanes idle memory";

/// Distinct keys pushed before the first look: the runtime, the allocator and the lanes reach their working size.
const WARM_KEYS: u64 = 1_000_000;

pub(crate) fn run(context: &Context) -> Result<Option<Row>, Failure> {
    if !context.wants(NAME) {
        return Ok(None);
    }
    let keys = context.choose(1_000_000, 10_000_000);
    progress(&format!("{NAME}: {keys} distinct keys pushed and finished"));
    let answer = children::answer_of(&Child::IdleMemory { keys })?;
    let (before, after) = (children::figure(&answer, "before_mib")?, children::figure(&answer, "after_mib")?);
    let each = (after - before) * 1024.0 * 1024.0 / keys as f64;
    Ok(Some(Row {
        name: NAME.to_owned(),
        rate: after,
        unit: "MiB",
        baseline: Some("before the keys"),
        baseline_rate: Some(before),
        better: Better::Lower,
        durability: "memory",
        rss_mb: Some(after),
        note: format!("{keys} distinct keys after {WARM_KEYS} to warm up: {each:.2} bytes per idle key"),
        ..Row::default()
    }))
}

/// The child process: prints memory before and after.
pub(crate) fn child(keys: u64) -> Result<String, Failure> {
    let runtime = seam::runtime()?;
    runtime.block_on(async {
        let lanes = super::lanes::start()?;
        push_distinct(&lanes, 0, WARM_KEYS).await?;
        let before = memory::resident_mib()?;
        push_distinct(&lanes, WARM_KEYS, keys).await?;
        let after = memory::resident_mib()?;
        Ok(serde_json::json!({ "before_mib": before, "after_mib": after }).to_string())
    })
}

/// Pushes so many keys never seen before and waits for the end of each.
async fn push_distinct(
    lanes: &laneway_lanes::Lanes<u64, u64, (), ()>,
    first: u64,
    count: u64,
) -> Result<(), Failure> {
    let mut waiting = std::collections::VecDeque::new();
    for key in first..first + count {
        let ticket = lanes.push((key, key)).await.map_err(|_| "lanes refused a push")?;
        waiting.push_back(ticket);
        if waiting.len() >= super::lanes::IN_FLIGHT as usize / 2
            && let Some(oldest) = waiting.pop_front()
        {
            check(oldest.await)?;
        }
    }
    for ticket in waiting {
        check(ticket.await)?;
    }
    Ok(())
}

fn check(end: laneway_lanes::End<(), ()>) -> Result<(), Failure> {
    end.done().ok_or_else(|| "a push did not end as done".into())
}
