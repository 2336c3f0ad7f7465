//! Refuses callers that should not be here, before anything is read.
//!
//! A page of somebody else can make the browser of a developer call a server on the developer's own machine: by a name
//! of the page's that resolves to 127.0.0.1 (then the Host header has that name), or straight by the address (then the
//! Origin header has the page's). Programs such as curl send the address as Host, and no Origin.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Uri};

use super::code::Code;
use super::error::{Failure, Result};
use crate::listen::Exposure;

/// The names by which callers may mean this server.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    exposure: Exposure,
    names: Vec<String>,
}

impl Hosts {
    /// This machine's own names, those given, and any address if others can reach the server: a page that makes a name
    /// of its own stand for this server has to send that name.
    pub(crate) fn new(exposure: Exposure, names: Vec<String>) -> Self {
        Self { exposure, names }
    }

    fn has(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        let address = name.parse::<IpAddr>().ok();
        name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|known| known.eq_ignore_ascii_case(&name))
            || address.is_some_and(|address| self.exposure == Exposure::Network || address.is_loopback())
    }

    fn limit(&self) -> String {
        let names = self.names.iter().map(|name| format!(", {name}")).collect::<String>();
        match self.exposure {
            Exposure::Machine => format!("localhost or a loopback address{names}"),
            Exposure::Network => format!("an address, localhost{names}; http.hosts names more"),
        }
    }
}

/// Refuses a request that does not mean this server.
pub(super) fn check(hosts: &Hosts, headers: &HeaderMap) -> Result<()> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()));
    let host = text(HOST).unwrap_or_default();
    if !hosts.has(&host) || headers.get_all(HOST).iter().count() != 1 {
        let detail = format!("Host is {host:?}, must be {}", hosts.limit());
        return Err(Failure::new(Code::HostNotAllowed, detail));
    }
    let Some(origin) = text(ORIGIN) else { return Ok(()) };
    // An ingress may speak TLS to the page while it does not to us.
    let same = ["http://", "https://"]
        .iter()
        .filter_map(|scheme| origin.strip_prefix(scheme))
        .any(|origin| origin.eq_ignore_ascii_case(&host));
    if !same {
        let detail = format!("Origin is {origin:?}, must be absent or that of {host}");
        return Err(Failure::new(Code::OriginNotAllowed, detail));
    }
    Ok(())
}

/// The name or address in a host with or without a port.
fn name_of(host: &str) -> Option<String> {
    let uri = Uri::try_from(host).ok()?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let name = authority.host();
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    Some(bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_by_its_own_name_is_meant() {
        let hosts = Hosts::new(Exposure::Machine, Vec::new());
        for good in
            ["127.0.0.1:7070", "localhost:7070", "localhost", "LOCALHOST:1", "[::1]:7070", "127.1.2.3:1"]
        {
            assert!(hosts.has(good), "{good}");
        }
        for bad in [
            "",
            "evil.example:7070",
            "127.0.0.1.evil.example",
            "localhost.evil.example:7070",
            "0.0.0.0:7070",
            "192.168.0.7:7070",
            "127.0.0.1@evil.example",
            "[::ffff:10.0.0.1]:1",
            "2130706433:7070",
        ] {
            assert!(!hosts.has(bad), "{bad}");
        }
    }

    #[test]
    fn what_others_can_reach_is_meant_by_addresses_and_by_the_names_it_was_given() {
        let hosts = Hosts::new(Exposure::Network, vec!["queue.example.org".to_owned()]);
        for good in
            ["10.1.2.3:7070", "[2001:db8::1]:7070", "localhost", "queue.example.org", "Queue.Example.org:443"]
        {
            assert!(hosts.has(good), "{good}");
        }
        for bad in ["", "evil.example", "queue.example.org.evil.example", "queue.example.org@evil.example"] {
            assert!(!hosts.has(bad), "{bad}");
        }
    }
}
