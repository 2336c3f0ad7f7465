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

    /// All streams.
    pub async fn streams(&self) -> Result<Vec<Stream>, ClientError> {
        Ok(self.call::<Streams>(Method::GET, "/v1/streams").await?.items)
    }

    /// Removes a stream with everything in it.
    pub async fn delete_stream(&self, stream: &str) -> Result<(), ClientError> {
        let path = format!("/v1/streams/{}", escaped(stream));
        self.send(Method::DELETE, &path, &[], None).await?.succeeded().map(drop)
    }
}
