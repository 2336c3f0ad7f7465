//! The files of the repository, read once for all rules.
//!
//! Build output and version control are left out. A file that is not text is in the tree by name only, with
//! an empty text. Judges nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::Source;

/// Longer files are data, not something people read.
const TEXT_LEN_MAX: u64 = 1 << 20;

/// One file: its path from the repository's root with `/` between parts, and its text.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All files, in the order of their paths.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    sources: Vec<Source>,
}

impl Tree {
    /// The repository this test was built from.
    pub(crate) fn of_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = Vec::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(root.join(&folder)).expect("a folder of the repository is readable");
            for entry in entries {
                let entry = entry.expect("an entry of the repository is readable");
                let name = entry.file_name().to_string_lossy().into_owned();
                let kind = entry.file_type().expect("the kind of an entry is known");
                if kind.is_dir() && is_ours(&name) {
                    folders.push(folder.join(name));
                } else if kind.is_file() {
                    let path = folder.join(&name).to_string_lossy().into_owned();
                    files.push(File { path, text: text_of(&entry.path()) });
                }
            }
        }
        Self::new(files)
    }

    /// A made-up tree, for the tests of the rules.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        Self::new(files.iter().map(file).collect())
    }

    fn new(mut files: Vec<File>) -> Self {
        files.sort_by(|left, right| left.path.cmp(&right.path));
        let is_rust = |file: &&File| file.path.ends_with(".rs");
        let sources = files.iter().filter(is_rust).map(|file| Source::new(&file.path, &file.text)).collect();
        Self { files, sources }
    }

    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter()
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// Whether a file or folder of this path exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    }

    /// Whether some file or folder has a path that ends in these parts.
    pub(crate) fn has_ending(&self, ending: &str) -> bool {
        let ending = format!("/{}", ending.trim_end_matches('/'));
        let folder = format!("{ending}/");
        self.files.iter().any(|file| {
            let path = format!("/{}", file.path);
            path.ends_with(&ending) || path.contains(&folder)
        })
    }
}

fn is_ours(folder: &str) -> bool {
    folder == ".ci" || (!folder.starts_with('.') && folder != "target")
}

fn text_of(path: &Path) -> String {
    let len = fs::metadata(path).expect("the length of a file is known").len();
    if len > TEXT_LEN_MAX {
        return String::new();
    }
    String::from_utf8(fs::read(path).expect("a file of the repository is readable")).unwrap_or_default()
}

#[test]
fn paths_are_found_whole_and_by_their_ending() {
    let tree = Tree::of(&[("crates/a/src/log/frame.rs", "//! A.")]);
    assert!(tree.has("crates/a/src/log/frame.rs") && tree.has("crates/a/") && tree.has("crates/a/src"));
    assert!(!tree.has("crates/a/src/lo") && !tree.has("log/frame.rs"));
    assert!(tree.has_ending("log/frame.rs") && tree.has_ending("frame.rs") && tree.has_ending("src/log/"));
    assert!(!tree.has_ending("rame.rs") && !tree.has_ending("og/"));
}
