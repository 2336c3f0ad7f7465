//! The seam to the serializer: what is a record here is bytes in the engine. JSON, by serde.
//!
//! Everything that is stored by this crate goes through the two functions below, so that another format is a change in
//! one place.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a value is no bytes, or bytes are no value.
#[derive(Debug, thiserror::Error)]
#[error("{what} is not the JSON it should be")]
pub struct FormatError {
    what: &'static str,
    source: serde_json::Error,
}

/// A value as bytes. `what` names it in the error.
pub(crate) fn encode<T: Serialize + ?Sized>(what: &'static str, value: &T) -> Result<Bytes, FormatError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|source| FormatError { what, source })
}

/// Bytes as a value. `what` names it in the error.
pub(crate) fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, FormatError> {
    serde_json::from_slice(bytes).map_err(|source| FormatError { what, source })
}
