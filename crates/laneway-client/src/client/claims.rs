//! What a worker asks of a processor.

use http::Method;

use super::{Client, escaped};
use crate::error::ClientError;
use crate::wire::{ClaimRequest, Claims, Extend, ExtendedClaims, Settle, SettleAnswers};

impl Client {
    /// Claims lanes of a processor.
    pub async fn claim(&self, processor: &str, wish: &ClaimRequest) -> Result<Claims, ClientError> {
        self.call_with(Method::POST, &format!("/v1/processors/{}/claim", escaped(processor)), wish).await
    }

    /// Says what became of claims.
    pub async fn settle(&self, processor: &str, settle: &Settle) -> Result<SettleAnswers, ClientError> {
        self.call_with(Method::POST, &format!("/v1/processors/{}/settle", escaped(processor)), settle).await
    }

    /// Asks for more time.
    pub async fn extend(&self, processor: &str, extend: &Extend) -> Result<ExtendedClaims, ClientError> {
        self.call_with(Method::POST, &format!("/v1/processors/{}/extend", escaped(processor)), extend).await
    }
}
