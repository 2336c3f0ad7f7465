//! Addresses to listen on, by their text. Who can reach an address of `serve` is judged when it is bound.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where a server listens unless it is told otherwise.
pub(super) const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7070);

/// A text that names an address or a host, and a port.
pub(super) fn check_form(text: String) -> Result<String, String> {
    let (host, port) = halves(&text)?;
    port_of(port)?;
    if host.is_empty() {
        return Err("has no address, must be ADDRESS:PORT, such as 127.0.0.1:7070".to_owned());
    }
    Ok(text)
}

fn halves(text: &str) -> Result<(&str, &str), String> {
    text.rsplit_once(':')
        .ok_or_else(|| "has no port, must be ADDRESS:PORT, such as 127.0.0.1:7070".to_owned())
}

/// An address by its text, if only this machine can reach it: `dev` is for nobody else.
pub(super) fn check(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = halves(text)?;
    let port = port_of(port)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address = match bare {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => bare
            .parse()
            .map_err(|_| format!("{host:?} is no address, must be a loopback address such as 127.0.0.1"))?,
    };
    if !address.is_loopback() {
        return Err(
            "others could reach this address, and `dev` asks nobody for a token; it must be a loopback address such \
             as 127.0.0.1, or use `laneway serve`"
                .to_owned(),
        );
    }
    Ok(SocketAddr::new(address, port))
}

/// A port on the default address.
pub(super) fn check_port(text: &str) -> Result<SocketAddr, String> {
    Ok(SocketAddr::new(DEFAULT.ip(), port_of(text)?))
}

fn port_of(port: &str) -> Result<u16, String> {
    port.parse().map_err(|_| format!("{port:?} is no port, must be 0 to 65535 (0 picks a free one)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_may_connect() {
        for good in ["127.0.0.1:0", "127.8.9.1:80", "[::1]:7070", "localhost:7070"] {
            assert!(check(good).unwrap().ip().is_loopback(), "{good}");
        }
        for (bad, says) in [
            ("0.0.0.0:7070", "others could reach"),
            ("[::]:7070", "others could reach"),
            ("192.168.1.5:7070", "others could reach"),
            ("[::ffff:10.0.0.1]:7070", "others could reach"),
            ("example.org:7070", "is no address"),
            ("127.0.0.1", "has no port"),
            ("127.0.0.1:70700", "0 to 65535"),
        ] {
            let fault = check(bad).unwrap_err();
            assert!(fault.contains(says), "{bad}: {fault}");
        }
    }
}
