//! One folder whose worker is killed again and again: reads the worker's reports, opens the folder itself and
//! compares it with everything that was acknowledged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures::executor::block_on;
use laneway_core::store::{Entry, Receipt};
use laneway_core::{EventId, ManualClock, Seq, Store};
use laneway_embedded::{FileStore, SyncMode};
use laneway_testkit::check::{self, AppendRecord, History, Outcome};
use std::sync::Arc;
use std::time::Duration;

use super::actor::Sort;
use super::child::{self, Orders};
use super::oracle::{Last, Oracle};
use super::picture;
use super::world::World;

pub(super) const ACTORS: usize = 3;
const PRODUCERS: usize = 3;
/// Time between two lives.
const PAUSE: Duration = Duration::from_secs(60);

/// The folder and everything known about it.
pub(super) struct Folder {
    pub(super) orders: Orders,
    pub(super) oracle: Oracle,
    clock: ManualClock,
    sent: BTreeMap<(usize, u64), Vec<Receipt>>,
    history: History,
    pub(super) sends: u64,
}

impl Folder {
    /// A founded world in an empty folder.
    pub(super) fn found(dir: &Path, seed: u64, sync: SyncMode) -> Self {
        let (actors, producers) = (vec![0; ACTORS], vec![0; PRODUCERS]);
        let orders = Orders { dir: dir.to_owned(), seed, seconds: 0, sync, actors, producers };
        let store = child::open(dir, &orders);
        block_on(World::found(&store, ACTORS)).expect("a healthy store takes definitions");
        let clock = ManualClock::default();
        let oracle = block_on(Oracle::found(store.about().incarnation, &clock, ACTORS, seed));
        store.close().expect("closes in order");
        Self { orders, oracle, clock, sent: BTreeMap::new(), history: History::default(), sends: 0 }
    }

    /// Takes over what the worker reported.
    pub(super) fn hear(&mut self, lines: &[String]) -> Result<(), String> {
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["step", actor, number, answer] => {
                    let actor: usize = actor.parse().expect("a number");
                    assert_eq!(number.parse(), Ok(self.oracle.done[actor]), "steps are reported in order");
                    block_on(self.oracle.answered(actor, answer))?;
                }
                ["sent", producer, number, places] => {
                    let (producer, number): (usize, u64) =
                        (producer.parse().expect("a number"), number.parse().expect("a number"));
                    self.sent.insert((producer, number), places.split(',').map(receipt).collect());
                    self.orders.producers[producer] = number + 1;
                    self.sends += 1;
                }
                _ if line.contains("panicked") => return Err(format!("the worker failed: {line}")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens this copy of the folder and compares everything.
    pub(super) fn check(&mut self, dir: &Path) -> Result<(), String> {
        let store = FileStore::open_with(dir, self.orders.options(), Arc::new(self.clock.clone()))
            .map_err(|error| format!("opening: {error}"))?;
        block_on(self.oracle.judge_all(&store, &[Last::Unknown; ACTORS]))?;
        block_on(self.check_shared(&store))?;
        store.close().map_err(|error| format!("closing: {error}"))
    }

    /// The shared stream: order between producers is the store's, so the general checkers judge it.
    async fn check_shared(&mut self, store: &FileStore) -> Result<(), String> {
        let ground = self.oracle.world.shared.clone();
        let found = picture::Picture::take(store, &ground).await.map_err(|error| error.to_string())?;
        for entry in found.entries {
            let Entry::Event(event) = entry else { return Err(format!("{entry:?} in a queue")) };
            self.history.saw(ground.shard, event);
        }
        let answered = self.sent.iter().map(|((producer, number), receipts)| AppendRecord {
            shard: ground.shard,
            drafts: child::drafts(*producer, *number),
            outcome: Outcome::Answered(receipts.clone()),
        });
        let next = self.orders.producers.iter().enumerate().map(|(producer, number)| AppendRecord {
            shard: ground.shard,
            drafts: child::drafts(producer, *number),
            outcome: Outcome::Unknown,
        });
        self.history.appends = answered.chain(next).collect();
        let violations = check::check(&self.history);
        violations
            .first()
            .map_or(Ok(()), |first| Err(format!("{} violations, first {first:?}", violations.len())))
    }

    /// What the next worker is told.
    pub(super) fn next(&mut self) {
        self.orders.actors.clone_from(&self.oracle.done);
        self.orders.seconds += PAUSE.as_secs();
        self.clock.advance(PAUSE);
    }

    pub(super) fn appends(&self) -> u64 {
        self.oracle.count(Sort::Append) + self.sends
    }
}

fn receipt(place: &str) -> Receipt {
    let numbers: Vec<u64> = place.split(':').map(|number| number.parse().expect("a number")).collect();
    let [id, prev, seq] = numbers[..] else { panic!("three numbers: {place}") };
    Receipt::New {
        id: EventId(id),
        prev: (prev > 0).then_some(EventId(prev)),
        seq: Some(Seq(seq)),
        job: None,
    }
}

/// Copies a folder of files and folders.
pub(super) fn copy(from: &Path, to: &Path) -> PathBuf {
    std::fs::create_dir_all(to).expect("a temporary folder takes folders");
    for entry in std::fs::read_dir(from).expect("the folder is readable") {
        let entry = entry.expect("the folder is readable");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("known").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("there is room for a copy");
        }
    }
    to.to_owned()
}
