//! The way between the process and its store: calls take time, get lost before or after their effect, arrive when their
//! sender has long given up or died, and some of them are the last thing the process does.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fastrand::Rng;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, JobState, JobView, Jobs, LaneView,
    Lanes, Page, Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use laneway_core::{
    Capabilities, Document, Documents, Result, Steady, Store, StoreError, Timestamp, Topic, Wakeups,
};
use laneway_engine::Stores;
use parking_lot::Mutex;

use super::life::Life;
use super::record::{By, Change, Record, Refused};
use super::world::World;
use crate::seam;

/// One process's connection to the store.
pub(crate) struct Net {
    world: Arc<World>,
    life: Arc<Life>,
    below: Stores,
    rng: Mutex<Rng>,
    calls: AtomicU64,
    /// Until when nothing of this process arrives anywhere.
    cut_until: Mutex<Steady>,
}

/// What happens to one call.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Passes {
        before: Duration,
        after: Duration,
    },
    /// It never arrives.
    LostBefore,
    /// It has its effect, and nobody is told.
    LostAfter,
    /// The store refuses all work at this moment.
    Down,
    /// It arrives after its sender gave up.
    Late(Duration),
    DiesBefore,
    DiesAfter,
    /// The process dies while the call is on its way, and it arrives.
    DiesLate(Duration),
}

/// A call that changes something travels on its own; one that only reads ends with its sender.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Writes,
    Reads,
}

type Acting<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// How long a sender waits for an answer that does not come.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a call waits on the way at most, when its sender is cut off.
const HELD_MAX: Duration = Duration::from_secs(20);

impl Net {
    pub(crate) fn new(world: Arc<World>, life: Arc<Life>, below: Stores, seed: u64) -> Arc<Self> {
        let rng = Mutex::new(Rng::with_seed(seed));
        let cut_until = Mutex::new(Steady(0));
        Arc::new(Self { world, life, below, rng, calls: AtomicU64::new(0), cut_until })
    }

    /// Cuts the process off from its store until then.
    pub(crate) fn cut_off(&self, until: Steady) {
        *self.cut_until.lock() = until;
    }

    /// How long it is still cut off.
    fn cut_for(&self) -> Duration {
        if self.world.is_calm() {
            return Duration::ZERO;
        }
        self.cut_until.lock().since(self.world.clock.true_now().steady)
    }

    /// What happens to a call of a process that is cut off: it is lost, or waits on the way until it gets through.
    fn fate_when_cut(&self, kind: Kind, cut_for: Duration) -> Fate {
        match (self.rng.lock().u8(0..4), kind) {
            (0, _) => Fate::Passes { before: cut_for, after: Duration::ZERO },
            (1, Kind::Writes) => Fate::Late(cut_for.min(HELD_MAX)),
            _ => Fate::LostBefore,
        }
    }

