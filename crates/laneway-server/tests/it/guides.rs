//! The guides of the documentation do what they say.
//!
//! A block with a file name in its first line is that file. Blocks of `sh` are pasted into one shell, in the order of the
//! page, beside a server that was started in the same folder. A block `text output` is what the block before it prints, a
//! line for a line, with `…` for anything.

use std::path::{Path, PathBuf};

use laneway_testkit::servers::RedisServer;

use crate::program::Program;
use crate::seam;

/// What one fenced block of a page is.
#[derive(Debug, PartialEq, Eq)]
enum Block {
    File { name: String, text: String },
    Commands { text: String, output: Option<String> },
}

/// Ends the output of a block; no command prints it.
const END: &str = "=== end of block ===";

fn page(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", name].iter().collect();
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let text: String =
            lines.by_ref().take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect();
        match info.split_once(' ') {
            Some(("text", "output")) => match blocks.last_mut() {
                Some(Block::Commands { output: output @ None, .. }) => *output = Some(text),
                _ => panic!("an output must follow its commands: {text}"),
            },
            Some((_, name)) => blocks.push(Block::File { name: name.to_owned(), text }),
            None if info == "sh" => blocks.push(Block::Commands { text, output: None }),
            None => {}
        }
    }
    blocks
}

/// What is to be pasted, with what it prints where the page says so.
fn commands(blocks: &[Block]) -> Vec<(&str, Option<&str>)> {
    let commands = blocks.iter().filter_map(|block| match block {
        Block::Commands { text, output } => Some((text.as_str(), output.as_deref())),
        Block::File { .. } => None,
    });
    commands.collect()
}

