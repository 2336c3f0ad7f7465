//! The command line: what to run and how to print it. Parses only; unknown words are errors.

use std::path::PathBuf;

pub(crate) const HELP: &str = "\
Measures Laneway beside raw baselines, run in the same minute.

usage: laneway-bench [--quick] [-o table|json] [--only NAME-PREFIX] [--dir FOLDER]
       laneway-bench --only neighbour [--minutes N] [--dir FOLDER]
       laneway-bench --only soak [--minutes N] [--store file|redis] [--out FOLDER] [--dir FOLDER]

  --quick             short runs, about four minutes in total
  -o, --output FORM   table (default) or json
  --only NAME-PREFIX  only the rows whose name begins so, such as --only append or --only growth
  --only neighbour    quiet streams beside a busy one, with limits; fails when one does not hold
  --only soak         mixed load, looked at every minute; fails when cost is not flat at the end
  --minutes N         length of the neighbour (default 10) or the soak (default 60)
  --store STORE       what the soak runs on: file (default), or redis with three nodes
  --out FOLDER        where the soak writes its CSV file and its plot; default: ./benches if it exists, else .
  --dir FOLDER        where the files of the durable rows go; default: ./target if it exists, else the system's
                      folder for temporary files. It needs about 2 GB with --quick and 20 GB without.
  -h, --help          this text

The rows over HTTP start the server, which must be built: cargo build --release
";

/// What the program is asked to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Run(Arguments),
    /// One of the program's own child processes.
    Child(Child),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) quick: bool,
    pub(crate) form: Form,
    pub(crate) only: Option<String>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) minutes: Option<u32>,
    pub(crate) store: Option<StoreKind>,
    pub(crate) out: Option<PathBuf>,
}

/// Which store a soak runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    File,
    Redis,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Table,
    Json,
}

/// Work that needs a process of its own; not meant for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// Pushes so many distinct keys through lanes and prints its memory.
    IdleMemory { keys: u64 },
    /// Loads a store with pending events and waits to be killed.
    Load { dir: PathBuf, events: u64, payload_bytes: usize },
    /// Opens a store, prints how long that took, and waits to be killed.
    Open { dir: PathBuf },
    /// Lets so many events wait and prints its memory.
    WaitingMemory { dir: PathBuf, events: u64, between_kib: usize },
    /// Starts a processor on each of so many streams and prints what idling takes.
    IdleSeats { dir: PathBuf, streams: u32, settle: u64, measured: u64 },
    /// Answers calls and stores nothing: a baseline.
    BareHttp,
    /// Answers lines on standard input: a handler.
    EchoLines,
}

/// The standing benchmarks, which `--only` names and which are not rows.
pub(crate) const NEIGHBOUR: &str = "neighbour";
pub(crate) const SOAK: &str = "soak";

/// First argument of a child process.
pub(crate) const CHILD: &str = "--child";

impl Child {
    pub(crate) fn arguments(&self) -> Vec<String> {
        let words = match self {
            Self::IdleMemory { keys } => vec!["idle-memory".to_owned(), keys.to_string()],
            Self::Load { dir, events, payload_bytes } => {
                vec![
                    "load".to_owned(),
                    dir.display().to_string(),
                    events.to_string(),
                    payload_bytes.to_string(),
                ]
            }
            Self::Open { dir } => vec!["open".to_owned(), dir.display().to_string()],
            Self::WaitingMemory { dir, events, between_kib } => vec![
                "waiting-memory".to_owned(),
                dir.display().to_string(),
                events.to_string(),
                between_kib.to_string(),
            ],
            Self::IdleSeats { dir, streams, settle, measured } => vec![
                "idle-seats".to_owned(),
                dir.display().to_string(),
                streams.to_string(),
                settle.to_string(),
                measured.to_string(),
            ],
            Self::BareHttp => vec!["bare-http".to_owned()],
            Self::EchoLines => vec!["echo-lines".to_owned()],
        };
        std::iter::once(CHILD.to_owned()).chain(words).collect()
    }

    fn parse(words: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["idle-memory", keys] => Ok(Self::IdleMemory { keys: number("keys", keys)? }),
            ["load", dir, events, payload_bytes] => Ok(Self::Load {
                dir: dir.into(),
                events: number("events", events)?,
                payload_bytes: number("payload_bytes", payload_bytes)?,
            }),
            ["open", dir] => Ok(Self::Open { dir: dir.into() }),
            ["waiting-memory", dir, events, between_kib] => Ok(Self::WaitingMemory {
                dir: dir.into(),
                events: number("events", events)?,
                between_kib: number("between_kib", between_kib)?,
            }),
            ["idle-seats", dir, streams, settle, measured] => Ok(Self::IdleSeats {
                dir: dir.into(),
                streams: number("streams", streams)?,
                settle: number("settle", settle)?,
                measured: number("measured", measured)?,
            }),
            ["bare-http"] => Ok(Self::BareHttp),
            ["echo-lines"] => Ok(Self::EchoLines),
            _ => Err(format!("{CHILD} is only for the program itself; got {words:?}")),
        }
    }
}

