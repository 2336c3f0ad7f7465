//! Payloads: JSON that is carried and never read.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// JSON as it was sent, byte for byte.
pub type Json = Box<RawValue>;

/// A value as a payload.
///
/// ```
/// use laneway_client::wire::{EventDraft, json};
///
/// let order = EventDraft { key: Some("ann".to_owned()), data: Some(json(&[1, 2])?), ..EventDraft::default() };
/// assert_eq!(serde_json::to_string(&order)?, r#"{"key":"ann","data":[1,2]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// When the value cannot be written as JSON, such as a map whose keys are no text.
pub fn json(value: &impl Serialize) -> Result<Json, serde_json::Error> {
    serde_json::value::to_raw_value(value)
}

/// A field whose `null` means something else than its absence: `Some` whenever the field is there.
pub(super) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Whether a flag can be left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
pub(super) fn is_false(flag: &bool) -> bool {
    !*flag
}
