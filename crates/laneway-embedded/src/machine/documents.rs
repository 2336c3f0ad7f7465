//! Documents: small versioned values, changed by compare-and-set. A removed one keeps its number.

use laneway_core::limits::{PAGE_MAX, VALUE_BYTES_MAX};
use laneway_core::{Bytes, ConflictReason, Document, Refusal, Result, StoreError};

use super::codec::{Malformed, Stored, Value, load};
use super::{State, Table, View};

/// Reads one document.
pub(crate) fn get<S: View>(state: &S, name: &str) -> Result<Option<Document>> {
    Document::check_name(name)?;
    let value = load::<Value>(state, Table::Document, name.as_bytes())?;
    Ok(value.and_then(|value| document(name.to_owned(), value)))
}

/// Writes a document and answers its new version.
pub(crate) fn put<S: State>(state: &mut S, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
    Document::check_name(name)?;
    Refusal::check_max("document bytes", bytes.len(), VALUE_BYTES_MAX)?;
    let version = check_version(state, name, expect)? + 1;
    let value = Value { version, bytes: Some(bytes) };
    state.put(Table::Document, name.as_bytes(), &value.to_row());
    Ok(version)
}

/// Removes a document.
pub(crate) fn delete<S: State>(state: &mut S, name: &str, expect: u64) -> Result<()> {
    Document::check_name(name)?;
    let version = check_version(state, name, Some(expect))? + 1;
    state.put(Table::Document, name.as_bytes(), &Value { version, bytes: None }.to_row());
    Ok(())
}

/// All documents whose name begins with this.
pub(crate) fn list<S: View>(state: &S, prefix: &str) -> Result<Vec<Document>> {
    let (mut documents, mut after) = (Vec::new(), None);
    loop {
        let rows = state.scan(Table::Document, prefix.as_bytes(), after.as_deref(), PAGE_MAX)?;
        let Some((last, _)) = rows.last() else { return Ok(documents) };
        after = Some(last.clone());
        for (name, row) in rows {
            let name =
                String::from_utf8(name.to_vec()).map_err(|_| Malformed.in_what("name of a document"))?;
            documents.extend(document(name, Value::from_row(row)?));
        }
    }
}

fn document(name: String, value: Value) -> Option<Document> {
    value.bytes.map(|bytes| Document { name, version: value.version, bytes })
}

/// Answers the number of changes so far.
fn check_version<S: View>(state: &S, name: &str, expect: Option<u64>) -> Result<u64> {
    let stored = load::<Value>(state, Table::Document, name.as_bytes())?;
    let changes = stored.as_ref().map_or(0, |value| value.version);
    let actual = stored.filter(|value| value.bytes.is_some()).map(|value| value.version);
    if actual != expect {
        return Err(StoreError::conflict(ConflictReason::Version { actual }));
    }
    Ok(changes)
}