/// Whether a line is what was expected, with `…` for anything.
fn is_like(line: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

/// Pastes commands into one shell; answers what each block printed. The shell ends at the first command that fails.
fn paste(folder: &Path, address: &str, commands: &[&str]) -> Vec<String> {
    let script: String = commands.iter().map(|text| format!("{text}\necho; echo '{END}'\n")).collect();
    let script = format!("set -e\n{}", script.replace("http://127.0.0.1:7070", address));
    let program = Path::new(env!("CARGO_BIN_EXE_laneway")).parent().expect("it is in a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        .env("PATH", path)
        .env("LANEWAY_SERVER", address)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}\n{errors}");
    let outputs: Vec<String> = told.split(END).map(|told| told.trim().to_owned()).collect();
    outputs[..commands.len()].to_vec()
}

/// Does everything that a page says, and compares.
async fn follow(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&page(name));
    for block in &blocks {
        if let Block::File { name, text } = block {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
    }
    let program = Program::serve_here(folder.path()).await;
    let commands = commands(&blocks);
    assert!(!commands.is_empty(), "{name} has no commands");
    let texts: Vec<&str> = commands.iter().map(|(text, _)| *text).collect();
    let printed = paste(folder.path(), program.address(), &texts);
    for ((text, expected), printed) in commands.iter().zip(&printed) {
        let Some(expected) = expected else { continue };
        let lines: Vec<&str> = printed.lines().filter(|line| !line.is_empty()).collect();
        let expected: Vec<&str> = expected.lines().collect();
        let same = lines.len() == expected.len()
            && lines.iter().zip(&expected).all(|(line, expected)| is_like(line, expected));
        assert!(same, "{name}\n{text}\nprinted\n{printed}\nand not\n{}", expected.join("\n"));
    }
    program.stop().await;
}

/// The commands of the README that have this in them.
fn of_readme(part: &str) -> String {
    let blocks = blocks(&page("../README.md"));
    let found = commands(&blocks).into_iter().map(|(text, _)| text).find(|text| text.contains(part));
    found.unwrap_or_else(|| panic!("the README has no commands with {part}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_curl_as_in_the_readme_gets_and_settles_its_lane() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let commands = of_readme("/v1/processors/mailer/claim");
    let (until_claimed, settle) = commands.split_at(commands.rfind("curl").expect("the last settles"));
    let lines: Vec<&str> = until_claimed.lines().collect();
    let printed = paste(folder.path(), program.address(), &lines);
    let claimed: serde_json::Value = serde_json::from_str(printed.last().unwrap()).unwrap();
    let claim = claimed["claims"][0]["claim"].as_str().unwrap_or_else(|| panic!("{claimed}"));
    let settled = paste(folder.path(), program.address(), &[&settle.replace("CLAIM", claim)]);
    assert!(settled[0].contains(r#""accepted":true"#), "{settled:?}");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_readme_work_beside_its_demo() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let bad = serde_json::from_str(r#"{"key":"bad","data":0}"#).unwrap();
    program.client().append("orders", &[bad]).await.unwrap();
    program.line("bad #1  parked").await;
    let commands = of_readme("laneway why orders bad");
    let lines: Vec<&str> = commands.lines().collect();
    let printed = paste(folder.path(), program.address(), &lines);
    for ((line, printed), says) in lines.iter().zip(&printed).zip(["mails", "", "hello", "parked", "orders"])
    {
        assert!(printed.contains(says), "{line}\n{printed}");
    }
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_minutes_give_what_they_say() {
    follow("start/five-minutes.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_of_newest_wins_works() {
    follow("recipes/newest-wins.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_of_order_per_tenant_works() {
    follow("recipes/per-tenant-order.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_of_fencing_works() {
    follow("recipes/fencing.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_of_cron_works() {
    follow("recipes/cron.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_of_the_outbox_works() {
    follow("recipes/outbox.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_monitoring_works() {
    follow("operating/monitoring.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_backups_works_on_a_store_with_events() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&page("operating/backup.md"));
    let Some(Block::File { name, text }) = blocks.first() else {
        panic!("the page begins with its settings")
    };
    std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("backups")).unwrap();
    let program = Program::serve_here(folder.path()).await;
    let send = "laneway stream create orders --partitions 2\nlaneway stream send orders --key ann 1 2";
    let commands: Vec<&str> = commands(&blocks).into_iter().map(|(text, _)| text).collect();
    let (online, offline) = commands.split_first().expect("the first asks the server");
    paste(folder.path(), program.address(), &[send, online]);
    program.stop().await;
    paste(folder.path(), "http://127.0.0.1:9", offline);
    std::fs::write(folder.path().join("laneway.toml"), "[store]\nurl = \"file:./moved\"\n").unwrap();
    let moved = Program::serve_here(folder.path()).await;
    let told = paste(folder.path(), moved.address(), &["laneway lane get orders ann -o json"]);
    assert!(told[0].contains("\"last_seq\": 2"), "{told:?}");
    moved.stop().await;
}

/// The lines that a page tells to type, each as its words.
fn typed(name: &str) -> Vec<Vec<String>> {
    let blocks = blocks(&page(name));
    let lines = commands(&blocks).into_iter().flat_map(|(text, _)| text.lines());
    let before_a_comment = lines.map(|line| line.split(" #").next().unwrap_or_default());
    before_a_comment.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// The words behind `laneway`, with other ones in the place of some.
fn args(line: &[String], instead: &[(&str, &str)]) -> Vec<String> {
    assert_eq!(line[0], "laneway", "{line:?}");
    let other =
        |word: &String| instead.iter().find(|(told, _)| told == word).map(|(_, own)| (*own).to_owned());
    line[1..].iter().map(|word| other(word).unwrap_or_else(|| word.clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_several_nodes_works() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let lines = typed("operating/cluster.md");
    let [one, two, status] = &lines[..] else { panic!("{lines:?}") };
    let (url, free) = (redis.url(), "127.0.0.1:0");
    let instead =
        [("redis://db.example:6379", url.as_str()), ("127.0.0.1:7070", free), ("127.0.0.1:7071", free)];
    let mut nodes = Vec::new();
    for line in [one, two] {
        let args = args(line, &instead);
        assert_eq!(args[0], "serve");
        let args: Vec<&str> = args[1..].iter().map(String::as_str).collect();
        nodes.push(Program::serve_plainly(folder.path(), &args, &[]).await);
    }
    let make =
        "laneway stream create orders --partitions 16\nlaneway processor create charge --stream orders";
    paste(folder.path(), nodes[0].address(), &[make]);
    let page = page("operating/cluster.md");
    let shown = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let mut told = String::new();
    let status = status.join(" ");
    seam::until("the status that the page shows", || {
        let before =
            std::mem::replace(&mut told, paste(folder.path(), nodes[1].address(), &[&status]).remove(0));
        if told != before {
            println!("{told}");
        }
        let is_so = told.trim() == shown.trim();
        async move { is_so.then_some(()) }
    })
    .await;
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_redis_moves_a_store_there() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let file = Program::serve_here(folder.path()).await;
    let send = "laneway stream create orders --partitions 2\nlaneway stream send orders --key ann 1 2";
    paste(folder.path(), file.address(), &[send]);
    file.stop().await;
    let lines = typed("operating/redis.md");
    let [copy] = &lines[..] else { panic!("{lines:?}") };
    let url = redis.url();
    let args = args(copy, &[("redis://127.0.0.1:6379", url.as_str())]);
    paste(folder.path(), "http://127.0.0.1:9", &[&format!("laneway {}", args.join(" "))]);
    let moved = Program::serve_plainly(folder.path(), &["--store", &url], &[]).await;
    let told = paste(folder.path(), moved.address(), &["laneway lane get orders ann -o json"]);
    assert!(told[0].contains("\"last_seq\": 2"), "{told:?}");
    moved.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_of_the_page_of_handlers_works() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let make = "laneway stream create orders --partitions 2\nlaneway processor create charge --stream orders";
    paste(folder.path(), program.address(), &[make]);
    std::fs::write(folder.path().join("charge.py"), "import sys\nprint('charged', sys.stdin.read())")
        .unwrap();
    let lines = typed("reference/handlers.md");
    let [work] = &lines[..] else { panic!("{lines:?}") };
    let args = args(work, &[("https://laneway.example:7070", program.address())]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let worker = Program::start(folder.path(), &args);
    let submit = "laneway job submit orders --key ann 7 --wait=30s";
    assert_eq!(paste(folder.path(), program.address(), &[submit]), [r#""charged 7""#]);
    worker.stop().await;
    program.stop().await;
}

/// Where pages are named by the tests that do what they say.
const TESTS: [&str; 3] =
    [include_str!("guides.rs"), include_str!("pages.rs"), include_str!("security_page.rs")];

/// Every page of the documentation, by its path.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => pages(&path, found),
            Some(ending) if ending == "md" => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn no_page_has_commands_that_nobody_runs() {
    let docs: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs"].iter().collect();
    let (mut all, mut with_commands) = (Vec::new(), 0);
    pages(&docs, &mut all);
    for path in all {
        let name = path.strip_prefix(&docs).unwrap().to_str().unwrap();
        if commands(&blocks(&page(name))).is_empty() {
            continue;
        }
        with_commands += 1;
        let is_run = TESTS.iter().any(|source| source.contains(&format!("{name}\"")));
        assert!(is_run, "no test does what docs/{name} says");
    }
    assert!(with_commands > 10, "{with_commands}");
}

#[test]
fn a_line_is_compared_with_anything_in_its_place() {
    for (line, expected) in [("abc", "abc"), ("abc", "…"), ("abc", "a…c"), ("a1b2c", "a…b…c"), ("abc", "…bc")]
    {
        assert!(is_like(line, expected), "{line} {expected}");
    }
    for (line, expected) in [("abc", "ab"), ("abc", "b…"), ("abc", "a…b"), ("acb", "a…b…c")] {
        assert!(!is_like(line, expected), "{line} {expected}");
    }
}
