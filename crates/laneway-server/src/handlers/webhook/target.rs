//! A URL that an event may be posted to, as far as its text can tell: the addresses behind a name are looked at later.
//!
//! There is one way to write a host, so that nobody who reads the same text later can read another host in it: an address
//! in its usual form, or a name of letters, digits and hyphens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

use super::rules::Rules;

/// Longest URL in bytes.
const URL_BYTES_MAX: usize = 2_048;
/// Longest name in bytes, and longest part of one between dots.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Where to post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(super) uri: Uri,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) is_https: bool,
}

/// Who is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Address(IpAddr),
    Name(String),
}

impl Target {
    /// Reads a URL, or says what it must be. It does not repeat the URL, whose query may be a secret.
    pub(crate) fn parse(text: &str, rules: &Rules) -> Result<Self, String> {
        if text.len() > URL_BYTES_MAX {
            return Err(format!("must have at most {URL_BYTES_MAX} bytes"));
        }
        if let Some(odd) =
            text.chars().find(|letter| !letter.is_ascii_graphic() || matches!(letter, '\\' | '#'))
        {
            return Err(format!("has {odd:?}, must be a URL without blanks, \\, # and letters beyond ASCII"));
        }
        let uri: Uri =
            text.parse().map_err(|_| "must be a URL such as https://example.org/orders".to_owned())?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if rules.plaintext => false,
            _ => return Err("must begin with https:// (webhook.allow_http lets http:// pass)".to_owned()),
        };
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        if authority.contains('@') {
            return Err("has a user, must have none".to_owned());
        }
        let (host, port) = host_and_port(authority)?;
        let port = port.unwrap_or(if is_https { 443 } else { 80 });
        if !rules.ports.contains(&port) {
            let ports: Vec<String> = rules.ports.iter().map(u16::to_string).collect();
            return Err(format!("has port {port}, must have one of {} (webhook.ports)", ports.join(", ")));
        }
        let target = Self { host, port, is_https, uri };
        if let Host::Address(address) = target.host {
            rules.check(address)?;
        }
        Ok(target)
    }

    /// As people may see it: what is behind a question mark may be a secret.
    pub(crate) fn shown(text: &str) -> String {
        text.split_once('?').map_or_else(|| text.to_owned(), |(url, _)| format!("{url}?***"))
    }
}

fn host_and_port(authority: &str) -> Result<(Host, Option<u16>), String> {
    let wrong =
        "must have a name such as example.org or an address such as 192.0.2.1 or [2001:db8::1]".to_owned();
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, rest)) => {
            let address: Ipv6Addr = inside.parse().map_err(|_| wrong.clone())?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(wrong)?) };
            (Host::Address(address.into()), port)
        }
        None => {
            let (name, port) =
                authority.split_once(':').map_or((authority, None), |(name, port)| (name, Some(port)));
            let host = match name.parse::<Ipv4Addr>() {
                Ok(address) => Host::Address(address.into()),
                Err(_) if is_name(name) => Host::Name(name.to_ascii_lowercase()),
                Err(_) => return Err(wrong),
            };
            (host, port)
        }
    };
    let digits = |port: &&str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let number = |port: &str| Some(port).filter(digits).and_then(|port| port.parse().ok());
    let port =
        port.map(|port| number(port).ok_or("has a port that is no number from 0 to 65535")).transpose()?;
    Ok((host, port))
}

/// A name whose last part begins with a letter: everything else may be read as an address by somebody.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= NAME_BYTES_MAX
        && name.split('.').all(is_label)
        && last.starts_with(|letter: char| letter.is_ascii_alphabetic())
}
