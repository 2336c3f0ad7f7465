//! Who can reach an address, and what that takes.
//!
//! Judged is the address that is bound, not the text that was typed: a name may stand for any address.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::seam;

/// How often it is said what was left open.
const REMIND_EVERY: Duration = Duration::from_secs(60);

/// Who can reach a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Programs on this machine.
    Machine,
    /// Others too.
    Network,
}

/// What somebody who lets others connect has prepared, or has said in so many words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Consent {
    /// There are tokens.
    pub(crate) tokens: bool,
    /// There is a certificate.
    pub(crate) tls: bool,
    /// `--allow-plaintext` was typed.
    pub(crate) plaintext: bool,
    /// `--allow-anonymous` was typed.
    pub(crate) anonymous: bool,
}

impl Exposure {
    /// Who can reach this address.
    pub(crate) fn of(address: IpAddr) -> Self {
        // An IPv4 address may be written as one of IPv6.
        if address.to_canonical().is_loopback() { Self::Machine } else { Self::Network }
    }
}

/// Refuses an address that others can reach without tokens and TLS, with what to do about it.
pub(crate) fn check(address: SocketAddr, consent: Consent) -> Result<Exposure, String> {
    let exposure = Exposure::of(address.ip());
    if exposure == Exposure::Machine {
        return Ok(exposure);
    }
    let mut lacks = Vec::new();
    if !consent.tokens && !consent.anonymous {
        lacks.push(
            "  tokens: make one with `laneway config token NAME --scopes read,write`, keep its line in a file of mode \
             600, and name that with --token-file FILE; or type --allow-anonymous to let everybody do everything",
        );
    }
    if !consent.tls && !consent.plaintext {
        lacks.push(
            "  TLS: name a certificate and its key with --tls-cert FILE --tls-key FILE; or type --allow-plaintext if \
             an ingress in front of this speaks TLS",
        );
    }
    if lacks.is_empty() {
        return Ok(exposure);
    }
    Err(format!(
        "{address}: others could reach this address, and that takes\n{}\nonly programs on this machine can reach \
         127.0.0.1, which takes neither",
        lacks.join("\n")
    ))
}

/// What strangers can do because somebody said so; nothing where they can do nothing.
fn left_open(exposure: Exposure, consent: Consent) -> Option<&'static str> {
    match (exposure, consent.tokens, consent.tls) {
        (Exposure::Machine, ..) | (Exposure::Network, true, true) => None,
        (Exposure::Network, false, true) => {
            Some("whoever reaches this address may read and change everything, as --allow-anonymous says")
        }
        (Exposure::Network, true, false) => {
            Some("tokens and payloads can be read on their way to this address, as --allow-plaintext says")
        }
        (Exposure::Network, false, false) => Some(
            "whoever reaches this address, or listens on the way, may read and change everything, as --allow-anonymous and \
             --allow-plaintext say",
        ),
    }
}

/// Says again and again what was left open, for as long as it is.
pub(crate) async fn remind(exposure: Exposure, consent: Consent) -> Infallible {
    let tell = |open: &str| tracing::warn!("{open}");
    remind_by(left_open(exposure, consent), tell).await
}

async fn remind_by(open: Option<&str>, tell: impl Fn(&str)) -> Infallible {
    let Some(open) = open else { return std::future::pending().await };
    loop {
        tell(open);
        seam::pass(REMIND_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_left_open_is_said_every_minute() {
        let said = AtomicUsize::new(0);
        let all_open = Consent { tokens: false, tls: false, plaintext: true, anonymous: true };
        let hour = Duration::from_secs(3_599);
        let tell = |_: &str| {
            said.fetch_add(1, Ordering::Relaxed);
        };
        for (exposure, consent, times) in [
            (Exposure::Network, all_open, 60),
            (Exposure::Machine, all_open, 60),
            (Exposure::Network, Consent { tls: true, ..all_open }, 120),
            (Exposure::Network, Consent { tokens: true, ..all_open }, 180),
            (Exposure::Network, Consent { tokens: true, tls: true, ..all_open }, 180),
        ] {
            let told = seam::within(hour, remind_by(left_open(exposure, consent), tell)).await;
            assert!(told.is_none(), "it does not end");
            assert_eq!(said.load(Ordering::Relaxed), times, "{exposure:?} {consent:?}");
        }
    }

    fn told(address: &str, [tokens, tls, plaintext, anonymous]: [bool; 4]) -> Result<Exposure, String> {
        check(address.parse().unwrap(), Consent { tokens, tls, plaintext, anonymous })
    }

    #[test]
    fn this_machine_needs_nothing() {
        for address in ["127.0.0.1:0", "127.8.9.1:80", "[::1]:7070", "[::ffff:127.0.0.1]:7070"] {
            assert_eq!(told(address, [false; 4]), Ok(Exposure::Machine), "{address}");
        }
    }

    #[test]
    fn whatever_others_can_reach_needs_tokens_and_tls_or_the_words_that_lift_them() {
        for address in
            ["0.0.0.0:1", "[::]:1", "192.168.1.5:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1", "[fe80::1]:1"]
        {
            for (has, tokens, tls) in [
                ([false, false, false, false], true, true),
                ([true, false, false, false], false, true),
                ([false, true, false, false], true, false),
                ([false, false, true, false], true, false),
                ([false, false, false, true], false, true),
            ] {
                let refused = told(address, has).unwrap_err();
                assert_eq!(refused.contains("--token-file"), tokens, "{refused}");
                assert_eq!(refused.contains("--tls-cert"), tls, "{refused}");
                assert!(refused.starts_with(address), "{refused}");
            }
            for has in [
                [true, true, false, false],
                [true, false, true, false],
                [false, true, false, true],
                [false, false, true, true],
            ] {
                assert_eq!(told(address, has), Ok(Exposure::Network), "{address} {has:?}");
            }
        }
    }
}
