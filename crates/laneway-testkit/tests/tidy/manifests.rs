//! Rule: what all crates share stands once, in the root manifest, and every library comes from crates.io.
//!
//! Also reads manifests for the other rules. Crates outside the workspace (fuzz targets) are not looked at.

use toml::{Table, Value};

use crate::report::Finding;
use crate::tree::Tree;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

/// The manifest of one crate of the workspace.
pub(crate) struct Member<'a> {
    pub(crate) path: String,
    pub(crate) text: &'a str,
    pub(crate) package: String,
    manifest: Table,
}

/// One line of a dependency table.
pub(crate) struct Dependency {
    /// The name it is listed under.
    pub(crate) key: String,
    /// The name of the library, which may differ.
    pub(crate) package: String,
    pub(crate) in_tests: bool,
    is_shared: bool,
}

/// All crates of the workspace. A manifest that does not parse is left to cargo, which has read it before.
pub(crate) fn members(tree: &Tree) -> Vec<Member<'_>> {
    let outside = excluded(tree);
    let is_member = |path: &str| {
        let folder = path.strip_suffix("/Cargo.toml");
        folder.is_some_and(|folder| !outside.iter().any(|other| folder == other))
    };
    let members = tree.files.iter().filter(|file| is_member(&file.path)).filter_map(|file| {
        let manifest: Table = file.text.parse().ok()?;
        let package = manifest.get("package")?.get("name")?.as_str()?.to_owned();
        Some(Member { path: file.path.clone(), text: &file.text, package, manifest })
    });
    members.collect()
}

fn root(tree: &Tree) -> Table {
    tree.text("Cargo.toml").and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn excluded(tree: &Tree) -> Vec<String> {
    let root = root(tree);
    let list = root.get("workspace").and_then(|workspace| workspace.get("exclude")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|folder| folder.as_str().map(str::to_owned)).collect()
}

/// Every dependency of a crate: of its code, its build script and its tests, for every system.
pub(crate) fn dependencies(tree: &Tree, member: &Member<'_>) -> Vec<Dependency> {
    let root = root(tree);
    let shared = root.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let mut tables = vec![&member.manifest];
    let systems = member.manifest.get("target").and_then(Value::as_table);
    tables.extend(systems.into_iter().flatten().filter_map(|(_, system)| system.as_table()));
    let mut found = Vec::new();
    for table in tables {
        for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
            for (key, value) in table.get(section).and_then(Value::as_table).into_iter().flatten() {
                let shared_value = shared.and_then(|shared| shared.get(key));
                let renamed =
                    [Some(value), shared_value].into_iter().flatten().find_map(|value| value.get("package"));
                found.push(Dependency {
                    key: key.clone(),
                    package: renamed.and_then(Value::as_str).unwrap_or(key).to_owned(),
                    in_tests: section == "dev-dependencies",
                    is_shared: is_true(value.get("workspace")),
                });
            }
        }
    }
    found
}

/// The first line, from 1, that begins with the word; 1 when none does.
pub(crate) fn line_of(text: &str, word: &str) -> usize {
    let begins = |line: &str| {
        line.trim_start()
            .strip_prefix(word)
            .is_some_and(|rest| rest.trim_start().starts_with(['.', '=', ']']))
    };
    text.lines().position(begins).map_or(1, |index| index + 1)
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool) == Some(true)
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members(tree) {
        let package = member.manifest.get("package");
        for field in INHERITED {
            let value = package.and_then(|package| package.get(field));
            if !is_true(value.and_then(|value| value.get("workspace"))) {
                let line = line_of(member.text, field);
                let message = format!("{field} is not taken from the workspace");
                findings.push(Finding::fault(
                    &member.path,
                    line,
                    message,
                    format!("write {field}.workspace = true"),
                ));
            }
        }
        let lints = member.manifest.get("lints").and_then(Value::as_table);
        if !lints.is_some_and(|lints| is_true(lints.get("workspace")) && lints.len() == 1) {
            let line = line_of(member.text, "[lints");
            let remedy = "write [lints] workspace = true, and nothing more";
            findings.push(Finding::fault(&member.path, line, "lints are not those of the workspace", remedy));
        }
        for dependency in dependencies(tree, &member).iter().filter(|dependency| !dependency.is_shared) {
            let line = line_of(member.text, &dependency.key);
            let message = format!("{} has a version of its own", dependency.key);
            let remedy = "list it in [workspace.dependencies] and write workspace = true here";
            findings.push(Finding::fault(&member.path, line, message, remedy));
        }
    }
    findings.extend(check_lock(tree));
    findings
}

