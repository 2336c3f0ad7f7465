//! What the lists of the file have in common.

use crate::settings::field::Field;

/// An entry of a list.
pub(crate) trait Section: Sized + 'static {
    /// The list, as in `[[stream]]`.
    const NAME: &'static str;
    /// What an entry can say.
    const FIELDS: &'static [Field<Self::Raw>];
    /// The entry while it is read.
    type Raw: Default + 'static;

    /// What tells it from the others.
    fn name(raw: &Self::Raw) -> &str;

    /// What its fields mean together; all faults at once.
    fn check(raw: Self::Raw) -> Result<Self, Vec<String>>;
}

/// Faults of fields that must be there.
pub(super) fn absent(fields: &[(&str, bool)]) -> Vec<String> {
    let absent = fields.iter().filter(|(_, is_there)| !is_there);
    absent.map(|(field, _)| format!("{field} is absent, and has no default")).collect()
}

/// A name that users may give.
pub(super) fn own_name(value: &serde_json::Value) -> Result<String, String> {
    let name = crate::settings::field::text(value)?;
    if name.starts_with('_') {
        return Err("must not begin with _, which is for Laneway itself".to_owned());
    }
    Ok(name)
}
