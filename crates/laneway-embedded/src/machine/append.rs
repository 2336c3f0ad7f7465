//! Append: the checks in the order of the contract, then all changes at once.
//!
//! Everything is decided on a plan that only reads; a conflict anywhere drops the plan, so nothing is ever
//! undone. A plain draft reads nothing but the tail of its lane.

use laneway_core::adoption::given_between;
use laneway_core::limits::{HOLD_MAX, NUMBER_MAX, PAGE_MAX};
use laneway_core::store::{Append, Appended, ObjectWrite, Origin, Receipt, Source};
use laneway_core::{
    Conflict, ConflictReason, Delay, DelayMode, Draft, Durability, Event, EventId, FullReason, JobId,
    JobNumber, Key, Mode, Refusal, Result, Seat, Shard, ShardInfo, StartAfter, StoreError, StreamInfo,
    Timestamp,
};

use super::codec::{Seen, Stored, Value, Waiting, keys, load};
use super::dedup::{Entries, Found};
use super::joins::{self, Joins, Verdict};
use super::{Now, State, Table, View, gate, schedule};

/// Appends events to one shard.
pub(crate) fn append<S: State>(
    state: &mut S,
    now: Now,
    append: Append,
    durability: Durability,
) -> Result<Appended> {
    append.check()?;
    let shard = append.shard;
    let (receipts, effects) = plan(state, now, append)?;
    let object_version = effects.object.as_ref().map(|(_, value)| value.version);
    let dedup_evicted = effects.dedup.evicted;
    effects.apply(state, shard);
    Ok(Appended { receipts, durability, object_version, dedup_evicted })
}

fn plan<S: View>(state: &S, now: Now, append: Append) -> Result<(Vec<Receipt>, Effects)> {
    let Append { shard, incarnation, layout, origin, drafts, object } = append;
    let stream = gate::stream(state, shard.stream)?;
    let info = gate::shard(state, shard)?;
    gate::learned(state, shard, info, incarnation)?;
    gate::unsealed(stream, shard, info)?;
    if layout != info.layout {
        return Err(StoreError::Moved { shard, layout: stream.layout });
    }
    let from_outbox = matches!(&origin, Some(Origin { source: Source::Outbox { .. }, .. }));
    let mut plan = Plan {
        state,
        now,
        shard,
        stream,
        joins: Joins::new(shard, info, stream.settings.mode, now, drafts.len()),
        scheduled: info.scheduled,
        waiting: Vec::new(),
        dedup: Entries::default(),
        source: origin.map(|origin| Numbering::begin(state, shard, &origin)).transpose()?,
        object,
        object_next: None,
    };
    let mut receipts = Vec::with_capacity(drafts.len());
    for (index, draft) in drafts.into_iter().enumerate() {
        let receipt = plan.place(index, draft)?;
        receipts.push(receipt);
    }
    if !from_outbox {
        check_pending(state, stream, shard, info, plan.joins.events.len() as u64)?;
    }
    Ok((receipts, plan.finish(info)?))
}

/// One append while it is being decided. Only reads.
struct Plan<'a, S> {
    state: &'a S,
    now: Now,
    shard: Shard,
    stream: &'a StreamInfo,
    joins: Joins,
    scheduled: u64,
    waiting: Vec<Waiting>,
    dedup: Entries,
    source: Option<Numbering>,
    object: Option<ObjectWrite>,
    /// The object as it will be, once a draft is no duplicate: a repeated call does not change it again.
    object_next: Option<(Vec<u8>, Value)>,
}

