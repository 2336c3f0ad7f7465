//! The folder of a `file:` store while nobody works on it: check it, copy it away.
//!
//! ```
//! use laneway::files::{FileStore, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! # let (folder, copy) = (root.path().join("data"), root.path().join("copy"));
//! let store = FileStore::open(&folder)?;
//! store.backup(&copy)?; // also while work goes on, by whoever has the store open
//! store.close()?;
//! assert!(verify(&copy)?.is_clean());
//! # Ok(()) }
//! ```

pub use laneway_embedded::FileStore;
pub use laneway_embedded::file::{Backup, Finding, FindingKind, Place, VerifyReport, verify};
