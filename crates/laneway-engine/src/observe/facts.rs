//! Gathers what is needed to say how something stands: from the store, which any node can, and from the owner if it is here.

use std::sync::Arc;

use laneway_core::adoption::{Gap, given_between};
use laneway_core::store::{
    Entry, LaneSelect, LaneView, Lanes, Query, Read, ReadFrom, Rows, SeatStatus, SeatView, TailView,
};
use laneway_core::{
    Documents, EventId, JobId, Key, LaneName, Partition, Seat, Shard, Status, Store, StoreError, StreamInfo,
};

use super::lanes::{LaneStanding, ProcessorStanding};
use super::nearby::{LaneRuns, Nearby};
use super::why::{Facts, Place, Runs, Short, Why, doubt, status, why};
use crate::cluster::NodeToken;
use crate::dispatch::{Note, Paused};
use crate::engine::Stores;
use crate::job::{Job, JobError, JobStatus, Jobs};
use crate::log::{Catalogue, CatalogueError};

/// Steps back along `prev` that are taken to find the first event of a lane that has not ended.
const STEPS_MAX: usize = 1_024;

/// Looks at lanes and jobs. Cheap to clone.
#[derive(Clone)]
pub struct Looker {
    pub(super) store: Arc<dyn Store>,
    documents: Arc<dyn Documents>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) jobs: Jobs,
    pub(super) nearby: Nearby,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// No such stream or processor.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// No such job.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Looker {
    pub(crate) fn new(stores: &Stores, catalogue: Arc<Catalogue>, jobs: Jobs, nearby: Nearby) -> Self {
        let (store, documents) = (Arc::clone(&stores.store), Arc::clone(&stores.documents));
        Self { store, documents, catalogue, jobs, nearby }
    }

    /// How a lane stands.
    pub async fn lane(&self, stream: &str, key: &Key) -> Result<LaneStanding, LookError> {
        self.catalogue.refresh().await?;
        let info = self.catalogue.stream(stream).await?;
        let partition = key.partition(info.settings.partitions);
        self.lane_of(stream, partition, &LaneName::Key(key.clone())).await
    }

    /// How a lane of a partition stands, also that of an event without a key.
    pub async fn lane_of(
        &self,
        stream: &str,
        partition: Partition,
        lane: &LaneName,
    ) -> Result<LaneStanding, LookError> {
        let info = self.catalogue.stream(stream).await?;
        let shard = info.shard(partition);
        let (tail, last) = match lane {
            LaneName::Key(key) => {
                let tail = self.tail_in(shard, key).await?;
                let last = tail.as_ref().map(|tail| tail.id);
                (tail, last)
            }
            LaneName::Event(id) => (None, Some(*id)),
        };
        let mut processors = Vec::new();
        let (gaps, seats) = self.seats(&info, shard).await?;
        for (seat, name) in seats {
            processors.push(self.standing(shard, &seat, name, lane, last, &gaps).await?);
        }
        Ok(LaneStanding { partition, tail, processors })
    }

    /// The end of a lane as producers see it, with its object.
    pub async fn tail(&self, stream: &str, key: &Key) -> Result<Option<TailView>, LookError> {
        let info = self.catalogue.stream(stream).await?;
        Ok(self.tail_in(info.shard(key.partition(info.settings.partitions)), key).await?)
    }

    async fn tail_in(&self, shard: Shard, key: &Key) -> Result<Option<TailView>, StoreError> {
        match self.store.query(Query::Lane(shard, key.clone())).await? {
            Rows::Lane(tail) => Ok(tail),
            _ => Err(other_list("a lane")),
        }
    }

    /// The ids of a shard that were never given, and its seats with the names of their processors.
    async fn seats(
        &self,
        info: &StreamInfo,
        shard: Shard,
    ) -> Result<(Vec<Gap>, Vec<(SeatView, String)>), StoreError> {
        let Rows::Seats(about, seats) = self.store.query(Query::Seats(shard)).await? else {
            return Err(other_list("seats"));
        };
        let name = |seat: &SeatView| {
            let found = info.processors.iter().find(|processor| processor.id == seat.processor);
            found.map(|processor| processor.name.clone())
        };
        let seats = seats.into_iter().filter_map(|seat| name(&seat).map(|name| (seat, name)));
        Ok((about.gaps, seats.collect()))
    }

    async fn standing(
        &self,
        shard: Shard,
        seat: &SeatView,
        processor: String,
        lane: &LaneName,
        last: Option<EventId>,
        gaps: &[Gap],
    ) -> Result<ProcessorStanding, LookError> {
        let id = Seat { shard, processor: seat.processor };
        let view = self.view(id, lane.clone()).await?;
        let head = match view.siding.first() {
            Some(first) => Some(*first),
            None => self.first_open(shard, seat, last).await?,
        };
        let told = self.told(id, &view.record.lane).await;
        let place = head.map_or(Place::Nothing, Place::Head);
        let facts = self.facts_of(id, seat, &view, place, &told, gaps).await?;
        let has_record = view.record.block.is_some() || view.record.attempts > 0;
        Ok(ProcessorStanding {
            processor,
            status: seat.progress.status,
            paused: facts.paused.clone(),
            record: has_record.then_some(view.record),
            head,
            state: view.state,
            why: why(&facts),
        })
    }

    async fn facts_of(
        &self,
        id: Seat,
        seat: &SeatView,
        view: &LaneView,
        place: Place,
        told: &Told,
        gaps: &[Gap],
    ) -> Result<Facts, StoreError> {
        let floor = seat.progress.window.floor();
        let first = match place {
            Place::Head(id) | Place::Behind { head: id } => id,
            Place::Scheduled(_) | Place::Ended(_) | Place::Nothing => EventId(0),
        };
        Ok(Facts {
            place,
            registered: true,
            owned: self.is_owned(id, seat).await?,
            status: seat.progress.status,
            paused: paused_by(seat)?,
            block: view.record.block.clone(),
            attempts: view.record.attempts,
            runs: told.state(),
            short_of: told.short_of.or_else(|| self.nearby.short_of(seat.processor)),
            before: given_between(gaps, floor, first).saturating_sub(1),
            clock: self.store.clock_report(),
        })
    }

    /// Whether somebody owns a seat, as far as this node can know. An owner that ended in good order says so in its last
    /// commit; a node of the cluster is believed as long as nobody has buried it; where no other process can reach the store,
    /// nobody but this one is left.
    async fn is_owned(&self, id: Seat, seat: &SeatView) -> Result<bool, StoreError> {
        let progress = &seat.progress;
        if progress.fence.term.0 == 0 || progress.clean {
            return Ok(false);
        }
        if self.nearby.is_owner(id) || !self.store.about().capabilities.shared {
            return Ok(self.nearby.is_owner(id));
        }
        match NodeToken::of_bytes(&progress.node) {
            None | Some(NodeToken::ALONE) => Ok(true),
            Some(node) => node.lives(&*self.documents).await,
        }
    }

    async fn view(&self, seat: Seat, lane: LaneName) -> Result<LaneView, StoreError> {
        let select = LaneSelect::Names(vec![lane.clone()]);
        let views = self.store.lanes(Lanes { seat, select, siding: 1, states: true }).await?;
        Ok(views.into_iter().next().unwrap_or_else(|| crate::dispatch::plain(lane)))
    }

    /// The first event of a lane that is not passed, found from its end along `prev`.
    async fn first_open(
        &self,
        shard: Shard,
        seat: &SeatView,
        last: Option<EventId>,
    ) -> Result<Option<EventId>, StoreError> {
        let window = &seat.progress.window;
        let (mut open, mut next) = (None, last);
        for _ in 0..STEPS_MAX {
            let Some(id) = next.filter(|id| !window.contains(*id)) else { break };
            open = Some(id);
            next = match self.entry(shard, id).await? {
                Some(Entry::Event(event)) => event.prev,
                Some(Entry::Superseded { .. }) | None => None,
            };
        }
        Ok(open)
    }

    async fn entry(&self, shard: Shard, id: EventId) -> Result<Option<Entry>, StoreError> {
        let from = ReadFrom::Ids(vec![id]);
        let read = Read { shard, from, limit: 1, bytes: usize::MAX, processor: None, states: false };
        match self.store.read(read).await {
            Err(StoreError::Trimmed { .. }) => Ok(None),
            page => Ok(page?.entries.into_iter().next()),
        }
    }

    /// How a lane stands, as its owner knows it.
    async fn told(&self, seat: Seat, lane: &LaneName) -> Told {
        let Some(mut under_way) = self.nearby.under_way(seat, vec![lane.clone()]).await else {
            return Told { is_known: false, runs: None, short_of: None };
        };
        let (runs, short_of) = (under_way.runs.remove(lane), under_way.short_of.remove(lane));
        Told { is_known: true, runs, short_of }
    }

    /// Why a job does not go on.
    pub async fn why_job(&self, id: JobId) -> Result<Why, LookError> {
        let job = self.jobs.get(id).await?;
        Ok(self.stands(&job).await?.why)
    }

    pub(super) async fn stands(&self, job: &Job) -> Result<Standing, LookError> {
        let (event, key) = match &job.status {
            JobStatus::Ended { end, .. } => {
                return Ok(Standing::plain(Why::Ended(end.end), Status::Ended(end.end)));
            }
            JobStatus::Scheduled { due } => {
                return Ok(Standing::plain(
                    Why::Delayed { until: *due, clock: doubt(*due, self.store.clock_report()) },
                    Status::Scheduled,
                ));
            }
            JobStatus::Pending { event, key, .. } => (*event, key.clone()),
        };
        let shard = job.id.shard();
        let info = self.catalogue.stream_of(shard.stream).await?;
        let responder = match self.entry(shard, event).await? {
            Some(Entry::Event(event)) => event.job.map(|job| job.responder),
            Some(Entry::Superseded { job, .. }) => job.map(|job| job.responder),
            None => None,
        };
        let (gaps, seats) = self.seats(&info, shard).await?;
        let Some((seat, _)) = seats.into_iter().find(|(seat, _)| Some(seat.processor) == responder) else {
            return Ok(Standing::plain(Why::NoProcessor, Status::Waiting));
        };
        let lane = key.map_or(LaneName::Event(event), LaneName::Key);
        let id = Seat { shard, processor: seat.processor };
        let view = self.view(id, lane).await?;
        let told = self.told(id, &view.record.lane).await;
        // One that runs with its lane's head, in a batch, runs too.
        let found = told.runs.clone().filter(|found| (found.first..=found.last).contains(&event));
        let head = match view.siding.first() {
            _ if found.is_some() => Some(event),
            Some(first) => Some(*first),
            None => self.first_open(shard, &seat, Some(event)).await?,
        };
        let place = match head {
            Some(head) if head != event => Place::Behind { head },
            _ => Place::Head(event),
        };
        let facts = self.facts_of(id, &seat, &view, place, &told, &gaps).await?;
        Ok(Standing { why: why(&facts), status: status(&facts), runs: found })
    }
}