impl<S: View> Plan<'_, S> {
    fn place(&mut self, index: usize, draft: Draft) -> Result<Receipt> {
        self.check_draft(&draft)?;
        if let (Some(source), Some(number)) = (&mut self.source, draft.origin_seq)
            && !source.is_new(number)
        {
            return Ok(Receipt::Duplicate { first: None });
        }
        let dedup = match &draft.dedup {
            None => None,
            Some(dedup) => {
                let place = (index, draft.key.as_ref());
                match self.dedup.find(self.state, self.now, self.shard, place, dedup)? {
                    Found::Before(first) => return Ok(Receipt::Duplicate { first: Some(Box::new(first)) }),
                    Found::New(row) => Some((row, dedup.clone())),
                }
            }
        };
        if let (Some(expected), Some(key)) = (draft.expect_prev, &draft.key) {
            let actual = self.joins.tail(self.state, key)?.map(|tail| tail.id);
            if actual != expected {
                return Err(conflict(index, ConflictReason::Prev { actual }));
            }
        }
        self.check_object(index, draft.key.as_ref())?;
        let (receipt, from) = match draft.delay {
            Some(Delay { until, mode: DelayMode::Join }) => self.wait(draft, until),
            _ => (self.join(draft)?, self.now.wall),
        };
        if let Some((row, dedup)) = dedup
            && !matches!(receipt, Receipt::Stale { .. })
        {
            self.dedup.insert(row, &dedup, &receipt, from);
        }
        Ok(receipt)
    }

    fn check_draft(&self, draft: &Draft) -> Result<(), Refusal> {
        if self.stream.settings.mode == Mode::Latest && draft.key.is_none() {
            return Err(Refusal::new("key", "absent", "set in a stream of mode latest"));
        }
        if let Some(job) = draft.job
            && !gate::is_registered(self.stream, job.responder)
        {
            let value = format!("processor {}", job.responder);
            return Err(Refusal::new("responder", value, "a processor of this stream"));
        }
        if let Some(Delay { until: StartAfter::At(time), mode: DelayMode::Hold }) = draft.delay
            && time > self.now.wall.after(HOLD_MAX)
        {
            let limit = format!("at most {HOLD_MAX:?} from now with delay_mode hold");
            return Err(Refusal::new("run_at", time.0.to_string(), limit));
        }
        Ok(())
    }

    fn check_object(&mut self, index: usize, key: Option<&Key>) -> Result<()> {
        let (Some(object), Some(key), None) = (&mut self.object, key, &self.object_next) else {
            return Ok(());
        };
        let row = keys::object(self.shard, key);
        let actual = load::<Value>(self.state, Table::Object, &row)?.map_or(0, |value| value.version);
        if object.expect.is_some_and(|expected| expected != actual) {
            return Err(conflict(index, ConflictReason::ObjectVersion { actual }));
        }
        self.object_next = Some((row, Value { version: actual + 1, bytes: object.value.take() }));
        Ok(())
    }

    /// The draft waits outside its lane. Also answers from when its dedup window counts.
    fn wait(&mut self, draft: Draft, until: StartAfter) -> (Receipt, Timestamp) {
        self.scheduled += 1;
        let ticket = self.scheduled;
        let due = joins::due(until, self.now);
        let due_at = match until {
            StartAfter::Delay(length) => self.now.wall.after(length),
            StartAfter::At(time) => time,
        };
        let accepted_at = self.now.calendar;
        let job = draft.job.map(|_| JobId::new(accepted_at, self.shard, JobNumber::Schedule(ticket)));
        self.waiting.push(Waiting { due, accepted_at, draft });
        (Receipt::Scheduled { ticket, due, due_at, job }, due_at.max(self.now.wall))
    }

    fn join(&mut self, draft: Draft) -> Result<Receipt> {
        if self.joins.head().0 >= NUMBER_MAX {
            return Err(used_up(self.shard));
        }
        match self.joins.offer(self.state, draft, None)? {
            Verdict::Stale { newest, generation } => Ok(Receipt::Stale { newest, generation }),
            Verdict::Joined => {
                let event = self.joins.events.last().expect("the event that just joined");
                let job = event.job.map(|job| job.id);
                Ok(Receipt::New { id: event.id, prev: event.prev, seq: event.seq, job })
            }
        }
    }

    fn finish(mut self, info: &ShardInfo) -> Result<Effects> {
        self.dedup.make_room(self.state, self.now, self.shard, self.stream.settings.dedup_max)?;
        let accepted = !self.joins.events.is_empty() || !self.waiting.is_empty();
        let info =
            (!self.waiting.is_empty()).then(|| ShardInfo { scheduled: self.scheduled, ..info.clone() });
        Ok(Effects {
            events: self.joins.events,
            info,
            waiting: self.waiting,
            dedup: self.dedup,
            source: self.source.and_then(Numbering::changed),
            // What is stale changes nothing, so neither does what came with it.
            object: self.object_next.filter(|_| accepted),
        })
    }
}

/// Everything one append changes.
struct Effects {
    /// The shard, when its schedule counter moved.
    info: Option<ShardInfo>,
    events: Vec<Event>,
    waiting: Vec<Waiting>,
    dedup: Entries,
    source: Option<(Vec<u8>, Seen)>,
    object: Option<(Vec<u8>, Value)>,
}

