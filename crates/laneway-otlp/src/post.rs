//! Posts spans. The exporter has a thread of its own and waits there for every post, so a runtime that runs only meanwhile
//! is enough.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::{Builder, Runtime};

use crate::BeginError;

/// Most bytes of an answer, which says what was not taken.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Posts to a collector.
#[derive(Debug)]
pub(crate) struct Post {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Runtime,
}

impl Post {
    pub(crate) fn new() -> Result<Self, BeginError> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        // Between posts nobody would look after a connection.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Self { client, runtime: Builder::new_current_thread().enable_all().build()? })
    }

    async fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = self.client.request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
        Ok(Response::from_parts(parts, body))
    }
}

#[async_trait]
impl HttpClient for Post {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.runtime.block_on(self.post(request))
    }
}
