//! Runs a command and says how it ended: with the exit code, and with words if it failed.

use std::process::ExitCode;
use std::time::Duration;

use tracing_subscriber::filter::LevelFilter;

use super::{config, dev, operate, serve};
use crate::args::{Args, Command, ServeArgs};
use crate::exit::{Exit, Fault};
use crate::http::chain;
use crate::logs::{self, Format, Spans, complain};
use crate::settings::{Dev, Environment, Faults, Loaded, Settings, Sources, load};
use crate::signals::Signals;
use crate::telemetry;
use crate::terminal::remark;

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
        Command::Operation(operation) => return ended(operate::run(operation)),
    };
    let checked = match checked {
        Ok(checked) => checked,
        Err(Faults(faults)) => {
            faults.iter().for_each(|fault| complain(fault));
            return Exit::Usage.into();
        }
    };
    let begun = match &checked {
        Checked::Dev(_) => {
            logs::begin(LevelFilter::WARN, Format::Text);
            Ok(Spans::default())
        }
        Checked::Serve(loaded) => {
            let Settings { log, otlp, .. } = &loaded.settings;
            logs::begin_with_spans(log, otlp.as_deref())
        }
    };
    let spans = match begun {
        Ok(spans) => spans,
        Err(error) => {
            complain(&format!("spans cannot be exported: {}", chain(&error)));
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = telemetry::install() {
        complain(&format!("metrics cannot be kept: {error}"));
        return ExitCode::FAILURE;
    }
    let ended = until_ended(checked);
    spans.end();
    match ended {
        Ok(Some(())) => ExitCode::SUCCESS,
        Ok(None) => Exit::Interrupted.into(),
        Err(error) => {
            complain(&chain(&*error));
            Exit::Failed.into()
        }
    }
}

/// How an operation ended, with what went wrong and what to do next on stderr.
fn ended(ended: Result<(), Fault>) -> ExitCode {
    let Err(Fault { exit, words, hint }) = ended else { return ExitCode::SUCCESS };
    words.iter().for_each(|words| complain(words));
    hint.into_iter().for_each(remark);
    exit.into()
}

/// Answers nothing when a second signal did not wait for the end.
fn until_ended(checked: Checked) -> Result<Option<()>, CommandError> {
    // Callers of the store are woken by its own threads: their turn must not wait until a worker has nothing else to do.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().global_queue_interval(1).enable_all().build()?;
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
