//! Handlers of the situations: they do nothing, and say that it went well or badly.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{Handler, LaneAnswer, Retry, Run};

/// Settings of a processor whose handler uses no state.
pub(crate) fn stateless() -> ProcessorSettings {
    ProcessorSettings { uses_state: false, ..ProcessorSettings::default() }
}

/// Everything is done.
pub(crate) fn all_done() -> Arc<dyn Handler> {
    Arc::new(|run: Run| ready(done(&run)))
}

/// Everything is done; `runs` counts the calls.
pub(crate) fn counting(runs: &Arc<AtomicU64>) -> Arc<dyn Handler> {
    let runs = Arc::clone(runs);
    Arc::new(move |run: Run| {
        runs.fetch_add(1, Ordering::Relaxed);
        ready(done(&run))
    })
}

/// Everything fails; `runs` counts the calls.
pub(crate) fn failing(retry: Retry, runs: &Arc<AtomicU64>) -> Arc<dyn Handler> {
    let runs = Arc::clone(runs);
    Arc::new(move |run: Run| {
        runs.fetch_add(1, Ordering::Relaxed);
        ready(failed(&run, retry))
    })
}

/// Everything fails for good until the handler is mended, then everything is done; `runs` counts the calls.
pub(crate) fn failing_until(mended: &Arc<AtomicBool>, runs: &Arc<AtomicU64>) -> Arc<dyn Handler> {
    let (mended, runs) = (Arc::clone(mended), Arc::clone(runs));
    Arc::new(move |run: Run| {
        let answers = if mended.load(Ordering::Relaxed) { done(&run) } else { failed(&run, Retry::Never) };
        runs.fetch_add(1, Ordering::Relaxed);
        ready(answers)
    })
}

fn done(run: &Run) -> Vec<LaneAnswer> {
    run.lanes.iter().map(LaneAnswer::all_done).collect()
}

fn failed(run: &Run, retry: Retry) -> Vec<LaneAnswer> {
    run.lanes.iter().map(|_| LaneAnswer::failed("the benchmark wants it to fail", retry)).collect()
}
