//! Merges what flags, environment, file and defaults say, and checks all of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use laneway::without_user;
use serde_json::Value;

use super::field::Field;
use super::file::{self, Contents, Entry, Known, Leaf};
use super::flags::Flags;
use super::origin::Origin;
use super::sections::{Processor, Schedule, Section, Stream};
use super::table::{Setting, Shown, TABLE};
use super::together;
use super::values::Settings;
use crate::handlers;
use crate::nearest::nearest;

/// Everything that can say something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// What was typed.
    pub(crate) flags: Flags,
    /// What was exported.
    pub(crate) environment: Environment,
}

/// What the environment says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// All variables whose names begin with ours.
    pub(super) variables: BTreeMap<String, String>,
    /// Where the user's configuration is, if it is said.
    pub(super) config_home: Option<PathBuf>,
    /// The user's folder.
    pub(super) home: Option<PathBuf>,
}

/// Settings, and where each came from.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// What can be used.
    pub(crate) settings: Settings,
    /// What to tell people of each setting, in the order of the table.
    pub(crate) told: Vec<Told>,
    /// The file that was read, if one was.
    pub(crate) file: Option<PathBuf>,
}

/// One setting for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// Its path.
    pub(crate) path: &'static str,
    /// Its value, without what is secret.
    pub(crate) value: String,
    /// Where it came from.
    pub(crate) origin: Origin,
}

/// Everything that is wrong with what was said.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Faults(pub(crate) Vec<String>);

/// Variables that are ours and no settings: those of the commands that speak HTTP. A handler is given others.
const OTHER_VARIABLES: [&str; 2] = ["LANEWAY_SERVER", "LANEWAY_TOKEN"];
/// Kubernetes tells every container so about a service of the name `laneway`.
const FOREIGN_BEGINNINGS: [&str; 2] = ["LANEWAY_PORT", "LANEWAY_SERVICE_"];

impl Environment {
    /// That of this process.
    pub(crate) fn of_process() -> Self {
        let ours = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("LANEWAY_"))?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        Self { variables: ours.collect(), config_home: folder("XDG_CONFIG_HOME"), home: folder("HOME") }
    }
}

/// What all sources say together.
pub(crate) fn load(sources: &Sources) -> Result<Loaded, Faults> {
    let mut faults = Vec::new();
    let environment = &sources.environment;
    let file = sources.flags.config.clone().or_else(|| file::find(environment));
    let contents = match file.clone().map(|file| file::read(file, &known())) {
        None => Contents::default(),
        Some(Ok(contents)) => contents,
        Some(Err(wrong)) => {
            faults.extend(wrong);
            Contents::default()
        }
    };
    let Contents { leaves, entries } = contents;
    let mut settings = Settings::unread();
    let told = TABLE.iter().map(|setting| {
        let said = said(setting, sources, &leaves);
        merge(setting, said, &mut settings, &mut faults)
    });
    let told = told.collect();
    faults.extend(unknown_leaves(&leaves, &known().names()));
    faults.extend(unknown_variables(environment));
    settings.streams = section::<Stream>(&entries, &mut faults);
    settings.processors = section::<Processor>(&entries, &mut faults);
    settings.schedules = section::<Schedule>(&entries, &mut faults);
    if faults.is_empty() {
        faults.extend(together::faults(&settings));
    }
    if faults.is_empty() { Ok(Loaded { settings, told, file }) } else { Err(Faults(faults)) }
}

/// What is said about a setting, the least important first.
fn said(setting: &Setting, sources: &Sources, leaves: &[Leaf]) -> Vec<(Origin, Value)> {
    let path = setting.field.path;
    let default = setting.field.default.map(|text| (Origin::Default, Value::from(text)));
    let in_file = leaves.iter().filter(|leaf| leaf.path == path);
    let in_file = in_file.map(|leaf| (leaf.origin.clone(), leaf.value.clone()));
    let variable = setting.variable();
    let exported = sources.environment.variables.get(&variable);
    let exported = exported.map(|text| (Origin::Variable(variable), Value::from(text.as_str())));
    let typed = sources.flags.given.iter().find(|(given, _)| *given == path);
    let typed = typed.and_then(|(_, text)| Some((Origin::Flag(setting.flag?), Value::from(text.as_str()))));
    default.into_iter().chain(in_file).chain(exported).chain(typed).collect()
}

