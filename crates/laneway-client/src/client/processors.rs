//! Processors.

use http::Method;

use super::{Client, escaped};
use crate::error::ClientError;
use crate::wire::{Count, Processor, ProcessorSettings, Processors, Reset};

impl Client {
    /// Registers a processor, or changes the settings of one that is there.
    pub async fn put_processor(
        &self,
        processor: &str,
        settings: &ProcessorSettings,
    ) -> Result<Processor, ClientError> {
        self.call_with(Method::PUT, &format!("/v1/processors/{}", escaped(processor)), settings).await
    }

    /// A processor as it stands.
    pub async fn processor(&self, processor: &str) -> Result<Processor, ClientError> {
        self.call(Method::GET, &format!("/v1/processors/{}", escaped(processor))).await
    }

    /// All processors.
    pub async fn processors(&self) -> Result<Vec<Processor>, ClientError> {
        Ok(self.call::<Processors>(Method::GET, "/v1/processors").await?.items)
    }

    /// Removes a processor with its progress, states and dead letters.
    pub async fn delete_processor(&self, processor: &str) -> Result<(), ClientError> {
        let path = format!("/v1/processors/{}", escaped(processor));
        self.send(Method::DELETE, &path, &[], None).await?.succeeded().map(drop)
    }

    /// Stops a processor; what runs goes on.
    pub async fn pause_processor(&self, processor: &str) -> Result<Count, ClientError> {
        self.call(Method::POST, &format!("/v1/processors/{}/pause", escaped(processor))).await
    }

    /// Lets a paused or halted processor go on.
    pub async fn resume_processor(&self, processor: &str) -> Result<Count, ClientError> {
        self.call(Method::POST, &format!("/v1/processors/{}/resume", escaped(processor))).await
    }

    /// Begins a processor anew: what is behind the start runs again.
    pub async fn reset_processor(&self, processor: &str, reset: &Reset) -> Result<Count, ClientError> {
        self.call_with(Method::POST, &format!("/v1/processors/{}/reset", escaped(processor)), reset).await
    }
}
