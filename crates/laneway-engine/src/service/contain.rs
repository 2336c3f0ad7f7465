//! Keeps a fault of one part from taking others with it.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

use super::env::Env;
use crate::handler::PANICKED;
use crate::observe::count_fault;

/// Wait before a loop that came to a bad end begins again.
const BEGIN_AGAIN: Duration = Duration::from_secs(1);

/// Runs a part to its end. When it panics, that is logged and counted, and told to the caller.
///
/// Not an `async fn`: its future would hold the work twice, once as an argument.
pub(crate) fn contained<A>(
    part: &'static str,
    work: impl Future<Output = A>,
) -> impl Future<Output = Result<A, String>> {
    let report = move |panic: Box<dyn Any + Send>| {
        let words = panic_words(&*panic);
        count_fault(part);
        tracing::error!(part, fault = words, "a part of the engine came to a bad end");
        words
    };
    AssertUnwindSafe(work).catch_unwind().map(move |outcome| outcome.map_err(report))
}

/// Runs a loop that never ends: when it panics, it begins again after a while.
pub(crate) async fn kept_running<W: Future<Output = ()>>(
    env: Env,
    part: &'static str,
    mut begin: impl FnMut() -> W,
) {
    while contained(part, begin()).await.is_err() {
        env.sleep(BEGIN_AGAIN).await;
    }
}

/// What a panic said, as the error of a run that came to its end by it.
pub fn panic_words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("{PANICKED}{}", text.unwrap_or("no message"))
}
