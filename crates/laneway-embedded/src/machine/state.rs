//! What the rules read and write. The two stores implement it: one keeps it in maps, the other also writes
//! every change into the frame of the group that is being committed.
//!
//! A rule checks everything it must before its first change, so no change is ever taken back.
//!
//! Four kinds of state, by how hot they are:
//! - shards and seats are few and stay in memory whole;
//! - events and job ends go to the log and are found by id;
//! - tails (the end of every lane) follow from the events pushed;
//! - everything else are rows: an ordered map from bytes to bytes, cut into [`Table`]s.

use bytes::Bytes;
use laneway_core::store::{JobEnd, JobResult, SeatStatus};
use laneway_core::{
    CommitId, Event, EventId, Fence, Incarnation, JobMark, Key, ProcessorId, Result, Seat, Seq, Shard,
    ShardInfo, Steady, StreamId, StreamInfo, Timestamp, Window, limits,
};

/// Applies `look` to every item, even after one has failed. A store then learns everything it has to read from files in
/// one pass instead of one item at a time.
///
/// # Errors
/// Returns the first failure.
pub(crate) fn look_at_all<I, T>(
    items: impl IntoIterator<Item = I>,
    mut look: impl FnMut(I) -> Result<T>,
) -> Result<Vec<T>> {
    let mut found = Ok(Vec::new());
    for item in items {
        match (look(item), &mut found) {
            (Ok(view), Ok(views)) => views.push(view),
            (Err(error), Ok(_)) => found = Err(error),
            (_, Err(_)) => {}
        }
    }
    found
}

/// The store's clocks at the moment of a call. See `docs/design/time.md`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now {
    /// Log time: never goes back. For times of events, for ids and terms.
    pub(crate) calendar: Timestamp,
    /// The time of day: new deadlines count from here.
    pub(crate) wall: Timestamp,
    /// Dates up to this are due.
    pub(crate) dates: Timestamp,
    /// Everything that expires before this time has expired. Does not advance while the wall clock is unsettled.
    pub(crate) expiry: Timestamp,
    /// Whether the wall clock is settled, so ages can be computed.
    pub(crate) settled: bool,
    /// Steady time, which goes on over restarts of the store.
    pub(crate) steady: Steady,
}

/// The end of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) id: EventId,
    pub(crate) seq: Seq,
    pub(crate) generation: Option<u64>,
    pub(crate) incarnation: u64,
    pub(crate) deleted: bool,
}

impl Tail {
    /// The tail of a lane after this event joined it; `None` for a keyless event.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        Some(Self {
            id: event.id,
            seq: event.seq?,
            generation: event.generation,
            incarnation: event.incarnation,
            deleted: event.delete,
        })
    }
}

/// A seat, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeatState {
    pub(crate) head: SeatHead,
    pub(crate) window: Window,
}

/// A seat without its window: small, written with every commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeatHead {
    pub(crate) fence: Fence,
    pub(crate) node: Bytes,
    /// How the owner before ended; answered by a repeated seize too.
    pub(crate) was_clean: bool,
    /// The owner said that nothing runs any more.
    pub(crate) clean: bool,
    pub(crate) last_commit: Option<CommitId>,
    pub(crate) request_no: u64,
    pub(crate) requests_applied: u64,
    pub(crate) emitted: u64,
    pub(crate) forwarded: u64,
    pub(crate) status: SeatStatus,
    /// What the owner keeps with the seat.
    pub(crate) note: Bytes,
    /// Life of the processor: part of the key of lane rows and of the emit origin.
    pub(crate) incarnation: u32,
    /// Life of the states: part of the key of state rows; a reset that clears them begins the next.
    pub(crate) states_life: u32,
}

/// An ended job as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredEnd {
    pub(crate) end: JobEnd,
    pub(crate) keep_until: Timestamp,
}

impl StoredEnd {
    /// Bytes of what people and handlers said.
    pub(crate) fn bytes(&self) -> usize {
        let result = if let JobResult::Inline(result) = &self.end.result { result.len() } else { 0 };
        result + self.end.error.len()
    }

    /// The same end with bytes of its own: one that waits must not keep alive the block it was read with.
    pub(crate) fn detached(mut self) -> Self {
        self.end.error = Bytes::copy_from_slice(&self.end.error);
        if let JobResult::Inline(result) = &mut self.end.result {
            *result = Bytes::copy_from_slice(result);
        }
        self
    }
}

