//! The seam to the serializer: what is a record here is bytes in the engine. JSON, by serde.
//!
//! Everything that is stored by this crate goes through the two functions below, so that another format is a change in
//! one place.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a value is no bytes, or bytes are no value.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::SendError;
/// use std::collections::BTreeMap;
///
/// #[derive(Record, Serialize, Deserialize)]
/// #[record(keyless)]
/// struct Grid {
///     cells: BTreeMap<(u8, u8), u8>, // names in JSON are text, and this is none
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let app = Laneway::open("memory:").await?;
/// let grid = Grid { cells: BTreeMap::from([((0, 0), 1)]) };
/// let Err(SendError::Format(wrong)) = app.stream::<Grid>("grids").send(&grid).await else { panic!() };
/// assert_eq!(Error::new(wrong).to_string(), "the record is not the JSON it should be: key must be a string");
/// # Ok(()) }
/// ```
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
