//! What is said where, what counts, and what is told of faults.

use std::path::PathBuf;

use super::flags::Flags;
use super::load::{Environment, Faults, Loaded, Sources, load};
use super::origin::Origin;
use super::sections::ProcessorHandler;

/// A folder with a `laneway.toml`, read by `--config`.
struct Case {
    folder: tempfile::TempDir,
    sources: Sources,
}

impl Case {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("laneway.toml");
        std::fs::write(&path, text).unwrap();
        let flags = Flags { config: Some(path), ..Flags::default() };
        Self { folder, sources: Sources { flags, environment: Environment::default() } }
    }

    fn typed(mut self, path: &'static str, value: &str) -> Self {
        self.sources.flags.given.push((path, value.to_owned()));
        self
    }

    fn exported(mut self, name: &str, value: &str) -> Self {
        self.sources.environment.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn load(&self) -> Loaded {
        load(&self.sources).unwrap()
    }

    /// Faults, with the folder left out of them.
    fn faults(&self) -> Vec<String> {
        let folder = format!("{}/", self.folder.path().display());
        let Faults(faults) = load(&self.sources).unwrap_err();
        faults.into_iter().map(|fault| fault.replace(&folder, "")).collect()
    }
}

const FILE: &str = "[store]\nurl = \"file:./a\"\n[http]\nlisten = \"127.0.0.1:1\"\n[log]\nlevel = \"info\"\n";

#[test]
fn flags_go_before_variables_before_the_file_before_defaults() {
    let case = Case::new(FILE)
        .exported("LANEWAY_HTTP_LISTEN", "127.0.0.1:2")
        .exported("LANEWAY_STORE_URL", "file:./b");
    let case = case.typed("store.url", "file:./c");
    let Loaded { settings, told, file } = case.load();
    assert_eq!((settings.store.url.as_str(), settings.http.listen.as_str()), ("file:./c", "127.0.0.1:2"));
    let path = file.unwrap();
    let origins: Vec<_> = told.into_iter().map(|told| (told.path, told.value, told.origin)).collect();
    let expected = [
        ("store.url", "file:./c", Origin::Flag("store")),
        ("store.namespace", "laneway", Origin::Default),
        ("http.listen", "127.0.0.1:2", Origin::Variable("LANEWAY_HTTP_LISTEN".to_owned())),
        ("log.level", "info", Origin::File { path: path.into(), line: 6 }),
    ];
    for (path, value, origin) in expected {
        assert!(origins.contains(&(path, value.to_owned(), origin)), "{path}: {origins:?}");
    }
}

#[test]
fn all_faults_are_told_at_once_with_where_they_came_from() {
    let text = "[http]\nlisten = \"0.0.0.0\"\nlisen = 1\n[lgo]\nlevel = 1\n[[processor]]\nname = \"a\"\nstrem = \"b\"\n\
                exec = \"./a b\"\n[[processor]]\nname = \"c\"\nstream = \"b\"\n";
    let faults = Case::new(text).exported("LANEWAY_LOG_LEVL", "x").typed("store.url", "data").faults();
    let expected = [
        "--store \"data\": is no URL, must be file:PATH, redis://HOST:PORT or memory: (for a folder, write file: before it)",
        "laneway.toml:2: http.listen \"0.0.0.0\": has no port",
        "laneway.toml:3: http.lisen is no setting; did you mean http.listen?",
        "laneway.toml:4: lgo is no setting; did you mean log?",
        "the variable LANEWAY_LOG_LEVL is no setting; did you mean LANEWAY_LOG_LEVEL?",
        "laneway.toml:8: strem is nothing that a processor has; did you mean stream?",
        "laneway.toml:9: processor.exec \"./a b\": must be a list of texts",
        "laneway.toml:10: processor: has 0 handlers, must have one",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for expected in expected {
        assert!(faults.iter().any(|fault| fault.starts_with(expected)), "{expected}: {faults:#?}");
    }
}

#[test]
fn a_broken_file_is_told_with_its_line() {
    let faults = Case::new("[http]\nlisten = \n").faults();
    assert!(faults[0].starts_with("laneway.toml:2: "), "{faults:?}");
    let faults = Case::new("[stream]\nname = \"a\"\n").faults();
    assert_eq!(faults, ["laneway.toml:1: stream is a list of tables: write [[stream]]"]);
    let missing = Flags { config: Some(PathBuf::from("/nowhere/laneway.toml")), ..Flags::default() };
    let Faults(faults) = load(&Sources { flags: missing, ..Sources::default() }).unwrap_err();
    assert!(faults[0].starts_with("/nowhere/laneway.toml: cannot be read"), "{faults:?}");
}

#[test]
fn the_example_of_the_template_can_be_used() {
    let template = super::template().replace("# [", "[");
    let example = template.lines().map(|line| {
        let is_value = line.starts_with("# ") && line.contains(" = ");
        format!("{}\n", if is_value { line.trim_start_matches("# ") } else { line })
    });
    let settings = Case::new(&example.collect::<String>()).load().settings;
    assert_eq!(settings.streams[0].name, "orders");
    assert_eq!(settings.processors[0].handler, ProcessorHandler::Exec(vec!["./charge.sh".to_owned()]));
    assert_eq!(settings.schedules[0].0.firing.data.as_ref(), br#"{"kind":"report"}"#);
}

#[test]
fn two_of_one_name_are_a_fault() {
    let one = "[[stream]]\nname = \"a\"\n";
    assert_eq!(
        Case::new(&one.repeat(2)).faults(),
        ["laneway.toml:3: stream: there are two of the name \"a\""]
    );
}

#[test]
fn who_signs_in_to_a_store_is_not_shown() {
    let case = Case::new("").typed("store.url", "redis://ann:s3cret@db:6379/0?password=s3cret");
    let told = case.load().told;
    assert_eq!(told[0].value, "redis://***@db:6379/0?***");
}

#[test]
fn variables_that_others_set_are_no_faults() {
    let case =
        Case::new("").exported("LANEWAY_PORT_7070_TCP", "tcp://10.0.0.1:7070").exported("LANEWAY_KEY", "a");
    case.load();
}
