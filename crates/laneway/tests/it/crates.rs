//! What adding the library costs: how many crates are built with its default features.

use std::collections::BTreeSet;
use std::process::Command;

const CRATES_MAX: usize = 80;

#[test]
fn default_features_need_no_more_crates_than_promised() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--manifest-path",
            manifest,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--offline",
            "--locked",
        ])
        .output()
        .expect("cargo runs, since it runs this test");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).expect("names of crates are text");
    let crates: BTreeSet<Vec<&str>> = tree
        .lines()
        .map(|line| line.split_whitespace().take(2).collect())
        .filter(|words: &Vec<_>| words.len() == 2)
        .collect();
    assert!(crates.iter().any(|words| words[0] == "laneway-embedded"), "the default features are on");
    assert!(crates.len() <= CRATES_MAX, "{} crates, at most {CRATES_MAX}: {crates:?}", crates.len());
}
