//! The transitions as cases call them: with the usual arguments filled in, and failing loudly.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::Due;
use laneway_core::store::{
    Append, Appended, Commit, Committed, JobState, Jobs, LaneSelect, LaneView, Lanes, Origin, Owner, Page,
    Query, Read, ReadFrom, Receipt, Resume, Rows, SeatView, Seize, TailView, Trim, Trimmed,
};
use laneway_core::{
    Draft, Event, EventId, Fence, JobNumber, Key, LaneName, Result, Seat, Seq, Shard, ShardInfo, Steady,
    StreamId, StreamInfo,
};

use super::{Bench, Place, delayed, draft};

impl Bench {
    /// An append with the incarnation and layout of this place.
    pub fn append_to(&self, place: &Place, drafts: Vec<Draft>) -> Append {
        Append {
            shard: place.shard,
            incarnation: self.incarnation(),
            layout: place.stream.layout,
            origin: None,
            drafts,
            object: None,
        }
    }

    /// An append from a numbered origin.
    pub fn append_from(&self, place: &Place, origin: Origin, drafts: Vec<Draft>) -> Append {
        Append { origin: Some(origin), ..self.append_to(place, drafts) }
    }

    /// Appends, whatever the answer.
    pub async fn try_send(&self, place: &Place, drafts: Vec<Draft>) -> Result<Appended> {
        self.store().append(self.append_to(place, drafts)).await
    }

    /// Appends what must be accepted.
    pub async fn send(&self, place: &Place, drafts: Vec<Draft>) -> Vec<Receipt> {
        self.try_send(place, drafts).await.expect("these drafts are acceptable").receipts
    }

    /// Appends one draft that must be new, and gives its id.
    pub async fn send_one(&self, place: &Place, draft: Draft) -> EventId {
        let receipts = self.send(place, vec![draft]).await;
        let [Receipt::New { id, .. }] = receipts[..] else { panic!("expected one new event: {receipts:?}") };
        id
    }

    /// Appends so many events to one lane and gives their ids.
    pub async fn fill(&self, place: &Place, lane: &str, count: usize) -> Vec<EventId> {
        let drafts = (0..count).map(|index| draft(lane, &format!("{lane}-{index}"))).collect();
        let receipts = self.send(place, drafts).await;
        receipts.iter().map(|receipt| new_id(receipt).expect("a plain draft is new")).collect()
    }

    /// One read, whatever the answer.
    pub async fn try_read(&self, shard: Shard, from: ReadFrom) -> Result<Page> {
        self.store().read(read_of(shard, from)).await
    }

    /// Everything readable of a shard, page by page.
    pub async fn events(&self, shard: Shard) -> Vec<Event> {
        let mut after = self.shard_info(shard).await.trimmed;
        let mut events = Vec::new();
        loop {
            let page = self.try_read(shard, ReadFrom::After(after)).await.expect("reading above the trim");
            let Some(last) = page.entries.last() else { return events };
            after = last.id();
            events.extend(page.entries.into_iter().filter_map(|entry| match entry {
                laneway_core::store::Entry::Event(event) => Some(event),
                laneway_core::store::Entry::Superseded { .. } => None,
            }));
        }
    }

    /// One event that must be there.
    pub async fn event(&self, shard: Shard, id: EventId) -> Event {
        let found = self.events(shard).await.into_iter().find(|event| event.id == id);
        found.unwrap_or_else(|| panic!("event {id} must be readable"))
    }

    /// Takes a seat from whoever has it.
    pub async fn seize(&self, seat: Seat) -> Resume {
        let expect = self.owner(seat).await;
        let seize = self.seize_of(seat, expect);
        self.store().seize(seize).await.expect("the owner was just read")
    }

    /// A seizure with a new nonce.
    pub fn seize_of(&self, seat: Seat, expect: Option<Owner>) -> Seize {
        let node = Bytes::from_static(b"node-a");
        Seize { seat, incarnation: self.incarnation(), expect, nonce: self.nonce(), node }
    }

    /// Who owns a seat.
    pub async fn owner(&self, seat: Seat) -> Option<Owner> {
        let fence = self.seat_view(seat).await.progress.fence;
        (fence.term.0 > 0).then_some(Owner { term: fence.term, nonce: fence.nonce })
    }

    /// A commit that changes nothing yet, under an id of its own.
    pub fn commit_of(&self, seat: Seat, fence: Fence) -> Commit {
        Commit::new(seat, fence, self.commit_id())
    }

    /// Commits what must be accepted.
    pub async fn commit(&self, commit: Commit) -> Committed {
        let text = format!("{:?}", commit.id);
        self.store().commit(commit).await.unwrap_or_else(|error| panic!("commit {text}: {error}"))
    }

