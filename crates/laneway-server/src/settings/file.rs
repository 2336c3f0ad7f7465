//! Finds `laneway.toml` and cuts it into values, each with its path and its line.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::load::Environment;
use super::origin::Origin;

const NAME: &str = "laneway.toml";

/// A value of the file.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) path: String,
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// One entry of a list of tables, such as `[[stream]]`.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) section: &'static str,
    pub(super) origin: Origin,
    pub(super) leaves: Vec<Leaf>,
}

/// What the file says.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) leaves: Vec<Leaf>,
    pub(super) entries: Vec<Entry>,
}

/// Which names there can be.
pub(super) struct Known<'a> {
    /// Paths of settings.
    pub(super) paths: &'a [&'static str],
    /// Lists of tables, each with the paths of its fields.
    pub(super) lists: &'a [(&'static str, Vec<&'static str>)],
}

/// The first file that is there, if none was named.
pub(super) fn find(environment: &Environment) -> Option<PathBuf> {
    let home = environment.home.as_ref().map(|home| home.join(".config"));
    let folders = [environment.config_home.clone().or(home), Some(PathBuf::from("/etc"))];
    let in_folders = folders.into_iter().flatten().map(|folder| folder.join("laneway").join(NAME));
    std::iter::once(PathBuf::from(NAME)).chain(in_folders).find(|path| path.is_file())
}

/// Reads a file; all faults at once.
pub(super) fn read(path: PathBuf, known: &Known<'_>) -> Result<Contents, Vec<String>> {
    let text = std::fs::read_to_string(&path)
        .map_err(|error| vec![format!("{}: cannot be read: {error}", path.display())])?;
    parse(&text, Arc::new(path), known)
}

/// What a text says.
pub(super) fn parse(text: &str, path: Arc<PathBuf>, known: &Known<'_>) -> Result<Contents, Vec<String>> {
    let cutter = Cutter { text, path };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let told = errors.iter().map(|error| {
            let at = cutter.at(error.span().map_or(0, |span| span.start));
            format!("{at}: {}", error.message())
        });
        return Err(told.collect());
    }
    let (mut contents, mut faults) = (Contents::default(), Vec::new());
    for (key, value) in table.get_ref() {
        let list = known.lists.iter().find(|(section, _)| key.get_ref() == section);
        match list {
            Some((section, fields)) => match cutter.entries(section, fields, value) {
                Some(entries) => contents.entries.extend(entries),
                None => faults.push(format!(
                    "{}: {section} is a list of tables: write [[{section}]]",
                    cutter.at(key.span().start)
                )),
            },
            None => cutter.leaves("", key, value, known.paths, &mut contents.leaves),
        }
    }
    // A table knows its names by their spelling; people read from top to bottom.
    contents.leaves.sort_by_key(|leaf| cutter.line_of(&leaf.origin));
    contents.entries.sort_by_key(|entry| cutter.line_of(&entry.origin));
    if faults.is_empty() { Ok(contents) } else { Err(faults) }
}

type Key<'i> = Spanned<std::borrow::Cow<'i, str>>;

struct Cutter<'a> {
    text: &'a str,
    path: Arc<PathBuf>,
}

impl Cutter<'_> {
    fn at(&self, offset: usize) -> Origin {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Origin::File { path: Arc::clone(&self.path), line }
    }

    fn line_of(&self, origin: &Origin) -> usize {
        if let Origin::File { line, .. } = origin { *line } else { 0 }
    }

    fn entries(
        &self,
        section: &'static str,
        fields: &[&'static str],
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Vec<Entry>> {
        let entry = |entry: &Spanned<DeValue<'_>>| {
            let table = entry.get_ref().as_table()?;
            let mut leaves = Vec::new();
            for (key, value) in table {
                self.leaves("", key, value, fields, &mut leaves);
            }
            leaves.sort_by_key(|leaf| self.line_of(&leaf.origin));
            Some(Entry { section, origin: self.at(entry.span().start), leaves })
        };
        value.get_ref().as_array()?.iter().map(entry).collect()
    }

    /// Goes into a table as far as there are known paths inside.
    fn leaves(
        &self,
        above: &str,
        key: &Key<'_>,
        value: &Spanned<DeValue<'_>>,
        known: &[&str],
        into: &mut Vec<Leaf>,
    ) {
        let path =
            if above.is_empty() { key.get_ref().to_string() } else { format!("{above}.{}", key.get_ref()) };
        let inside = format!("{path}.");
        match value.get_ref().as_table() {
            Some(table) if known.iter().any(|known| known.starts_with(&inside)) => {
                for (key, value) in table {
                    self.leaves(&path, key, value, known, into);
                }
            }
            _ => into.push(Leaf { path, value: json(value.get_ref()), origin: self.at(key.span().start) }),
        }
    }
}

fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            let signed = i64::from_str_radix(number.as_str(), number.radix()).map(Value::from);
            signed.unwrap_or_else(|_| Value::from(number.as_str()))
        }
        DeValue::Float(number) => {
            number.as_str().parse::<f64>().map_or_else(|_| Value::from(number.as_str()), Value::from)
        }
        DeValue::Boolean(yes) => Value::from(*yes),
        DeValue::Datetime(date) => Value::from(date.to_string()),
        DeValue::Array(values) => values.iter().map(|value| json(value.get_ref())).collect(),
        DeValue::Table(table) => {
            let entries = table.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())));
            Value::Object(entries.collect())
        }
    }
}
