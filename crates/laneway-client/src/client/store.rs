//! The store.

use http::Method;

use super::Client;
use crate::error::ClientError;
use crate::wire::{Backup, BackupRequest};

impl Client {
    /// Makes a backup of the store while the server works, into a new folder of this name on the server's machine.
    /// Answers when it is complete: allow for its size [`with_timeout`](Self::with_timeout). A backup whose caller gives up
    /// goes on, and a repeat under the same name is refused.
    pub async fn backup(&self, name: &str) -> Result<Backup, ClientError> {
        let request = BackupRequest { name: name.to_owned() };
        self.call_with(Method::POST, "/v1/store/backup", &request).await
    }
}
