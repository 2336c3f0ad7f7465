//! Query: lists of one shard, and the catalogue.

use super::append::Source;
use super::commit::{DeadLetter, Emit, Ending, JobEnd};
use super::copied::{DedupName, DedupRow, EndRow, ObjectRow, SourceRow, StoreView, TicketRow, TokenRow};
use super::lanes::Versioned;
use super::request::RequestOp;
use super::seize::Progress;
use crate::clock::Timestamp;
use crate::event::{Draft, Due, Event};
use crate::ids::{EventId, ProcessorId, Seat, Seq, Shard, TokenId};
use crate::key::Key;
use crate::lane::LaneName;
use crate::stream::{ShardInfo, StreamInfo};

/// One list to read. `after` is a cursor: begin after this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Every stream with its processors.
    Streams,
    /// The shard itself and its seats.
    Seats(Shard),
    /// One lane as producers see it.
    Lane(Shard, Key),
    /// Lanes as producers see them, by key: for copies and checks.
    Tails(Shard, Option<Key>, usize),
    /// Dead letters of a seat, by id.
    Dead(Seat, EventId, usize),
    /// Ends other than `done` of a seat, by id.
    Endings(Seat, EventId, usize),
    /// Requests of a seat that had no effect yet, by number.
    Requests(Seat, u64, usize),
    /// Emits of a seat that are not forwarded yet, by number.
    Outbox(Seat, u64, usize),
    /// Lane states of a seat, by key.
    States(Seat, Option<Key>, usize),
    /// Ended jobs of a shard that can be read, by event id. A page may be short, or empty, and still have a next one.
    Ended(Shard, EventId, usize),
    /// Drafts that are not due, by number.
    Scheduled(Shard, u64, usize),
    /// Events with a priority above 0, by id (contract 3.6).
    Urgent(Shard, EventId, usize),
    /// How much of everything there is.
    Counts(Shard),
    /// Clocks and counters of the store itself. This and all below are for copies and checks; their lists end
    /// with an empty page, because a page may be shorter than asked for.
    Store,
    /// Events of a shard as they are stored, by id: in latest streams also those that are not their lane's newest.
    Events(Shard, EventId, usize),
    /// Objects of a shard, by key: also removed ones, which keep their version.
    Objects(Shard, Option<Key>, usize),
    /// Dedup ids remembered by a shard, in an order of the store's own.
    Dedup(Shard, Option<DedupName>, usize),
    /// Numbered sources known to a shard, in an order of the store's own.
    Sources(Shard, Option<Source>, usize),
    /// What became of jobs that were scheduled and have left the schedule, by ticket.
    Tickets(Shard, u64, usize),
    /// Ended jobs of a shard with the end of their life, by event id. One past its life is listed without its result
    /// for as long as its event is there: whoever has the event must know that its job has ended.
    Ends(Shard, EventId, usize),
    /// Ids in the sidings of a seat, by id.
    Sided(Seat, EventId, usize),
    /// Request tokens that a seat remembers, by token: also how somebody looks up what came of a request.
    Tokens(Seat, Option<TokenId>, usize),
}

/// Ended jobs of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedPage {
    /// How they ended, by event id.
    pub ends: Vec<JobEnd>,
    /// Behind which event to go on; `None` at the end of the list.
    pub next: Option<EventId>,
}

/// The answer, of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// To [`Query::Streams`].
    Streams(Vec<StreamInfo>),
    /// To [`Query::Seats`].
    Seats(ShardInfo, Vec<SeatView>),
    /// To [`Query::Lane`].
    Lane(Option<TailView>),
    /// To [`Query::Tails`].
    Tails(Vec<LaneTail>),
    /// To [`Query::Dead`].
    Dead(Vec<DeadLetter>),
    /// To [`Query::Endings`].
    Endings(Vec<Ending>),
    /// To [`Query::Requests`].
    Requests(Vec<RequestRow>),
    /// To [`Query::Outbox`].
    Outbox(Vec<OutboxRow>),
    /// To [`Query::States`].
    States(Vec<(Key, Versioned)>),
    /// To [`Query::Ended`].
    Ended(EndedPage),
    /// To [`Query::Scheduled`].
    Scheduled(Vec<ScheduledRow>),
    /// To [`Query::Urgent`].
    Urgent(Vec<(EventId, u8)>),
    /// To [`Query::Counts`].
    Counts(Counts),
    /// To [`Query::Store`].
    Store(StoreView),
    /// To [`Query::Events`].
    Events(Vec<Event>),
    /// To [`Query::Objects`].
    Objects(Vec<ObjectRow>),
    /// To [`Query::Dedup`].
    Dedup(Vec<DedupRow>),
    /// To [`Query::Sources`].
    Sources(Vec<SourceRow>),
    /// To [`Query::Tickets`].
    Tickets(Vec<TicketRow>),
    /// To [`Query::Ends`].
    Ends(Vec<EndRow>),
    /// To [`Query::Sided`].
    Sided(Vec<(EventId, LaneName)>),
    /// To [`Query::Tokens`].
    Tokens(Vec<TokenRow>),
}

/// A seat and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatView {
    /// Which processor.
    pub processor: ProcessorId,
    /// Where it stands; a term of 0 means that nobody ever owned it.
    pub progress: Progress,
    /// Highest request number.
    pub request_no: u64,
}

/// The end of a lane as producers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailView {
    /// Its last event.
    pub id: EventId,
    /// Its number in the lane.
    pub seq: Seq,
    /// Newest accepted generation (latest mode).
    pub generation: Option<u64>,
    /// Newest accepted incarnation (latest mode).
    pub incarnation: u64,
    /// The newest accepted was a delete (latest mode).
    pub deleted: bool,
    /// The lane's object.
    pub object: Option<Versioned>,
}

/// A lane and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneTail {
    /// The lane.
    pub key: Key,
    /// Its end.
    pub tail: TailView,
}

/// A request as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Its number.
    pub number: u64,
    /// Its token.
    pub token: TokenId,
    /// The wish.
    pub op: RequestOp,
}

/// An emit on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// Its number.
    pub number: u64,
    /// Which life of the processor emitted it: part of the origin it is forwarded under, also after a reset.
    pub incarnation: u32,
    /// How often the shard had been adopted when it was emitted: part of the origin too. What survived a failover keeps
    /// its name, so that its target knows what it has.
    pub adoptions: u32,
    /// What and where to.
    pub emit: Emit,
}

/// A draft that is not due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledRow {
    /// Its number.
    pub ticket: u64,
    /// When it joins its lane.
    pub due: Due,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The event to be.
    pub draft: Draft,
}

/// How much of everything a shard has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Drafts that are not due.
    pub scheduled: u64,
    /// Per processor: lane records, dead letters, emits on their way, requests without effect.
    pub seats: Vec<(ProcessorId, [u64; 4])>,
    /// Times this shard was adopted: each one is an alert.
    pub adoptions: u32,
    /// Events that went by age without any processor.
    pub expired: u64,
    /// Dedup ids that made room for others before their time was over: a repeat of these is another event.
    pub dedup_evicted: u64,
}
