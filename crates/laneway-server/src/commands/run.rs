//! Runs a command and says how it ended: with the exit code, and with words if it failed.

use std::process::ExitCode;
use std::time::Duration;

use tracing_subscriber::filter::LevelFilter;

use super::{config, dev, serve};
use crate::args::{Args, Command, ServeArgs};
use crate::http::chain;
use crate::settings::{Dev, Environment, Faults, Loaded, Sources, load};
use crate::signals::Signals;

/// Wrong usage.
const USAGE: u8 = 2;
/// Ended at once: what was not settled runs again at the next start.
const INTERRUPTED: u8 = 130;
/// How long tasks that do not give way may hold up the end.
const LAST_TASKS: Duration = Duration::from_secs(1);

/// Why a command failed.
pub(super) type CommandError = Box<dyn std::error::Error + Send + Sync>;

/// Runs the command that was typed.
pub(crate) fn run(args: Args) -> ExitCode {
    let environment = Environment::of_process();
    let checked = match args.command {
        Command::Dev(args) => Dev::check(args, &environment).map(Checked::Dev),
        Command::Serve(ServeArgs { flags }) => {
            load(&Sources { flags, environment }).map(Box::new).map(Checked::Serve)
        }
        Command::Config(command) => match config::run(command, environment) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(faults) => Err(faults),
        },
    };
    let checked = match checked {
        Ok(checked) => checked,
        Err(Faults(faults)) => {
            faults.iter().for_each(|fault| complain(fault));
            return ExitCode::from(USAGE);
        }
    };
    let level = match &checked {
        Checked::Dev(_) => LevelFilter::WARN,
        Checked::Serve(loaded) => loaded.settings.log.level,
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_ansi(false).init();
    match until_ended(checked) {
        Ok(Some(())) => ExitCode::SUCCESS,
        Ok(None) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            complain(&chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// Answers nothing when a second signal did not wait for the end.
fn until_ended(checked: Checked) -> Result<Option<()>, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let signals = Signals::new()?;
        let command = |end| async {
            match checked {
                Checked::Dev(settings) => Box::pin(dev::run(settings, end)).await,
                Checked::Serve(loaded) => Box::pin(serve::run(loaded.settings, end)).await,
            }
        };
        signals.end(command).await.transpose()
    });
    runtime.shutdown_timeout(LAST_TASKS);
    ended
}

enum Checked {
    Dev(Dev),
    Serve(Box<Loaded>),
}

#[expect(clippy::print_stderr, reason = "what went wrong is told on stderr")]
fn complain(words: &str) {
    eprintln!("laneway: {words}");
}
