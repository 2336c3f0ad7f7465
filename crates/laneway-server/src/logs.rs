//! What is logged, and where to.

use tracing_subscriber::filter::LevelFilter;

/// From here on, whatever is this important is written to stderr. Once per process.
pub(crate) fn begin(level: LevelFilter) {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_ansi(false).init();
}