fn check_lock(tree: &Tree) -> Vec<Finding> {
    let path = "Cargo.lock";
    let Some(text) = tree.text(path) else {
        return vec![Finding::fault(path, 1, "the lock file is missing", "run cargo build and commit it")];
    };
    let lock: Table = match text.parse() {
        Ok(lock) => lock,
        Err(error) => {
            return vec![Finding::fault(path, 1, error.to_string(), "run cargo build and commit it")];
        }
    };
    let ours: Vec<String> = members(tree).into_iter().map(|member| member.package).collect();
    let mut findings = Vec::new();
    for package in lock.get("package").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| package.get(name).and_then(Value::as_str);
        let name = field("name").unwrap_or_default();
        let fault = match field("source") {
            Some(REGISTRY) if field("checksum").is_some() => continue,
            Some(REGISTRY) => format!("{name} has no checksum"),
            Some(source) => format!("{name} comes from {source}"),
            None if ours.iter().any(|package| package == name) => continue,
            None => format!("{name} comes from a folder outside the workspace"),
        };
        let entry = format!("name = \"{name}\"");
        let line = text.lines().position(|line| line == entry).map_or(1, |index| index + 1);
        findings.push(Finding::fault(path, line, fault, "use a released version from crates.io"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{assert_only, lines};

    const ROOT: (&str, &str) = ("Cargo.toml", "[workspace]\nexclude = [\"fuzz\"]\n");
    const LOCK: (&str, &str) =
        ("Cargo.lock", "version = 4\n[[package]]\nname = \"laneway-a\"\nversion = \"1\"\n");
    const GOOD: &str = "[package]\nname = \"laneway-a\"\nversion.workspace = true\nedition.workspace = true\n\
                        rust-version.workspace = true\nlicense.workspace = true\npublish.workspace = true\n\
                        [lints]\nworkspace = true\n[dependencies]\nbytes.workspace = true\n";

    fn check_manifest(text: &str) -> Vec<Finding> {
        check(&Tree::of(&[ROOT, LOCK, ("crates/a/Cargo.toml", text)]))
    }

    #[test]
    fn a_crate_that_goes_its_own_way_fails() {
        assert!(check_manifest(GOOD).is_empty());
        let place = "crates/a/Cargo.toml";
        let edition = GOOD.replace("edition.workspace = true", "edition = \"2021\"");
        assert_only(&check_manifest(&edition), &format!("{place}:4"), "edition");
        let licence = GOOD.replace("license.workspace = true\n", "");
        assert_only(&check_manifest(&licence), &format!("{place}:1"), "license");
        let lints = GOOD.replace("[lints]\nworkspace = true\n", "");
        assert_only(&check_manifest(&lints), &format!("{place}:1"), "lints");
        let version = GOOD.replace("bytes.workspace = true", "bytes = \"1\"");
        assert_only(&check_manifest(&version), &format!("{place}:11"), "bytes has a version of its own");
    }

    #[test]
    fn crates_outside_the_workspace_are_left_alone() {
        let fuzz = ("fuzz/Cargo.toml", "[package]\nname = \"fuzz\"\n");
        assert!(check(&Tree::of(&[ROOT, LOCK, fuzz, ("crates/a/Cargo.toml", GOOD)])).is_empty());
    }

    #[test]
    fn odd_sources_in_the_lock_file_fail() {
        let check_entry = |entry: &str| {
            let text = format!("{}[[package]]\nname = \"b\"\nversion = \"1\"\n{entry}\n", LOCK.1);
            check(&Tree::of(&[ROOT, ("crates/a/Cargo.toml", GOOD), ("Cargo.lock", &text)]))
        };
        assert!(check_entry(&format!("source = \"{REGISTRY}\"\nchecksum = \"1\"")).is_empty());
        assert_only(&check_entry(&format!("source = \"{REGISTRY}\"")), "Cargo.lock:6", "no checksum");
        assert_only(&check_entry("source = \"git+https://example.org\""), "Cargo.lock:6", "git+https");
        assert_only(&check_entry(""), "Cargo.lock:6", "outside the workspace");
        let missing = check(&Tree::of(&[ROOT, ("crates/a/Cargo.toml", GOOD)]));
        assert_eq!(lines(&missing), ["Cargo.lock:1: the lock file is missing"]);
    }
}
