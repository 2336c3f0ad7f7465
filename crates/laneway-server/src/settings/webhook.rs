//! What `[webhook]` says: which endpoints may be named over the API.

use std::path::PathBuf;

use crate::access::Secret;
use crate::handlers::{self, Range, Rules, RulesError};

/// Endpoints that are named over the API.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Webhook {
    /// What calls are signed with.
    pub(crate) secret: Option<Secret>,
    /// Ports that they may have.
    pub(crate) ports: Vec<u16>,
    /// Addresses that they may have although they are not public.
    pub(crate) allow_private: Vec<Range>,
    /// Whether they may be called without TLS.
    pub(crate) allow_http: bool,
    /// Certificates that vouch for them.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Webhook {
    /// The rules, if there can be such endpoints.
    pub(crate) fn rules(&self) -> Result<Option<Rules>, RulesError> {
        let Some(secret) = &self.secret else { return Ok(None) };
        let secret = handlers::Secret::new(secret.reveal());
        let (ports, private) = (self.ports.clone(), self.allow_private.clone());
        Rules::new(secret, ports, private, self.allow_http, self.ca_file.as_deref()).map(Some)
    }
}

pub(super) fn ports(texts: Vec<String>) -> Result<Vec<u16>, String> {
    let port = |text: &String| text.parse().ok().filter(|port| *port > 0);
    let ports: Option<Vec<u16>> = texts.iter().map(port).collect();
    ports.ok_or_else(|| "must be a list of ports from 1 to 65535, as texts".to_owned())
}

pub(super) fn ranges(texts: Vec<String>) -> Result<Vec<Range>, String> {
    texts
        .iter()
        .map(|text| text.parse().map_err(|wrong| format!("must be a list of ranges: {wrong}")))
        .collect()
}