    /// Takes the seat and passes these ids.
    pub async fn pass(&self, seat: Seat, ids: &[EventId]) -> Committed {
        let fence = self.seize(seat).await.progress.fence;
        let mut commit = self.commit_of(seat, fence);
        commit.passed = super::passed(ids);
        self.commit(commit).await
    }

    /// The shard as it describes itself.
    pub async fn shard_info(&self, shard: Shard) -> ShardInfo {
        self.seats(shard).await.0
    }

    /// The shard and its seats.
    pub async fn seats(&self, shard: Shard) -> (ShardInfo, Vec<SeatView>) {
        match self.query(Query::Seats(shard)).await {
            Rows::Seats(info, seats) => (info, seats),
            other => panic!("seats were asked for: {other:?}"),
        }
    }

    /// One seat.
    pub async fn seat_view(&self, seat: Seat) -> SeatView {
        let seats = self.seats(seat.shard).await.1;
        let found = seats.into_iter().find(|view| view.processor == seat.processor);
        found.unwrap_or_else(|| panic!("seat {seat} must be listed"))
    }

    /// A stream's definition.
    pub async fn stream_info(&self, stream: StreamId) -> Option<StreamInfo> {
        self.streams().await.into_iter().find(|info| info.id == stream)
    }

    /// Every stream.
    pub async fn streams(&self) -> Vec<StreamInfo> {
        match self.query(Query::Streams).await {
            Rows::Streams(streams) => streams,
            other => panic!("streams were asked for: {other:?}"),
        }
    }

    /// The end of a lane.
    pub async fn tail(&self, shard: Shard, key: &Key) -> Option<TailView> {
        match self.query(Query::Lane(shard, key.clone())).await {
            Rows::Lane(tail) => tail,
            other => panic!("a lane was asked for: {other:?}"),
        }
    }

    /// A list that must be answered.
    pub async fn query(&self, query: Query) -> Rows {
        self.store().query(query.clone()).await.unwrap_or_else(|error| panic!("{query:?}: {error}"))
    }

    /// One lane of a seat, if it is not plain.
    pub async fn lane_view(&self, seat: Seat, lane: &LaneName) -> Option<LaneView> {
        let select = LaneSelect::Names(vec![lane.clone()]);
        self.lanes(seat, select).await.into_iter().next()
    }

    /// Lanes of a seat with up to 1,000 sided ids each.
    pub async fn lanes(&self, seat: Seat, select: LaneSelect) -> Vec<LaneView> {
        let lanes = Lanes { seat, select, siding: 1_000, states: true };
        self.store().lanes(lanes).await.expect("lanes of a seat that exists")
    }

    /// Where a job stands, with its result.
    pub async fn job(&self, shard: Shard, number: JobNumber) -> JobState {
        let get = Jobs::Get { shard, numbers: vec![number], results: true };
        let mut views = self.store().jobs(get).await.expect("a job can always be asked for");
        assert_eq!(views.len(), 1, "one view per number");
        let view = views.remove(0);
        assert_eq!(view.number, number, "a view names its job");
        view.state
    }

    /// Trims until nothing more goes, and sums up what went.
    pub async fn trim(&self, shard: Shard) -> Trimmed {
        let mut sum = Trimmed::default();
        loop {
            let went = self.store().trim(Trim { shard }).await.expect("trim of a shard that exists");
            sum.first = went.first;
            sum.events += went.events;
            sum.expired += went.expired;
            sum.rows += went.rows;
            if went.events == 0 && went.rows == 0 && !went.more {
                return sum;
            }
        }
    }

    /// The store's steady time, which may differ from the clock's: taken from the due time of a draft that is
    /// delayed by nothing.
    pub async fn store_steady(&self) -> Steady {
        let place = self.place().await;
        let receipts = self.send(&place, vec![delayed("steady", "now", Duration::ZERO)]).await;
        let [Receipt::Scheduled { due: Due::Steady(now), .. }] = receipts[..] else {
            panic!("a delay is due by steady time: {receipts:?}");
        };
        now
    }
}

/// A whole page of a shard.
pub(crate) fn read_of(shard: Shard, from: ReadFrom) -> Read {
    Read { shard, from, limit: 10_000, bytes: 8 << 20, processor: None, states: false }
}

/// The id of a new event.
pub(crate) fn new_id(receipt: &Receipt) -> Option<EventId> {
    match receipt {
        Receipt::New { id, .. } => Some(*id),
        _ => None,
    }
}

/// Place in the chain of a new event.
pub(crate) fn chain_of(receipt: &Receipt) -> (EventId, Option<EventId>, Option<Seq>) {
    match receipt {
        Receipt::New { id, prev, seq, .. } => (*id, *prev, *seq),
        other => panic!("expected a new event: {other:?}"),
    }
}
