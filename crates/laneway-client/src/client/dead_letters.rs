//! Dead letters.

use http::Method;

use super::{Client, escaped};
use crate::error::ClientError;
use crate::wire::{DeadAnswers, DeadLetters, DeadRequest};

impl Client {
    /// Dead letters of a processor, at most so many.
    pub async fn dead_letters(&self, processor: &str, limit: usize) -> Result<DeadLetters, ClientError> {
        let path = format!("/v1/dead-letters?processor={}&limit={limit}", escaped(processor));
        self.call(Method::GET, &path).await
    }

    /// Brings dead letters back.
    pub async fn redrive(&self, request: &DeadRequest) -> Result<DeadAnswers, ClientError> {
        self.call_with(Method::POST, "/v1/dead-letters/redrive", request).await
    }

    /// Forgets dead letters for good.
    pub async fn discard(&self, request: &DeadRequest) -> Result<DeadAnswers, ClientError> {
        self.call_with(Method::POST, "/v1/dead-letters/discard", request).await
    }
}
