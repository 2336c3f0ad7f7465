//! Sends the spans of Laneway to a collector of OpenTelemetry, over HTTP (OTLP).
//!
//! `begin` gives a layer for `tracing` and connects the engine's traces to it: a request, a send or a run that was caused at
//! some place of a W3C trace goes on there. The server has it behind its feature `otlp`; without it, nothing of this is built.
//!
//! ```no_run
//! use tracing_subscriber::layer::SubscriberExt as _;
//! use tracing_subscriber::util::SubscriberInitExt as _;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (spans, exporting) = laneway_otlp::begin("http://127.0.0.1:4318", "orders")?;
//! tracing_subscriber::registry().with(spans).init();
//! // … the program …
//! exporting.end()?;
//! # Ok(())
//! # }
//! ```

mod post;
mod tracer;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::post::Post;
use crate::tracer::OpenTelemetry;

/// Where the spans of Laneway are from; nothing else of the process is exported.
const TARGET: &str = "laneway::span";

/// Why nothing can be exported.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The endpoint cannot be used: correct it.
    #[error("the endpoint cannot be used")]
    Endpoint(#[from] ExporterBuildError),
    /// There is no version of TLS that can be used.
    #[error("TLS cannot be used")]
    Tls(#[from] rustls::Error),
    /// The thread that posts cannot be prepared.
    #[error("cannot be prepared")]
    System(#[from] std::io::Error),
    /// Somebody else traces this process already.
    #[error("this process has a tracer already")]
    Taken,
}

/// What exports spans until it is ended.
#[derive(Debug)]
pub struct Exporting(SdkTracerProvider);

impl Exporting {
    /// Sends what is left, for five seconds at most.
    ///
    /// # Errors
    /// When the collector did not take all of it.
    pub fn end(self) -> Result<(), OTelSdkError> {
        self.0.shutdown()
    }
}

/// Begins to export the spans of Laneway in this process, once: to `/v1/traces` of this endpoint, in the name of this service.
///
/// # Errors
/// When the endpoint cannot be used, or the process has a tracer already.
pub fn begin<S>(endpoint: &str, service: &str) -> Result<(impl Layer<S> + use<S>, Exporting), BeginError>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let traces = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let exporter =
        SpanExporter::builder().with_http().with_http_client(Post::new()?).with_endpoint(traces).build()?;
    let resource = Resource::builder().with_service_name(service.to_owned()).build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    if !laneway::install_tracer(OpenTelemetry) {
        return Err(BeginError::Taken);
    }
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("laneway"))
        .with_filter(filter_fn(|metadata| metadata.target() == TARGET));
    Ok((layer, Exporting(provider)))
}