/// The kinds of rows. The number is the first byte of the stored key, so it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Table {
    /// Counters and other single values of the store.
    Store = 1,
    /// Documents, by name.
    Document = 2,
    /// (shard, key) -> object version and bytes.
    Object = 3,
    /// (shard, key or none, dedup id) -> receipt, body hash, until.
    Dedup = 4,
    /// (shard, until, dedup row) -> nothing: the order in which dedup entries go.
    DedupOrder = 5,
    /// (shard, source) -> term, highest number.
    Source = 6,
    /// (shard, ticket) -> due, accepted at, draft.
    Schedule = 7,
    /// (shard, clock kind, due, ticket) -> nothing.
    ScheduleDue = 8,
    /// (shard, id) -> priority.
    Urgent = 9,
    /// (shard, ticket) -> event id, or the end of a job that never joined its lane.
    ScheduledJob = 10,
    /// (shard, event id) -> changed end of life of a job's end; zero for forgotten.
    JobLife = 11,
    /// (shard, event id, nonce, index) -> kept until, chunk.
    Chunk = 12,
    /// (seat, life, lane) -> lane record.
    Lane = 13,
    /// (seat, life, clock kind, due, lane) -> nothing.
    LaneDue = 14,
    /// (seat, life, block kind, lane) -> nothing.
    LaneBlock = 15,
    /// (seat, life, lane, id) -> nothing.
    Siding = 16,
    /// (seat, life, id) -> lane: which ids retention must keep for sidings.
    SidedId = 17,
    /// (seat, states life, key) -> version, bytes.
    LaneState = 18,
    /// (seat, life, id) -> end other than done.
    Ending = 19,
    /// (seat, id) -> dead letter.
    Dead = 20,
    /// (seat, number) -> emit.
    Outbox = 21,
    /// (seat, number) -> token, op.
    Request = 22,
    /// (seat, token) -> number, applied until.
    RequestToken = 23,
    /// (shard, table, time, rest of a row's key) -> nothing: when the row may go.
    Expiry = 26,
    /// (shard, event id) -> event whose part of the log is given back.
    KeptEvent = 27,
    /// (shard, event id) -> end of a job whose part of the log is given back.
    KeptEnd = 28,
}

impl Table {
    /// Whether this stored key belongs to a table that is read for each event but has rows of few lanes and shards.
    pub(crate) fn is_sparse(key: &[u8]) -> bool {
        const SPARSE: [Table; 5] =
            [Table::ScheduleDue, Table::Lane, Table::LaneDue, Table::Siding, Table::LaneState];
        key.first().is_some_and(|first| SPARSE.iter().any(|table| *table as u8 == *first))
    }
}

/// What the rules read.
///
/// A store that keeps something in files may answer a look-up with an error once, read the file without holding
/// anybody up, and ask the rule again: so a rule reads everything it needs before its first change.
pub(crate) trait View {
    /// Which life of the store this is.
    fn incarnation(&self) -> Incarnation;

    /// A stream's definition.
    fn stream(&self, stream: StreamId) -> Option<&StreamInfo>;
    /// Every stream, by number.
    fn streams(&self) -> Vec<&StreamInfo>;
    /// A shard.
    fn shard(&self, shard: Shard) -> Option<&ShardInfo>;
    /// A seat.
    fn seat(&self, seat: Seat) -> Option<&SeatState>;

    /// The end of a lane.
    fn tail(&self, shard: Shard, key: &Key) -> Result<Option<Tail>>;
    /// Ends of the lanes of a shard after this key, by key.
    fn tails(&self, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Tail)>>;
    /// As [`View::tails`], for a search through all lanes for old ones: lanes that are newer than what
    /// [`View::has_old_tails`] was asked for may be missing.
    fn old_tails(&self, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Tail)>> {
        self.tails(shard, after, limit)
    }
    /// Whether such a search would find every lane whose last event is older than this.
    fn has_old_tails(&self, _shard: Shard, _time: Timestamp) -> bool {
        true
    }
    /// One event; `None` if it never was or is trimmed.
    fn event(&self, shard: Shard, id: EventId) -> Result<Option<Event>>;
    /// What makes an event a job; `None` for a plain event and for one that is not there. Asked for every end of
    /// a job, so a store that can tell without reading the whole event says so here.
    fn job_mark(&self, shard: Shard, id: EventId) -> Result<Option<JobMark>> {
        Ok(self.event(shard, id)?.and_then(|event| event.job))
    }
    /// The first event up to `through` that joined at this time or later and is still there; `None` if all are older.
    fn first_since(&self, shard: Shard, time: Timestamp, through: EventId) -> Result<Option<EventId>>;
    /// The end of a job as it was written; its life may have been shortened since (`Table::JobLife`).
    fn job_end(&self, shard: Shard, id: EventId) -> Result<Option<StoredEnd>>;
    /// Until when the end of a job is kept, as it was written. Asked for many ends at a time, so a store that need not hold
    /// their results for it says so here.
    fn job_end_life(&self, shard: Shard, id: EventId) -> Result<Option<Timestamp>> {
        Ok(self.job_end(shard, id)?.map(|end| end.keep_until))
    }
    /// Ends of jobs of a shard after this id, by id.
    fn job_ends(&self, shard: Shard, after: EventId, limit: usize) -> Result<Vec<StoredEnd>>;

