//! Dead letters.

use http::Method;

use super::{Client, with_query};
use crate::error::ClientError;
use crate::wire::{DeadAnswers, DeadFilter, DeadLetters, DeadRequest};

impl Client {
    /// Dead letters that fit a filter, at most so many, from a cursor on.
    pub async fn dead_letters(
        &self,
        filter: &DeadFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<DeadLetters, ClientError> {
        let limit = limit.to_string();
        let texts = [
            ("stream", filter.stream.as_deref().map(str::as_bytes)),
            ("processor", filter.processor.as_deref().map(str::as_bytes)),
            ("key", filter.key.as_deref().map(str::as_bytes)),
            ("key_b64", filter.key_b64.as_deref().map(str::as_bytes)),
            ("cursor", cursor.map(str::as_bytes)),
            ("limit", Some(limit.as_bytes())),
        ];
        self.call(Method::GET, &with_query("/v1/dead-letters", texts)).await
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