/// How a job stands, in short.
pub(super) struct Standing {
    pub(super) why: Why,
    pub(super) status: Status,
    /// The run that the job's event is in.
    pub(super) runs: Option<LaneRuns>,
}

impl Standing {
    fn plain(why: Why, status: Status) -> Self {
        Self { why, status, runs: None }
    }
}

/// How a lane stands with its owner.
struct Told {
    /// The owner is here.
    is_known: bool,
    runs: Option<LaneRuns>,
    short_of: Option<Short>,
}

impl Told {
    fn state(&self) -> Runs {
        if self.is_known { runs_of(self.runs.as_ref()) } else { Runs::Untold }
    }
}

/// Whether the head of a lane runs, where the owner says that this runs.
pub(super) fn runs_of(found: Option<&LaneRuns>) -> Runs {
    match found {
        None => Runs::Not,
        Some(LaneRuns { claim: Some(claim), .. }) => {
            Runs::With { worker: claim.worker.clone(), expires: claim.expires }
        }
        Some(LaneRuns { since, .. }) => Runs::Here { since: *since },
    }
}

/// Who paused a seat, while it is paused.
pub(super) fn paused_by(seat: &SeatView) -> Result<Option<Paused>, StoreError> {
    let note = Note::decode(seat.progress.note.clone())?;
    Ok(note.paused.filter(|_| seat.progress.status == SeatStatus::Paused))
}

pub(super) fn other_list(wanted: &str) -> StoreError {
    StoreError::Corrupt { what: format!("the store answered another list than {wanted}") }
}

impl std::fmt::Debug for Looker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Looker").finish_non_exhaustive()
    }
}
