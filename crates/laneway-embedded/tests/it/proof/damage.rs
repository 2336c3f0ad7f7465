//! Bit flips and truncations in every file after a clean close: loud or harmless, never another history.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::executor::block_on;
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::{FileOptions, SyncMode};

use redb::ReadableTable as _;

use super::lives::{DIR, Lives, Way, open, small};
use super::oracle::Last;
use super::picture::Land;
use super::print;

const ROUNDS: usize = 600;
const ACTORS: usize = 2;

/// A store with a long and rich history, closed in order, and what must be read of it.
struct Closed {
    lives: Lives,
    expected: Vec<Land>,
}

fn closed() -> Closed {
    let honest = |disk: SimulatedDisk| Arc::new(disk) as Arc<_>;
    let mut lives =
        Lives::begin(Way { seed: 9, actors: ACTORS, together: false, sync: SyncMode::Always, wrap: honest });
    let store = lives.open().expect("a healthy disk opens");
    block_on(lives.work(&store, 260)).expect("a healthy store does as the oracle");
    store.checkpoint().expect("a healthy disk takes a checkpoint");
    // Something that is only in the log.
    block_on(lives.work(&store, 8)).expect("a healthy store does as the oracle");
    block_on(lives.oracle.judge_all(&store, &[Last::Nothing; ACTORS]))
        .expect("nothing is wrong before the damage");
    store.close().expect("closes in order");
    let expected = (0..ACTORS).map(|actor| block_on(lives.oracle.land(actor))).collect();
    Closed { lives, expected }
}

/// What became of a damaged store.
#[derive(Debug, PartialEq)]
enum Verdict {
    Loud(String),
    Harmless,
    Silent(String),
}

impl Closed {
    fn judge(&self, disk: SimulatedDisk) -> Verdict {
        let store = match open(Arc::new(disk), small(), &self.lives.clock) {
            Ok(store) => store,
            Err(error) => return Verdict::Loud(error.to_string()),
        };
        for (territory, expected) in self.lives.oracle.world.territories.iter().zip(&self.expected) {
            match block_on(Land::take(&store, territory)) {
                Err(error) => return Verdict::Loud(error.to_string()),
                Ok(found) => {
                    if let Some(wrong) = found.difference(expected) {
                        return Verdict::Silent(wrong);
                    }
                }
            }
        }
        Verdict::Harmless
    }
}

/// Flips a bit or cuts the file off.
fn harm(bytes: &mut Vec<u8>, rng: &mut fastrand::Rng) -> String {
    // Half of the damage goes to where the headers are.
    let reach = if rng.bool() { bytes.len() } else { bytes.len().min(64 << 10) };
    let at = rng.usize(0..reach);
    if rng.u8(0..5) == 0 {
        bytes.truncate(at);
        return format!("cut off at {at}");
    }
    bytes[at] ^= 1 << rng.u8(0..8);
    format!("a bit flipped at {at}")
}

/// What an error must name so that somebody finds the file.
fn names(message: &str, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).expect("files of a store have plain names");
    message.contains(name)
}

