//! Streams.

use http::Method;

use super::{Client, escaped};
use crate::error::ClientError;
use crate::wire::{Stream, StreamSettings, Streams};

impl Client {
    /// Creates a stream, or changes the settings of one that is there.
    pub async fn put_stream(&self, stream: &str, settings: &StreamSettings) -> Result<Stream, ClientError> {
        self.call_with(Method::PUT, &format!("/v1/streams/{}", escaped(stream)), settings).await
    }

    /// A stream as it stands.
    pub async fn stream(&self, stream: &str) -> Result<Stream, ClientError> {
        self.call(Method::GET, &format!("/v1/streams/{}", escaped(stream))).await
    }

    /// All streams, page by page.
    pub async fn streams(&self) -> Result<Vec<Stream>, ClientError> {
        let mut all = Vec::new();
        let mut path = "/v1/streams?limit=1000".to_owned();
        loop {
            let Streams { items, next } = self.call(Method::GET, &path).await?;
            all.extend(items);
            let Some(next) = next else { return Ok(all) };
            path = format!("/v1/streams?limit=1000&cursor={}", escaped(&next));
        }
    }

    /// Removes a stream with everything in it.
    pub async fn delete_stream(&self, stream: &str) -> Result<(), ClientError> {
        let path = format!("/v1/streams/{}", escaped(stream));
        self.send(Method::DELETE, &path, &[], None).await?.succeeded().map(drop)
    }
}
