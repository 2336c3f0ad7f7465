//! What `laneway dev` is asked to do. It reads no file: it is there to try things.

use std::net::SocketAddr;
use std::time::Duration;

use laneway::core::period;

use super::listen;
use super::load::{Environment, Faults};
use super::origin::Origin;
use crate::args::DevArgs;

/// The variable that says where to listen.
const LISTEN: &str = "LANEWAY_HTTP_LISTEN";

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

impl Dev {
    /// What was typed goes before what the environment says.
    pub(crate) fn check(args: DevArgs, environment: &Environment) -> Result<Self, Faults> {
        let mut faults = Vec::new();
        let listen = match (&args.port, &args.listen, environment.variables.get(LISTEN)) {
            (Some(port), _, _) => said(Origin::Flag("port"), port, listen::check_port),
            (None, Some(address), _) => said(Origin::Flag("listen"), address, listen::check),
            (None, None, Some(address)) => said(Origin::Variable(LISTEN.to_owned()), address, listen::check),
            (None, None, None) => Ok(listen::DEFAULT),
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

fn said(
    origin: Origin,
    text: &str,
    check: fn(&str) -> Result<SocketAddr, String>,
) -> Result<SocketAddr, String> {
    check(text).map_err(|wrong| origin.fault("http.listen", &format!("{text:?}"), &wrong))
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

    fn args(port: Option<&str>, timeout: Option<&str>, handler: &[&str]) -> DevArgs {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let handler = handler.iter().map(|word| (*word).to_owned()).collect();
        DevArgs { fresh: false, port: owned(port), listen: None, timeout: owned(timeout), handler }
    }

    #[test]
    fn what_is_behind_the_dashes_is_the_handler() {
        let args = args(None, Some("30s"), &["python3", "handler.py"]);
        let command = args.handler.clone();
        let checked = Dev::check(args, &Environment::default()).unwrap();
        let exec = Handler::Exec { command, timeout: Some(Duration::from_secs(30)) };
        assert_eq!((checked.listen, checked.handler), (listen::DEFAULT, exec));
    }

    #[test]
    fn what_is_typed_goes_before_the_environment() {
        let check = |port: Option<&str>, listen: Option<&str>| {
            let variables = listen.map(|listen| (LISTEN.to_owned(), listen.to_owned()));
            let environment =
                Environment { variables: variables.into_iter().collect(), ..Environment::default() };
            Dev::check(args(port, None, &[]), &environment).map(|dev| dev.listen.port())
        };
        assert_eq!(check(Some("7071"), Some("127.0.0.1:9000")), Ok(7071));
        assert_eq!(check(None, Some("127.0.0.1:9000")), Ok(9000));
        assert_eq!(check(None, None), Ok(7070));
        let Faults(faults) = check(None, Some("nowhere")).unwrap_err();
        assert!(faults[0].starts_with("LANEWAY_HTTP_LISTEN \"nowhere\""), "{faults:?}");
    }
}
