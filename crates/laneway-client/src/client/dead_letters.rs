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

    /// Brings dead letters back. What was refused is told of each, also when that is all of them.
    pub async fn redrive(&self, request: &DeadRequest) -> Result<DeadAnswers, ClientError> {
        self.change_dead("/v1/dead-letters/redrive", request).await
    }

    /// Forgets dead letters for good. What was refused is told of each, also when that is all of them.
    pub async fn discard(&self, request: &DeadRequest) -> Result<DeadAnswers, ClientError> {
        self.change_dead("/v1/dead-letters/discard", request).await
    }

    async fn change_dead(&self, path: &str, request: &DeadRequest) -> Result<DeadAnswers, ClientError> {
        let answer = self.send(Method::POST, path, &[], Some(serde_json::to_vec(request)?)).await?;
        match serde_json::from_slice(&answer.body) {
            Ok(answers) if !answer.status.is_success() => Ok(answers),
            _ => answer.read(),
        }
    }
}