    fn fate(&self, kind: Kind) -> Fate {
        let mut rng = self.rng.lock();
        let millis = |rng: &mut Rng, max: u64| Duration::from_millis(rng.u64(0..=max));
        let quick = Fate::Passes { before: Duration::ZERO, after: Duration::ZERO };
        if self.world.is_calm() {
            return quick;
        }
        let options = &self.world.options;
        // Reads are most of the calls, and the least interesting ones.
        let rare = if kind == Kind::Reads { 5 } else { 1 };
        let dice = rng.u32(0..100_000);
        if dice < options.deaths / rare {
            return match rng.u8(0..4) {
                0 => Fate::DiesBefore,
                1 | 2 if kind == Kind::Reads => Fate::DiesBefore,
                1 => Fate::DiesAfter,
                _ if kind == Kind::Reads => Fate::DiesAfter,
                _ => {
                    let far = if rng.bool() { 3_000 } else { 20_000 };
                    Fate::DiesLate(millis(&mut rng, far))
                }
            };
        }
        if dice < (options.deaths + options.faults) / rare {
            return match rng.u8(0..8) {
                0 => Fate::Down,
                1 | 2 => Fate::LostBefore,
                3 | 4 => Fate::LostAfter,
                5 | 6 if kind == Kind::Writes => Fate::Late(millis(&mut rng, 4_000)),
                _ => Fate::Passes { before: millis(&mut rng, 1_500), after: millis(&mut rng, 1_500) },
            };
        }
        match rng.u8(0..4) {
            0 => Fate::Passes { before: millis(&mut rng, 4), after: millis(&mut rng, 4) },
            _ => quick,
        }
    }

    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        kind: Kind,
        act: impl FnOnce(By) -> Acting<T> + Send,
    ) -> Result<T> {
        let (life, call) = (self.life.number, self.calls.fetch_add(1, Ordering::Relaxed));
        let mut by = By { life, call, sent_at: self.world.clock.true_now().steady, late: false };
        self.world.stalled().await;
        let cut_for = self.cut_for();
        let fate = if cut_for.is_zero() { self.fate(kind) } else { self.fate_when_cut(kind, cut_for) };
        let fault = |what| self.world.log.push(Record::Fault { by, call: name, what });
        let unknown = || Err(StoreError::Unknown { action: name, source: "nobody answered".into() });
        match fate {
            Fate::Passes { before, after } => {
                seam::pass(before).await;
                let answer = act(by).await;
                seam::pass(after).await;
                return answer;
            }
            Fate::LostBefore => {
                fault("lost before its effect");
                seam::pass(PATIENCE).await;
                return unknown();
            }
            Fate::LostAfter => {
                fault("answer lost");
                drop(act(by).await);
                seam::pass(PATIENCE).await;
                return unknown();
            }
            Fate::Down => {
                fault("store down");
                return Err(StoreError::Down { reason: "as drawn".to_owned() });
            }
            Fate::Late(travel) => {
                fault("arrives late");
                by.late = true;
                let acting = act(by);
                drop(seam::spawn(async move {
                    seam::pass(travel).await;
                    drop(acting.await);
                }));
                seam::pass(PATIENCE).await;
                return unknown();
            }
            Fate::DiesBefore => self.life.die("before the effect of a call"),
            Fate::DiesAfter => {
                drop(act(by).await);
                self.life.die("between the effect of a call and its answer");
            }
            Fate::DiesLate(travel) => {
                by.late = true;
                let acting = act(by);
                drop(seam::spawn(async move {
                    seam::pass(travel).await;
                    drop(acting.await);
                }));
                self.life.die("with a call on its way");
            }
        }
        std::future::pending().await
    }

    async fn append_recorded(&self, append: Append) -> Result<Appended> {
        let (store, world) = (Arc::clone(&self.below.store), Arc::clone(&self.world));
        let append = Arc::new(append);
        let sent = Arc::clone(&append);
        let act = move |by: By| -> Acting<(By, Appended)> {
            Box::pin(async move {
                let answer = store.append((*sent).clone()).await;
                let seen = answer.as_ref().map(Appended::clone).map_err(Refused::from);
                world.log.push(Record::Append { by, append: Arc::clone(&sent), answer: seen });
                world.record_joined(sent.shard).await;
                answer.map(|appended| (by, appended))
            })
        };
        let (by, appended) = self.call("append", Kind::Writes, act).await?;
        let receipts = appended.receipts.clone();
        self.world.log.push(Record::Acked { by, append, receipts });
        Ok(appended)
    }

    fn act_jobs(&self, jobs: Jobs) -> impl FnOnce(By) -> Acting<Vec<JobView>> + Send + use<> {
        let (store, world) = (Arc::clone(&self.below.store), Arc::clone(&self.world));
        move |by: By| -> Acting<Vec<JobView>> {
            Box::pin(async move {
                let answer = store.jobs(jobs.clone()).await;
                let shard = match &jobs {
                    Jobs::Get { shard, .. } => *shard,
                    Jobs::Take { shard, number, .. } | Jobs::Forget { shard, number } => {
                        world.log.push(Record::Forgot { by, shard: *shard, number: *number });
                        *shard
                    }
                    Jobs::CancelScheduled { shard, ticket } => {
                        if answer.is_ok() {
                            let (shard, ticket) = (*shard, *ticket);
                            world.log.push(Record::CancelledScheduled { by, shard, ticket });
                        }
                        return answer;
                    }
                };
                for view in answer.iter().flatten() {
                    if let JobState::Ended { end, result, .. } = &view.state {
                        let (number, end, result) = (view.number, end.clone(), result.clone());
                        world.log.push(Record::EndSeen { by, shard, number, end, result });
                    }
                }
                answer
            })
        }
    }
}

/// A call whose effect nobody looks at.
macro_rules! plainly {
    ($self:ident, $seam:ident . $method:ident ( $($argument:expr),* ), $kind:expr) => {{
        let below = Arc::clone(&$self.below.$seam);
        $self.call(stringify!($method), $kind, move |_| Box::pin(async move { below.$method($($argument),*).await })).await
    }};
}