    /// One row.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>>;
    /// Rows whose key begins with `prefix` and is greater than `after`, ascending. Keys come without the table.
    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>>;

    /// The first keys that begin with `prefix`, without the table. Stores on files read no values for them.
    fn first_keys(&self, table: Table, prefix: &[u8], limit: usize) -> Result<Vec<Bytes>> {
        Ok(self.scan(table, prefix, None, limit)?.into_iter().map(|(key, _)| key).collect())
    }

    /// How many rows begin with this prefix.
    fn count(&self, table: Table, prefix: &[u8]) -> Result<u64> {
        let (mut count, mut after) = (0, None);
        loop {
            let rows = self.scan(table, prefix, after.as_deref(), limits::PAGE_MAX)?;
            count += rows.len() as u64;
            match rows.into_iter().next_back() {
                Some((last, _)) => after = Some(last),
                None => return Ok(count),
            }
        }
    }

    /// Every seat of a shard's registered processors.
    fn seats(&self, shard: Shard) -> Vec<(ProcessorId, &SeatState)> {
        let processors = self.stream(shard.stream).map(|stream| &stream.processors[..]).unwrap_or_default();
        let seats =
            processors.iter().map(|processor| (processor.id, Seat { shard, processor: processor.id }));
        seats.filter_map(|(id, seat)| self.seat(seat).map(|state| (id, state))).collect()
    }
}

/// What the rules change.
pub(crate) trait State: View {
    /// Creates or changes a stream's definition.
    fn put_stream(&mut self, stream: StreamInfo);
    /// Removes a stream's definition with its shards, events, tails and job ends. Rows go by [`State::forget`].
    fn remove_stream(&mut self, stream: StreamId);

    /// Creates a shard or changes it as a whole; head and time follow from [`State::push`] without this.
    fn put_shard(&mut self, shard: Shard, info: ShardInfo);

    /// Sets the end of a lane whose last event is no longer there, as an import does.
    fn put_tail(&mut self, shard: Shard, key: &Key, tail: Tail);
    /// Forgets a lane: its next event is its first.
    fn remove_tail(&mut self, shard: Shard, key: &Key);
    /// An event joins its lane: it has the id after the head. Head, time and tail of the lane follow.
    fn push(&mut self, shard: Shard, event: Event);

    /// Creates a seat or replaces it with its window.
    fn put_seat(&mut self, seat: Seat, state: SeatState);
    /// Changes a seat's head and marks ids; the window's floor follows.
    fn advance_seat(&mut self, seat: Seat, head: SeatHead, passed: &laneway_core::Passed);
    /// Removes a seat. Its rows go by [`State::forget`].
    fn remove_seat(&mut self, seat: Seat);

    /// Keeps the end of a job. There is none yet. It is found for as long as its event is there, also when nobody
    /// may read it any more: a job never ends twice.
    fn end_job(&mut self, shard: Shard, end: StoredEnd);
    /// Drops ends whose event is trimmed and whose time was over before this, at most so many. Nothing that anybody
    /// sees changes, so a store whose ends go in another way need not act.
    fn expire_job_ends(&mut self, _shard: Shard, _before: Timestamp) {}

    /// Writes a row.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]);
    /// Writes a row that does not exist. Cheaper than `put` if the row is deleted soon.
    fn put_new(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.put(table, key, value);
    }
    /// Removes a row, if it is there.
    fn delete(&mut self, table: Table, key: &[u8]);
    /// Drops all rows that begin with this prefix. Nobody reads them again: ids and lives are never reused.
    fn forget(&mut self, table: Table, prefix: &[u8]);
}