impl Effects {
    fn apply<S: State>(self, state: &mut S, shard: Shard) {
        if let Some(info) = self.info {
            let first = info.scheduled - self.waiting.len() as u64;
            for (ticket, waiting) in (first + 1..).zip(&self.waiting) {
                schedule::enter(state, shard, ticket, waiting);
            }
            state.put_shard(shard, info);
        }
        join_all(state, shard, self.events);
        self.dedup.apply(state, shard);
        if let Some((row, seen)) = self.source {
            state.put(Table::Source, &row, &seen.to_row());
        }
        if let Some((row, value)) = self.object {
            state.put(Table::Object, &row, &value.to_row());
        }
    }
}

/// Pushes events, and enters the urgent ones in their index.
pub(super) fn join_all<S: State>(state: &mut S, shard: Shard, events: Vec<Event>) {
    for event in events {
        if event.priority > 0 {
            state.put_new(Table::Urgent, &keys::shard_number(shard, event.id.0), &[event.priority]);
        }
        state.push(shard, event);
    }
}

/// The numbers of one origin during a call.
struct Numbering {
    row: Vec<u8>,
    stored: Option<Seen>,
    next: Seen,
}

impl Numbering {
    fn begin<S: View>(state: &S, shard: Shard, origin: &Origin) -> Result<Self> {
        let row = keys::source(shard, &origin.source);
        let stored = load::<Seen>(state, Table::Source, &row)?;
        let seen = stored.unwrap_or(Seen { term: origin.term, number: 0 });
        if origin.term < seen.term {
            return Err(StoreError::conflict(ConflictReason::OriginTerm { actual: seen.term }));
        }
        Ok(Self { row, stored, next: Seen { term: origin.term, number: seen.number } })
    }

    fn is_new(&mut self, number: u64) -> bool {
        let is_new = number > self.next.number;
        self.next.number = self.next.number.max(number);
        is_new
    }

    fn changed(self) -> Option<(Vec<u8>, Seen)> {
        (self.stored != Some(self.next)).then_some((self.row, self.next))
    }
}

/// A stream's own bound, cut into equal parts. What waits is what the slowest processor has not ended.
fn check_pending<S: View>(
    state: &S,
    stream: &StreamInfo,
    shard: Shard,
    info: &ShardInfo,
    joining: u64,
) -> Result<()> {
    let Some(limit) = stream.settings.max_pending_of_partition() else { return Ok(()) };
    if joining == 0 {
        return Ok(());
    }
    if joining > limit {
        // No wait helps.
        let most =
            format!("at most {limit}, what each partition may have waiting by the stream's max_pending");
        return Err(Refusal::new("events of the call in one partition", joining.to_string(), most).into());
    }
    let seats = state.seats(shard);
    let mut pending = if seats.is_empty() { given_between(&info.gaps, info.trimmed, info.head) } else { 0 };
    for (processor, seat) in seats {
        let floor = seat.window.floor().max(info.trimmed);
        let above = given_between(&info.gaps, floor, info.head);
        let room = limit.saturating_sub(above + joining);
        let seat = (Seat { shard, processor }, seat.head.incarnation);
        pending = pending.max(above + sided(state, seat, info, floor, room)?);
    }
    if pending + joining > limit {
        return Err(StoreError::Full(FullReason::Pending { pending, limit }));
    }
    Ok(())
}

/// Events up to the floor that wait in sidings. Counted only when there may be more of them than there is room for: none
/// is older than the first, so that there cannot be more than ids since.
fn sided<S: View>(
    state: &S,
    (seat, life): (Seat, u32),
    info: &ShardInfo,
    floor: EventId,
    room: u64,
) -> Result<u64> {
    let prefix = keys::life(seat, life);
    let rows = state.scan(Table::SidedId, &prefix, None, 1)?;
    let Some((first, _)) = rows.first() else { return Ok(0) };
    let first = keys::last_number(first)?;
    let at_most = given_between(&info.gaps, EventId(first.saturating_sub(1)), floor);
    if at_most <= room {
        return Ok(at_most);
    }
    let limit = usize::try_from(room + 1).unwrap_or(usize::MAX).min(PAGE_MAX);
    let mut count = 0;
    for (row, _) in state.scan(Table::SidedId, &prefix, None, limit)? {
        if EventId(keys::last_number(&row)?) > floor {
            break;
        }
        count += 1;
    }
    Ok(count)
}

pub(super) fn used_up(shard: Shard) -> StoreError {
    let reason = format!("shard {shard} has given all {NUMBER_MAX} ids it can: use another stream");
    StoreError::Full(FullReason::Store { reason })
}

fn conflict(index: usize, reason: ConflictReason) -> StoreError {
    StoreError::Conflict(Conflict { index: Some(index), reason })
}
