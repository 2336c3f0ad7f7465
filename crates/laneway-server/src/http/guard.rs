//! Refuses callers that should not be here, before anything is read.
//!
//! A page of somebody else can make the browser of a developer call a server on the developer's own machine: by a name
//! of the page's that resolves to 127.0.0.1 (then the Host header has that name), or straight by the address (then the
//! Origin header has the page's). Programs such as curl send the address as Host, and no Origin.

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::code::Code;
use super::error::{Failure, Result};

/// Lets a request pass if it means this server.
pub(super) async fn check(request: Request, next: Next) -> Response {
    match check_headers(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

fn check_headers(headers: &HeaderMap) -> Result<()> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()));
    let host = text(HOST).unwrap_or_default();
    if !is_local(&host) || headers.get_all(HOST).iter().count() != 1 {
        let detail = format!("Host is {host:?}, must be localhost or a loopback address");
        return Err(Failure::new(Code::HostNotAllowed, detail));
    }
    let Some(origin) = text(ORIGIN) else { return Ok(()) };
    let same = origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(&host));
    if !same {
        let detail = format!("Origin is {origin:?}, must be absent or http://{host}");
        return Err(Failure::new(Code::OriginNotAllowed, detail));
    }
    Ok(())
}

/// Whether a host with or without a port is this machine by its own name, whatever a name server says.
fn is_local(host: &str) -> bool {
    let Ok(uri) = Uri::try_from(host) else { return false };
    let Some(authority) = uri.authority().filter(|authority| !authority.as_str().contains('@')) else {
        return false;
    };
    let name = authority.host();
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_by_its_own_name_is_meant() {
        for good in
            ["127.0.0.1:7070", "localhost:7070", "localhost", "LOCALHOST:1", "[::1]:7070", "127.1.2.3:1"]
        {
            assert!(is_local(good), "{good}");
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
            assert!(!is_local(bad), "{bad}");
        }
    }
}
