//! `--watch`: the same list again and again.

use laneway::core::period;

use crate::args::WatchArgs;
use crate::exit::Fault;
use crate::output::Writer;
use crate::seam;

/// Writes once, or again and again until a signal ends the command.
pub(super) async fn watched(
    writer: Writer,
    watch: &WatchArgs,
    mut write: impl AsyncFnMut() -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(every) = &watch.watch else { return write().await };
    let every = length("--watch", every)?;
    loop {
        writer.begin_again();
        write().await?;
        seam::pass(every).await;
    }
}

/// A length that was typed.
pub(super) fn length(name: &str, text: &str) -> Result<std::time::Duration, Fault> {
    period::parse(text)
        .filter(|length| !length.is_zero())
        .ok_or_else(|| Fault::usage(format!("{name} {text:?}: must be {}, more than nothing", period::FORM)))
}
