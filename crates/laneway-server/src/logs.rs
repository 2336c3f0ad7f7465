//! What is told on stderr, and in which form: lines for people, or JSON for programs.
//!
//! What a handler says on its own stderr is passed on as it is.

use std::sync::OnceLock;

use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::http::wire::date_of;
use crate::seam;
use crate::settings::Log;
use crate::terminal::remark;

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// An object per line, for programs.
    Json,
}

impl Format {
    /// All formats by their words.
    pub(crate) const WORDS: [(&str, Self); 2] = [("text", Self::Text), ("json", Self::Json)];
}

static FORMAT: OnceLock<Format> = OnceLock::new();

/// From here on, whatever is this important is written to stderr. Once per process.
pub(crate) fn begin(level: LevelFilter, format: Format) {
    FORMAT.get_or_init(|| format);
    tracing_subscriber::registry().with(lines(format).with_filter(level)).init();
}

/// The same, and spans go to a collector, if the settings name one: without the feature they never do.
#[cfg_attr(not(feature = "otlp"), expect(clippy::unnecessary_wraps, reason = "with the feature it can fail"))]
pub(crate) fn begin_with_spans(log: &Log, collector: Option<&str>) -> Result<Spans, SpansError> {
    #[cfg(feature = "otlp")]
    if let Some(endpoint) = collector {
        FORMAT.get_or_init(|| log.format);
        let (spans, exporting) = laneway_otlp::begin(endpoint, "laneway")?;
        tracing_subscriber::registry().with(lines(log.format).with_filter(log.level)).with(spans).init();
        return Ok(Spans { exporting: Some(exporting) });
    }
    debug_assert!(collector.is_none(), "the settings refuse it");
    begin(log.level, log.format);
    Ok(Spans::default())
}

fn lines<S>(format: Format) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    }
}

/// Why spans cannot go to their collector.
#[cfg(feature = "otlp")]
pub(crate) type SpansError = laneway_otlp::BeginError;
/// They go nowhere.
#[cfg(not(feature = "otlp"))]
pub(crate) type SpansError = std::convert::Infallible;

/// Spans on their way to a collector.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    #[cfg(feature = "otlp")]
    exporting: Option<laneway_otlp::Exporting>,
}

impl Spans {
    /// Sends what is left.
    pub(crate) fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(Err(error)) = self.exporting.map(laneway_otlp::Exporting::end) {
            complain(&format!("the last spans did not reach their collector: {error}"));
        }
    }
}

/// Tells what a start did, whatever the level is.
pub(crate) fn note(words: &str) {
    tell("INFO", words, words);
}

/// Tells why the program ends.
pub(crate) fn complain(words: &str) {
    tell("ERROR", words, &format!("laneway: {words}"));
}

fn tell(level: &str, words: &str, text: &str) {
    match FORMAT.get() {
        None | Some(Format::Text) => remark(text),
        Some(Format::Json) => remark(serde_json::json!({
            "timestamp": date_of(seam::now()), "level": level, "message": words, "target": "laneway",
        })),
    }
}
