//! A flipped bit in the files of a stopped server: start or read is refused by the name of its place, or it harms nothing.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::{Program, run};
use crate::support::{Http, Server};

/// Flips in each file, spread over what is written of it.
const FLIPS: usize = 5;

/// A file of a store: its name, what is written of it, and its length.
struct File {
    name: PathBuf,
    written: Vec<u8>,
    len: u64,
}

/// The files of a store that mean something.
fn files(store: &Path) -> Vec<File> {
    let mut files = Vec::new();
    for folder in ["", "log", "contents"] {
        for entry in std::fs::read_dir(store.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() || path.extension().is_some_and(|kind| kind == "spare") {
                continue;
            }
            let mut written = std::fs::read(&path).unwrap();
            let len = written.len() as u64;
            written.truncate(written.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
            files.push(File { name: path.strip_prefix(store).unwrap().to_owned(), written, len });
        }
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

/// A store of these files, with one bit flipped.
fn damaged(folder: &Path, files: &[File], name: &Path, at: usize, bit: u8) {
    for file in files {
        let path = folder.join("data").join(&file.name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &file.written).unwrap();
        let target = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        target.set_len(file.len).unwrap();
        if file.name == name {
            target.write_all_at(&[file.written[at] ^ (1 << bit)], at as u64).unwrap();
        }
    }
}

/// Everything that a client can read, call by call: pages of events with their status, lanes with their state, ends of jobs.
async fn content(http: &Http, jobs: &[String]) -> Vec<(String, u16, Value)> {
    let pages = (0..4).map(|partition| format!("/v1/streams/orders/events?partition={partition}&limit=1000"));
    let effects =
        (0..2).map(|partition| format!("/v1/streams/effects/events?partition={partition}&limit=1000"));
    let lanes = (0..5).map(|lane| format!("/v1/streams/orders/lane?key=lane-{lane}"));
    let jobs = jobs.iter().map(|job| format!("/v1/jobs/{job}"));
    let mut content = Vec::new();
    for path in pages.chain(effects).chain(lanes).chain(jobs) {
        let said = http.try_call(http::Method::GET, &path, &[], None).await.unwrap();
        content.push((path, said.status, said.body));
    }
    content
}

/// What a damage led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Led {
    NotStarted,
    NotRead,
    Unharmed,
}

/// Whether these words name the file, with the place in it or what to do about it.
fn names(words: &str, file: &Path) -> bool {
    let says = ["at offset", "format version", "it is made again from its segment"];
    words.contains(file.to_str().unwrap()) && says.iter().any(|says| words.contains(says))
}

/// Starts a server on the damaged store and reads everything; whatever is not as it was must be refused by its place.
async fn led(folder: &Path, file: &Path, jobs: &[String], expected: &[(String, u16, Value)]) -> Led {
    let serve = ["serve", "--store", "file:./data", "--listen", "127.0.0.1:0", "--read-only"];
    let mut program = Program::start(folder, &serve);
    let Some(ready) = program.line_or_end("ready ").await else {
        assert!(!program.ended().await.success());
        let errors = program.errors();
        assert!(names(&errors, file), "{file:?} is not named: {errors}");
        return Led::NotStarted;
    };
    let found = content(&Http::new(ready.strip_prefix("ready ").unwrap()), jobs).await;
    let mut led = Led::Unharmed;
    for (found, expected) in found.iter().zip(expected) {
        if found != expected {
            // The place is for whoever runs the server, and not for whoever calls it.
            let errors = program.errors();
            assert!(found.1 == 500 && names(&errors, file), "{found:?} instead of {expected:?}: {errors}");
            led = Led::NotRead;
        }
    }
    led
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_is_refused_by_its_place_or_harms_nothing() {
    let mut server = Server::start("", "").await;
    let mut jobs = Vec::new();
    for round in 0..2 {
        let http = server.http();
        for number in 0..60 {
            let key = format!("lane-{}", number % 5);
            http.done("/v1/streams/orders/events", json!({"key":key,"data":{"round":round,"n":number}}))
                .await;
        }
        for lane in 0..5 {
            let job = http.submit(json!({"key":format!("lane-{lane}"),"data":{}})).await;
            jobs.push(job["id"].as_str().unwrap().to_owned());
        }
        server.history(Vec::new()).await;
        if round == 0 {
            server.drain().await;
            server.start_again().await;
        }
    }
    let expected = content(&server.http(), &jobs).await;
    assert!(expected.iter().all(|(_, status, _)| *status == 200));
    server.drain().await;
    let files = files(&server.folder().join("data"));
    let mut random = fastrand::Rng::with_seed(15);
    let mut counts = std::collections::BTreeMap::new();
    for file in files.iter().filter(|file| !file.written.is_empty()) {
        let stride = file.written.len().div_ceil(FLIPS);
        for flip in 0..FLIPS {
            let at = (flip * stride + random.usize(0..stride)).min(file.written.len() - 1);
            let folder = tempfile::tempdir().unwrap();
            damaged(folder.path(), &files, &file.name, at, random.u8(0..8));
            let verified = run(folder.path(), &["store", "verify", "file:./data"]);
            let words = [verified.stdout, verified.stderr].concat();
            let words = String::from_utf8_lossy(&words);
            let led = led(folder.path(), &file.name, &jobs, &expected).await;
            // Tables that are made again from the log are damage for who looks, and none for who serves.
            let told = !verified.status.success();
            assert!(told || led == Led::Unharmed, "{:?} at {at}: {led:?}, and not told: {words}", file.name);
            assert!(!told || names(&words, &file.name), "{:?} at {at}: {words}", file.name);
            *counts.entry(led).or_insert(0) += 1;
        }
    }
    println!("{} files, {FLIPS} flips each: {counts:?}", files.len());
    assert!(counts.contains_key(&Led::NotStarted) && counts.contains_key(&Led::NotRead), "{counts:?}");
}
