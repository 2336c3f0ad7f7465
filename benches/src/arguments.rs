//! The command line: what to run and how to print it. Parses only; unknown words are errors.

use std::path::PathBuf;

pub(crate) const HELP: &str = "\
Measures Laneway beside raw baselines, run in the same minute.

usage: laneway-bench [--quick] [-o table|json] [--only NAME-PREFIX] [--dir FOLDER]

  --quick             short runs, about two minutes in total
  -o, --output FORM   table (default) or json
  --only NAME-PREFIX  only the rows whose name begins so, such as --only append
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
    /// Answers calls and stores nothing: a baseline.
    BareHttp,
    /// Answers lines on standard input: a handler.
    EchoLines,
}

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
            other => return Err(format!("unknown argument {other:?}; --help lists all")),
        }
    }
    Ok(Command::Run(arguments))
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
        let all = Arguments {
            quick: true,
            form: Form::Json,
            only: Some("append".to_owned()),
            dir: Some("x".into()),
        };
        assert_eq!(read("--quick -o json --only append --dir x"), Ok(Command::Run(all)));
        assert_eq!(read("--quick --help"), Ok(Command::Help));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(read("--quik"), Err("unknown argument \"--quik\"; --help lists all".to_owned()));
        assert_eq!(read("-o xml"), Err("output is \"xml\", must be table or json".to_owned()));
        assert_eq!(read("--dir"), Err("--dir needs a folder after it".to_owned()));
    }

    #[test]
    fn a_child_reads_what_its_parent_writes() {
        let children = [
            Child::IdleMemory { keys: 7 },
            Child::Load { dir: "a b".into(), events: 8, payload_bytes: 9 },
            Child::Open { dir: "c".into() },
            Child::BareHttp,
            Child::EchoLines,
        ];
        for child in children {
            assert_eq!(parse(child.arguments()), Ok(Command::Child(child)));
        }
        assert!(read("--child dance").is_err());
    }
}
