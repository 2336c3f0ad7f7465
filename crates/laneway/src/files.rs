//! The folder of a `file:` store: check it while nobody works on it, copy it away at any time.
//!
//! ```
//! use laneway::files::{FileStore, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! # let (folder, copy) = (root.path().join("data"), root.path().join("copy"));
//! let store = FileStore::open(&folder)?;
//! store.backup(&copy)?; // also while work goes on; `Laneway::files` has the store of an app
//! store.close()?;
//! assert!(verify(&copy)?.is_clean());
//! # Ok(()) }
//! ```

pub use laneway_embedded::FileStore;
pub use laneway_embedded::file::{Backup, Finding, FindingKind, Place, VerifyReport, verify};
