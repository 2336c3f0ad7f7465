//! Keeps the metrics of this process and writes them in the text format of Prometheus.

use std::convert::Infallible;
use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::process;
use crate::seam;

/// Media type of the text format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Bounds in seconds: from a call to a local store to an event that waited for its lane for ten minutes.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0];
/// Counts followers that took nothing of what they asked for.
const FOLLOWERS_DROPPED: &str = "laneway_followers_dropped_total";
/// How often what was recorded is put into its buckets, so that it does not pile up while nobody asks for it.
const KEEP_UP_EVERY: Duration = Duration::from_secs(5);

static METRICS: OnceLock<PrometheusHandle> = OnceLock::new();

/// Begins to keep metrics. Must come before the app is opened: what was metered before is lost.
pub(crate) fn install() -> Result<(), BuildError> {
    let matcher = Matcher::Suffix("_seconds".to_owned());
    let recorder = PrometheusBuilder::new().set_buckets_for_metric(matcher, &SECONDS)?.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_ok() {
        METRICS.get_or_init(|| handle);
    }
    metrics::describe_counter!(
        FOLLOWERS_DROPPED,
        "Followers of events that were dropped because they took nothing."
    );
    metrics::counter!(FOLLOWERS_DROPPED).increment(0);
    Ok(())
}

/// Notes that a follower was dropped.
pub(crate) fn follower_dropped() {
    metrics::counter!(FOLLOWERS_DROPPED).increment(1);
}

/// Keeps memory bounded while nobody asks.
pub(crate) async fn keep_up() -> Infallible {
    loop {
        seam::pass(KEEP_UP_EVERY).await;
        if let Some(metrics) = METRICS.get() {
            metrics.run_upkeep();
        }
    }
}

/// Everything as text.
pub(crate) fn render() -> String {
    let mut text = METRICS.get().map(PrometheusHandle::render).unwrap_or_default();
    process::write(&mut text);
    text
}
