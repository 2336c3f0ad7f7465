//! Backups of the store.

use serde::{Deserialize, Serialize};

/// Asks for a backup of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// Name of the new folder below the server's `store.backup_dir`: letters, digits, `-`, `_` and `.`, at most 128, not
    /// beginning with `.` and not ending in `.partial`.
    pub name: String,
}

/// A finished backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backup {
    /// Its name.
    pub name: String,
    /// Its folder on the server's machine.
    pub folder: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its number of log segments.
    pub segments: u64,
}