#[async_trait]
impl Store for Net {
    fn about(&self) -> About {
        let about = self.below.store.about();
        // Answers get lost here, so callers must be able to repeat.
        About { capabilities: Capabilities { shared: true, ..about.capabilities }, ..about }
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        plainly!(self, store.define(define), Kind::Reads)
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.append_recorded(append).await
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        let (store, world) = (Arc::clone(&self.below.store), Arc::clone(&self.world));
        let act = move |_: By| -> Acting<Promoted> {
            Box::pin(async move {
                let answer = store.promote(promote).await;
                world.record_joined(promote.shard).await;
                answer
            })
        };
        self.call("promote", Kind::Writes, act).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        let (shard, answer) = (read.shard, plainly!(self, store.read(read), Kind::Reads));
        // A planted bug may write when somebody reads.
        if self.world.is_planted() {
            self.world.record_joined(shard).await;
        }
        answer
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        let (store, world) = (Arc::clone(&self.below.store), Arc::clone(&self.world));
        let act = move |by: By| -> Acting<Resume> {
            Box::pin(async move {
                let answer = store.seize(seize.clone()).await;
                let seen = answer.as_ref().map(|resume| resume.progress.fence).map_err(Refused::from);
                world.log.push(Record::Seize { by, seize, answer: seen });
                answer
            })
        };
        self.call("seize", Kind::Writes, act).await
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        plainly!(self, store.lanes(lanes), Kind::Reads)
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        let (store, world) = (Arc::clone(&self.below.store), Arc::clone(&self.world));
        let commit = Arc::new(commit);
        let act = move |by: By| -> Acting<Committed> {
            Box::pin(async move {
                let answer = store.commit((*commit).clone()).await;
                let seen = answer.as_ref().map(|committed| *committed).map_err(Refused::from);
                let (shard, ended) = (commit.seat.shard, commit.jobs.iter().map(|end| end.id));
                let jobs = world.log.judge(|judge| judge.jobs_of(shard, ended));
                world.log.push(Record::Commit { by, commit, answer: seen });
                if answer.is_ok() {
                    jobs.into_iter().for_each(|job| world.bell.ring(Topic::Job(job)));
                }
                answer
            })
        };
        self.call("commit", Kind::Writes, act).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        let (store, world) = (Arc::clone(&self.below.store), Arc::clone(&self.world));
        let act = move |by: By| -> Acting<Accepted> {
            Box::pin(async move {
                let answer = store.request(request.clone()).await;
                let seen = answer.as_ref().map(|accepted| accepted.number).map_err(Refused::from);
                let seat = request.seat;
                world.log.push(Record::Request { by, request, answer: seen });
                world.bell.ring(Topic::Seat(seat));
                answer
            })
        };
        self.call("request", Kind::Writes, act).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        let kind = if matches!(jobs, Jobs::Get { .. }) { Kind::Reads } else { Kind::Writes };
        self.call("jobs", kind, self.act_jobs(jobs)).await
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        plainly!(self, store.stash(stash), Kind::Writes)
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        plainly!(self, store.query(query), Kind::Reads)
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        plainly!(self, store.trim(trim), Kind::Writes)
    }
}

/// Writes down what was asked of a document, if it says who owns what.
fn record_document<T>(world: &World, by: By, name: String, change: Change, answer: &Result<T>) {
    if name.starts_with("cluster/") {
        let answer = answer.as_ref().map(|_| ()).map_err(Refused::from);
        world.log.push(Record::Document { by, name, change, answer });
    }
}

#[async_trait]
impl Documents for Net {
    async fn get(&self, name: &str) -> Result<Option<Document>> {
        let name = name.to_owned();
        plainly!(self, documents.get(&name), Kind::Reads)
    }

    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
        let (name, documents, world) =
            (name.to_owned(), Arc::clone(&self.below.documents), Arc::clone(&self.world));
        let change = if expect.is_some() { Change::Replace } else { Change::Create };
        let act = move |by: By| -> Acting<u64> {
            Box::pin(async move {
                let answer = documents.put(&name, expect, bytes).await;
                record_document(&world, by, name, change, &answer);
                answer
            })
        };
        self.call("put", Kind::Writes, act).await
    }

    async fn delete(&self, name: &str, expect: u64) -> Result<()> {
        let (name, documents, world) =
            (name.to_owned(), Arc::clone(&self.below.documents), Arc::clone(&self.world));
        let act = move |by: By| -> Acting<()> {
            Box::pin(async move {
                let answer = documents.delete(&name, expect).await;
                record_document(&world, by, name, Change::Delete, &answer);
                answer
            })
        };
        self.call("delete", Kind::Writes, act).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Document>> {
        let prefix = prefix.to_owned();
        plainly!(self, documents.list(&prefix), Kind::Reads)
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        plainly!(self, documents.clock(), Kind::Reads)
    }
}

#[async_trait]
impl Wakeups for Net {
    async fn announce(&self, topic: Topic) -> Result<()> {
        if !self.is_deaf() {
            self.world.bell.ring(topic);
        }
        Ok(())
    }

    async fn wait(&self, topic: Topic, seen: u64) -> Result<u64> {
        let mut seen = seen;
        loop {
            seen = self.world.bell.wait(topic, seen).await;
            if !self.is_deaf() {
                return Ok(seen);
            }
        }
    }
}

impl Net {
    fn is_deaf(&self) -> bool {
        let lost = || self.rng.lock().u32(0..100) < self.world.options.deaf;
        let deaf = !self.world.is_calm() && (lost() || !self.cut_for().is_zero());
        if deaf {
            self.world.log.judge(|judge| judge.hit("wake-up lost"));
        }
        deaf
    }
}
