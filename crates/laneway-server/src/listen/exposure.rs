//! Who can reach an address, and what that takes.
//!
//! Judged is the address that is bound, not the text that was typed: a name may stand for any address.

use std::net::{IpAddr, SocketAddr};

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

#[cfg(test)]
mod tests {
    use super::*;

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