/// Reads all that is said, so that a fault is told even where something more important was said; the last counts.
fn merge(
    setting: &Setting,
    said: Vec<(Origin, Value)>,
    settings: &mut Settings,
    faults: &mut Vec<String>,
) -> Told {
    let field = &setting.field;
    let mut told = Told { path: field.path, value: String::new(), origin: Origin::Default };
    for (origin, value) in said {
        let shown = shown(setting, &value);
        if let Err(wrong) = (field.read)(settings, &value) {
            faults.push(origin.fault(field.path, &quoted(&value, &shown), &wrong));
        }
        (told.value, told.origin) = (shown, origin);
    }
    told
}

/// What may be shown of a value.
fn shown(setting: &Setting, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match setting.shown {
        Shown::Whole => text,
        Shown::WithoutUser => without_user(&text),
        Shown::Nothing => "***".to_owned(),
    }
}

fn quoted(value: &Value, shown: &str) -> String {
    if value.is_string() { format!("{shown:?}") } else { shown.to_owned() }
}

fn known() -> Known<'static> {
    static PATHS: std::sync::LazyLock<Vec<&'static str>> =
        std::sync::LazyLock::new(|| TABLE.iter().map(|setting| setting.field.path).collect());
    static LISTS: std::sync::LazyLock<Vec<(&'static str, Vec<&'static str>)>> =
        std::sync::LazyLock::new(|| vec![fields::<Stream>(), fields::<Processor>(), fields::<Schedule>()]);
    Known { paths: &PATHS, lists: &LISTS }
}

fn fields<S: Section>() -> (&'static str, Vec<&'static str>) {
    (S::NAME, S::FIELDS.iter().map(|field| field.path).collect())
}

impl Known<'_> {
    /// Paths, and what they begin with.
    fn names(&self) -> Vec<&'static str> {
        let sections = self.paths.iter().filter_map(|path| path.split_once('.').map(|(section, _)| section));
        let lists = self.lists.iter().map(|(section, _)| *section);
        self.paths.iter().copied().chain(sections).chain(lists).collect()
    }
}

fn unknown_leaves(leaves: &[Leaf], known: &[&'static str]) -> Vec<String> {
    let paths: Vec<&str> = known.to_vec();
    let unknown = leaves.iter().filter(|leaf| !TABLE.iter().any(|setting| setting.field.path == leaf.path));
    unknown.map(|leaf| unknown_name(&leaf.origin, &leaf.path, &paths)).collect()
}

fn unknown_name(origin: &Origin, path: &str, known: &[&str]) -> String {
    let near = nearest(path, known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    format!("{origin}: {path} is no setting{near}")
}

fn unknown_variables(environment: &Environment) -> Vec<String> {
    let variables: Vec<String> = TABLE.iter().map(Setting::variable).collect();
    let known: Vec<&str> =
        variables.iter().map(String::as_str).chain(OTHER_VARIABLES).chain(handlers::VARIABLES).collect();
    let is_foreign = |name: &str| FOREIGN_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    let unknown =
        environment.variables.keys().filter(|name| !known.contains(&name.as_str()) && !is_foreign(name));
    let told = unknown.map(|name| {
        let near = nearest(name, &known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        format!("the variable {name} is no setting{near}")
    });
    told.collect()
}

/// All entries of one list.
fn section<S: Section>(entries: &[Entry], faults: &mut Vec<String>) -> Vec<S> {
    let mut checked = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.section == S::NAME) {
        let mut raw = S::Raw::default();
        let before = faults.len();
        for leaf in &entry.leaves {
            let paths: Vec<&str> = S::FIELDS.iter().map(|field| field.path).collect();
            match S::FIELDS.iter().find(|field| field.path == leaf.path) {
                Some(Field { read, .. }) => {
                    if let Err(wrong) = read(&mut raw, &leaf.value) {
                        let path = format!("{}.{}", S::NAME, leaf.path);
                        faults.push(leaf.origin.fault(&path, &leaf.value.to_string(), &wrong));
                    }
                }
                None => faults.push(
                    unknown_name(&leaf.origin, &leaf.path, &paths)
                        .replace("is no setting", &format!("is nothing that a {} has", S::NAME)),
                ),
            }
        }
        if faults.len() > before {
            continue;
        }
        let name = S::name(&raw).to_owned();
        let mut wrong = Vec::new();
        if names.contains(&name) {
            wrong.push(format!("there are two of the name {name:?}"));
        }
        match S::check(raw) {
            Ok(entry) => checked.push(entry),
            Err(more) => wrong.extend(more),
        }
        names.push(name);
        faults.extend(wrong.into_iter().map(|wrong| format!("{}: {}: {wrong}", entry.origin, S::NAME)));
    }
    checked
}
