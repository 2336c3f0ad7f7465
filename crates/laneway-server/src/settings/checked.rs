//! Settings that can be used.

use std::net::SocketAddr;
use std::time::Duration;

use laneway::core::period;

use super::listen;
use crate::args::{DevArgs, ServeArgs};

/// The variable that says where to listen.
pub(crate) const LISTEN: &str = "LANEWAY_HTTP_LISTEN";
/// The variable that says where everything is kept.
pub(crate) const STORE: &str = "LANEWAY_STORE_URL";
/// Where everything is kept unless it is said.
const STORE_DEFAULT: &str = "file:./laneway-data";

/// What the environment says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// Where to listen.
    pub(crate) listen: Option<String>,
    /// Where everything is kept.
    pub(crate) store: Option<String>,
}

/// What `laneway serve` was asked to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Serve {
    /// URL of the store.
    pub(crate) store: String,
    /// Where to listen.
    pub(crate) listen: SocketAddr,
}

/// What `laneway dev` was asked to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dev {
    /// Whether the store is emptied first.
    pub(crate) fresh: bool,
    /// Where to listen.
    pub(crate) listen: SocketAddr,
    /// What runs the events.
    pub(crate) handler: Handler,
}

/// What runs the events of `laneway dev`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    /// The one that is built in.
    Demo,
    /// A command of the user's.
    Exec {
        /// The program and its arguments.
        command: Vec<String>,
        /// How long it may take.
        timeout: Option<Duration>,
    },
}

/// Everything that is wrong with what was typed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Faults(pub(crate) Vec<String>);

impl Serve {
    /// What was typed goes before what the environment says; a fault names where it was said.
    pub(crate) fn check(args: ServeArgs, environment: Environment) -> Result<Self, Faults> {
        let mut faults = Vec::new();
        let listen = listen_of(args.listen.as_deref(), environment.listen.as_deref());
        let listen = listen.map_err(|fault| faults.push(fault)).ok();
        let (name, store) = match (args.store, environment.store) {
            (Some(store), _) => ("--store", store),
            (None, Some(store)) => (STORE, store),
            (None, None) => ("--store", STORE_DEFAULT.to_owned()),
        };
        if !store.contains(':') {
            faults.push(format!(
                "{name} {store:?}: is no URL, must be file:PATH or memory: (for a folder: file:{store})"
            ));
        }
        match listen {
            Some(listen) if faults.is_empty() => Ok(Self { store, listen }),
            _ => Err(Faults(faults)),
        }
    }
}

impl Dev {
    /// What was typed goes before what the environment says.
    pub(crate) fn check(args: DevArgs, environment: Environment) -> Result<Self, Faults> {
        let mut faults = Vec::new();
        let listen = match &args.port {
            Some(port) => listen::check_port("--port", port),
            None => listen_of(args.listen.as_deref(), environment.listen.as_deref()),
        };
        let listen = listen.map_err(|fault| faults.push(fault)).ok();
        let handler = match args.handler.first() {
            None => Handler::Demo,
            Some(program) => {
                if program.is_empty() {
                    faults.push("the handler behind -- is empty, must be a command".to_owned());
                }
                let timeout = args.timeout.as_deref().and_then(|text| check_timeout(text, &mut faults));
                Handler::Exec { command: args.handler, timeout }
            }
        };
        match listen {
            Some(listen) if faults.is_empty() => Ok(Self { fresh: args.fresh, listen, handler }),
            _ => Err(Faults(faults)),
        }
    }
}

fn listen_of(typed: Option<&str>, environment: Option<&str>) -> Result<SocketAddr, String> {
    match (typed, environment) {
        (Some(address), _) => listen::check("--listen", address),
        (None, Some(address)) => listen::check(LISTEN, address),
        (None, None) => Ok(listen::DEFAULT),
    }
}

fn check_timeout(text: &str, faults: &mut Vec<String>) -> Option<Duration> {
    let timeout = period::parse(text).filter(|timeout| !timeout.is_zero());
    if timeout.is_none() {
        faults.push(format!("--timeout {text:?}: must be {}, more than nothing", period::FORM));
    }
    timeout
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_are_told_at_once() {
        let args = ServeArgs { store: Some("data".to_owned()), listen: Some("0.0.0.0:7070".to_owned()) };
        let Faults(faults) = Serve::check(args, Environment::default()).unwrap_err();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("0.0.0.0") && faults[1].contains("file:data"), "{faults:?}");
    }

    #[test]
    fn a_fault_of_the_environment_names_the_variable() {
        let nothing = || ServeArgs { store: None, listen: None };
        let environment = Environment { listen: Some("0.0.0.0:1".to_owned()), store: Some("bad".to_owned()) };
        let Faults(faults) = Serve::check(nothing(), environment.clone()).unwrap_err();
        assert!(faults[0].starts_with("LANEWAY_HTTP_LISTEN \"0.0.0.0:1\""), "{faults:?}");
        assert!(faults[1].starts_with("LANEWAY_STORE_URL \"bad\""), "{faults:?}");
        let typed = ServeArgs { store: Some("memory:".to_owned()), listen: Some("127.0.0.1:0".to_owned()) };
        assert_eq!(Serve::check(typed, environment).unwrap().store, "memory:");
        let default = Serve::check(nothing(), Environment::default()).unwrap();
        assert_eq!((default.store.as_str(), default.listen), ("file:./laneway-data", listen::DEFAULT));
    }

    #[test]
    fn what_is_behind_the_dashes_is_the_handler() {
        let handler = vec!["python3".to_owned(), "handler.py".to_owned()];
        let timeout = Some("30s".to_owned());
        let args = DevArgs { fresh: false, port: None, listen: None, timeout, handler: handler.clone() };
        let checked = Dev::check(args, Environment::default()).unwrap();
        let exec = Handler::Exec { command: handler, timeout: Some(Duration::from_secs(30)) };
        assert_eq!((checked.listen, checked.handler), (listen::DEFAULT, exec));
    }

    #[test]
    fn what_is_typed_goes_before_the_environment() {
        let check = |port: Option<&str>, listen: Option<&str>| {
            let port = port.map(str::to_owned);
            let args = DevArgs { fresh: false, port, listen: None, timeout: None, handler: Vec::new() };
            let environment = Environment { listen: listen.map(str::to_owned), store: None };
            Dev::check(args, environment).map(|dev| dev.listen.port())
        };
        assert_eq!(check(Some("7071"), Some("127.0.0.1:9000")), Ok(7071));
        assert_eq!(check(None, Some("127.0.0.1:9000")), Ok(9000));
        assert_eq!(check(None, None), Ok(7070));
        let Faults(faults) = check(None, Some("nowhere")).unwrap_err();
        assert!(faults[0].starts_with("LANEWAY_HTTP_LISTEN \"nowhere\""), "{faults:?}");
    }
}