#[test]
fn bit_flips_and_truncations_are_loud_or_harmless() {
    let closed = closed();
    let files: Vec<PathBuf> = closed.lives.disk.contents().into_keys().collect();
    let of_kind = |ending: &str| files.iter().filter(|path| path.to_string_lossy().ends_with(ending)).count();
    assert!(of_kind(".seg") >= 2 && of_kind(".idx") >= 1, "every kind of file must be there: {files:?}");
    assert!(
        of_kind("index.redb") == 1 && of_kind("CLOSED") == 1,
        "every kind of file must be there: {files:?}"
    );
    let mut rng = fastrand::Rng::with_seed(31);
    let (mut loud, mut harmless, mut wrong) = (0, 0, Vec::new());
    for round in 0..ROUNDS {
        let disk = closed.lives.disk.fork();
        // A third of the rounds go to the index, which is one file among many.
        let index = PathBuf::from(DIR).join("index.redb");
        let path = if round % 3 == 0 { index } else { files[rng.usize(0..files.len())].clone() };
        let mut what = String::new();
        disk.damage(&path, |bytes| what = harm(bytes, &mut rng)).expect("the file is there");
        match closed.judge(disk) {
            Verdict::Harmless => harmless += 1,
            Verdict::Loud(message) if names(&message, &path) => loud += 1,
            verdict => wrong.push(format!("round {round}, {} {what}: {verdict:?}", path.display())),
        }
    }
    print(&format!(
        "{ROUNDS} bit flips and truncations in {} files: {loud} loud, {harmless} harmless, {} silent or unnamed",
        files.len(),
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(loud > 100 && harmless > 50, "{loud} loud, {harmless} harmless");
}

#[test]
fn missing_files_are_loud_or_made_again() {
    let closed = closed();
    for path in closed.lives.disk.contents().into_keys() {
        let disk = closed.lives.disk.fork();
        laneway_embedded::file::disk::Disk::remove(&disk, &path).expect("the file is there");
        let verdict = closed.judge(disk);
        assert!(!matches!(verdict, Verdict::Silent(_)), "{}: {verdict:?}", path.display());
        let derived = path.to_string_lossy().ends_with(".idx");
        assert!(
            !derived || verdict == Verdict::Harmless,
            "{} can be made again: {verdict:?}",
            path.display()
        );
    }
}

/// The version of the format, at the same place in every file of our own.
fn newer(disk: &SimulatedDisk, path: &Path) {
    disk.damage(path, |bytes| bytes[8..12].copy_from_slice(&9u32.to_le_bytes())).expect("the file is there");
}

#[test]
fn newer_formats_are_refused_by_file_and_version() {
    let closed = closed();
    let files: Vec<PathBuf> = closed.lives.disk.contents().into_keys().collect();
    let newest = files.iter().rfind(|path| path.extension().is_some_and(|ending| ending == "seg"));
    for path in [newest.expect("there is a segment").clone(), PathBuf::from(DIR).join("log/CLOSED")] {
        let disk = closed.lives.disk.fork();
        newer(&disk, &path);
        let Verdict::Loud(message) = closed.judge(disk) else { panic!("{} was accepted", path.display()) };
        assert!(names(&message, &path) && message.contains("format version 9 is newer than"), "{message}");
    }
    // A footer only repeats what its segment says: an unknown one is made again and nothing is lost.
    let footer = files.iter().find(|path| path.extension().is_some_and(|ending| ending == "idx"));
    let disk = closed.lives.disk.fork();
    newer(&disk, footer.expect("there is a footer"));
    assert_eq!(closed.judge(disk), Verdict::Harmless);
}

#[test]
fn newer_index_is_refused_by_version() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let opened =
        laneway_embedded::FileStore::open_with(folder.path(), small(), Arc::new(laneway_core::SystemClock));
    opened.expect("an empty folder opens").close().expect("closes in order");
    let table = redb::TableDefinition::<&[u8], &[u8]>::new("meta");
    let database = redb::Database::open(folder.path().join("index.redb")).expect("the index is a redb file");
    let transaction = database.begin_write().expect("nobody else writes");
    {
        let mut meta = transaction.open_table(table).expect("the table is there");
        let key: &[u8] = b"checkpoint";
        let mut value = meta.get(key).expect("readable").expect("there is a checkpoint").value().to_vec();
        value.truncate(value.len() - 4);
        value[0] = 9;
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&u32::try_from(key.len()).expect("short").to_le_bytes());
        hasher.update(key);
        hasher.update(&value);
        value.extend(hasher.finalize().to_le_bytes());
        meta.insert(key, value.as_slice()).expect("writable");
    }
    transaction.commit().expect("a healthy disk");
    drop(database);
    let options = FileOptions::default();
    let error =
        laneway_embedded::FileStore::open_with(folder.path(), options, Arc::new(laneway_core::SystemClock));
    let message = error.expect_err("a newer index").to_string();
    assert!(
        message.contains("index.redb") && message.contains("format version 9 is newer than"),
        "{message}"
    );
}