fn number<T: std::str::FromStr>(field: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{field} is {text:?}, must be a whole number"))
}

/// Reads the words after the program's name.
pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let words: Vec<String> = words.into_iter().collect();
    if words.first().is_some_and(|word| word == CHILD) {
        return Child::parse(&words[1..]).map(Command::Child);
    }
    let mut arguments = Arguments::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or_else(|| format!("{word} needs {what} after it"));
        match word.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "--quick" => arguments.quick = true,
            "-o" | "--output" => arguments.form = form(&value("table or json")?)?,
            "--only" => arguments.only = Some(value("the beginning of a row's name")?),
            "--dir" => arguments.dir = Some(value("a folder")?.into()),
            "--minutes" => arguments.minutes = Some(minutes(&value("a number of minutes")?)?),
            "--store" => arguments.store = Some(store(&value("file or redis")?)?),
            "--out" => arguments.out = Some(value("a folder")?.into()),
            other => return Err(format!("unknown argument {other:?}; --help lists all")),
        }
    }
    arguments.check()?;
    Ok(Command::Run(arguments))
}

impl Arguments {
    /// Refuses arguments that what is run has no use for.
    fn check(&self) -> Result<(), String> {
        let only = self.only.as_deref();
        let (neighbour, soak) = (only == Some(NEIGHBOUR), only == Some(SOAK));
        let refusals = [
            (self.quick && (neighbour || soak), "--quick is for rows; use --minutes"),
            (self.form == Form::Json && (neighbour || soak), "--output json is for rows"),
            (
                self.minutes.is_some() && !neighbour && !soak,
                "--minutes is for --only neighbour and --only soak",
            ),
            (self.store.is_some() && !soak, "--store is for --only soak"),
            (self.out.is_some() && !soak, "--out is for --only soak"),
        ];
        refusals.iter().find(|(refused, _)| *refused).map_or(Ok(()), |(_, why)| Err((*why).to_owned()))
    }
}

fn minutes(text: &str) -> Result<u32, String> {
    let minutes = number("minutes", text)?;
    if minutes == 0 { Err("minutes is 0, must be at least 1".to_owned()) } else { Ok(minutes) }
}

fn store(text: &str) -> Result<StoreKind, String> {
    match text {
        "file" => Ok(StoreKind::File),
        "redis" => Ok(StoreKind::Redis),
        other => Err(format!("store is {other:?}, must be file or redis")),
    }
}

fn form(text: &str) -> Result<Form, String> {
    match text {
        "table" => Ok(Form::Table),
        "json" => Ok(Form::Json),
        other => Err(format!("output is {other:?}, must be table or json")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn every_argument_is_understood() {
        assert_eq!(read(""), Ok(Command::Run(Arguments::default())));
        let rows = Arguments {
            quick: true,
            form: Form::Json,
            only: Some("append".to_owned()),
            dir: Some("x".into()),
            ..Arguments::default()
        };
        assert_eq!(read("--quick -o json --only append --dir x"), Ok(Command::Run(rows)));
        let soak = Arguments {
            only: Some(SOAK.to_owned()),
            minutes: Some(3),
            store: Some(StoreKind::Redis),
            out: Some("y".into()),
            ..Arguments::default()
        };
        assert_eq!(read("--only soak --minutes 3 --store redis --out y"), Ok(Command::Run(soak)));
        assert_eq!(read("--quick --help"), Ok(Command::Help));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(read("--quik"), Err("unknown argument \"--quik\"; --help lists all".to_owned()));
        assert_eq!(read("-o xml"), Err("output is \"xml\", must be table or json".to_owned()));
        assert_eq!(read("--minutes 0"), Err("minutes is 0, must be at least 1".to_owned()));
        assert_eq!(read("--store sql"), Err("store is \"sql\", must be file or redis".to_owned()));
        assert_eq!(read("--dir"), Err("--dir needs a folder after it".to_owned()));
    }

    #[test]
    fn arguments_without_an_effect_are_refused() {
        assert!(read("--only neighbour --minutes 1").is_ok());
        for line in [
            "--minutes 1",
            "--only growth --store file",
            "--only neighbour --out x",
            "--only neighbour --quick",
            "--only soak -o json",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_child_reads_what_its_parent_writes() {
        let children = [
            Child::IdleMemory { keys: 7 },
            Child::Load { dir: "a b".into(), events: 8, payload_bytes: 9 },
            Child::Open { dir: "c".into() },
            Child::WaitingMemory { dir: "d".into(), events: 10, between_kib: 11 },
            Child::IdleSeats { dir: "e".into(), streams: 12, settle: 13, measured: 14 },
            Child::BareHttp,
            Child::EchoLines,
        ];
        for child in children {
            assert_eq!(parse(child.arguments()), Ok(Command::Child(child)));
        }
        assert!(read("--child dance").is_err());
    }
}
