//! Import: pieces of another store, taken over as they were, ids and all.
//!
//! A shard that is being imported has an incarnation that no store has, so every gate that asks for the
//! incarnation keeps others away without a check of its own; `Finish` gives it the one it works under. Every piece
//! may come twice: what is there already stays.

use laneway_core::adoption::next_given;
use laneway_core::limits::STREAMS_MAX;
use laneway_core::store::{
    DedupRow, EndRow, IMPORTING, Import, ObjectRow, OutboxRow, RequestRow, Rows, ScheduledRow, SeatView,
    Ticketed,
};
use laneway_core::{
    Bytes, Event, EventId, Fence, LaneRecord, Nonce, Partition, ProcessorId, Refusal, Result, Seat, Shard,
    ShardInfo, StoreError, StreamId, StreamInfo, Term, Timestamp, Window,
};

use super::append::join_all;
use super::codec::keys::{self, Single};
use super::codec::{
    Filed, Numbered, Outgoing, Remembered, ScheduledJob, Seen, Stored, Token, Value, Waiting, load,
};
use super::jobs::put_ticket;
use super::{
    SeatHead, SeatState, State, StoredEnd, Table, Tail, View, dedup, expiry, gate, lane_changes, schedule,
};

/// Takes over one piece.
pub(super) fn import<S: State>(state: &mut S, import: Import) -> Result<Option<StreamId>> {
    match import {
        Import::Stream(stream) => import_stream(state, stream).map(Some),
        Import::Shard(shard, rows) => {
            let info = importing(state, shard)?.clone();
            import_shard(state, shard, info, rows)?;
            Ok(Some(shard.stream))
        }
        Import::Seat(seat, rows) => {
            importing(state, seat.shard)?;
            import_seat(state, seat, rows)?;
            Ok(Some(seat.shard.stream))
        }
        Import::Lanes(seat, lanes) => {
            importing(state, seat.shard)?;
            import_lanes(state, seat, lanes)?;
            Ok(Some(seat.shard.stream))
        }
        Import::Numbers(streams, processors) => {
            raise(state, Single::Streams, streams.0)?;
            raise(state, Single::Processors, processors.0)?;
            Ok(None)
        }
        Import::Finish(shard, info) => finish(state, shard, info).map(Some),
    }
}

fn importing<S: View>(state: &S, shard: Shard) -> Result<&ShardInfo> {
    let info = gate::shard(state, shard)?;
    if info.incarnation == IMPORTING {
        return Ok(info);
    }
    Err(refusal("shard", shard.to_string(), "one whose import has begun and has not finished"))
}

fn refusal(field: &'static str, value: String, limit: impl Into<String>) -> StoreError {
    Refusal::new(field, value, limit).into()
}

fn last_number<S: View>(state: &S, single: Single) -> Result<u64> {
    Ok(load::<Numbered>(state, Table::Store, &single.key())?.map_or(0, |last| last.0))
}

fn raise<S: State>(state: &mut S, single: Single, number: u32) -> Result<()> {
    if last_number(state, single)? < u64::from(number) {
        state.put(Table::Store, &single.key(), &Numbered(u64::from(number)).to_row());
    }
    Ok(())
}

fn import_stream<S: State>(state: &mut S, stream: StreamInfo) -> Result<StreamId> {
    let id = stream.id;
    let shards =
        || (0..stream.settings.partitions).map(|part| Shard { stream: id, partition: Partition(part) });
    if state.stream(id) == Some(&stream) && shards().all(|shard| importing(state, shard).is_ok()) {
        return Ok(id);
    }
    stream.settings.check_form()?;
    check_new(state, &stream)?;
    let processors: Vec<ProcessorId> = stream.processors.iter().map(|processor| processor.id).collect();
    raise(state, Single::Streams, id.0)?;
    for processor in &processors {
        raise(state, Single::Processors, processor.0)?;
    }
    for shard in shards() {
        let (none, zero) = (EventId(0), Timestamp(0));
        let info = ShardInfo {
            incarnation: IMPORTING,
            adoptions: 0,
            layout: stream.layout,
            sealed: false,
            first_id: EventId(1),
            first_term: Term(0),
            head: none,
            scheduled: 0,
            trimmed: none,
            time: zero,
            gaps: Vec::new(),
        };
        state.put_shard(shard, info);
        for processor in &processors {
            let head = SeatHead { was_clean: true, clean: true, ..SeatHead::default() };
            let seat = SeatState { head, window: Window::at(none) };
            state.put_seat(Seat { shard, processor: *processor }, seat);
        }
    }
    state.put_stream(stream);
    Ok(id)
}

/// Numbers that were given before may be named by job ids and sources, so they never come again.
fn check_new<S: View>(state: &S, stream: &StreamInfo) -> Result<()> {
    let last = last_number(state, Single::Streams)?;
    if u64::from(stream.id.0) <= last || stream.id.0 > STREAMS_MAX {
        let limit = format!("above {last}, the last one given here, and at most {STREAMS_MAX}");
        return Err(refusal("number of the stream", stream.id.to_string(), limit));
    }
    let last = last_number(state, Single::Processors)?;
    for processor in &stream.processors {
        if u64::from(processor.id.0) <= last {
            let limit = format!("above {last}, the last one given here");
            return Err(refusal("number of the processor", processor.id.to_string(), limit));
        }
    }
    for other in state.streams() {
        let shares = |name: &str| other.processors.iter().any(|processor| processor.name == name);
        if other.name == stream.name {
            return Err(refusal("name of the stream", stream.name.clone(), "unique; it is there already"));
        }
        if let Some(processor) = stream.processors.iter().find(|processor| shares(&processor.name)) {
            let limit = format!("unique; it is registered on stream {}", other.name);
            return Err(refusal("name of the processor", processor.name.clone(), limit));
        }
    }
    Ok(())
}

fn import_shard<S: State>(state: &mut S, shard: Shard, info: ShardInfo, rows: Rows) -> Result<()> {
    match rows {
        Rows::Seats(from, seats) => begin(state, shard, &info, from, seats)?,
        Rows::Events(events) => import_events(state, shard, info, events)?,
        Rows::Tails(tails) => {
            for found in tails.into_iter().filter(|found| found.tail.id <= info.trimmed) {
                let view = found.tail;
                let (id, seq, generation) = (view.id, view.seq, view.generation);
                let tail = Tail { id, seq, generation, incarnation: view.incarnation, deleted: view.deleted };
                state.put_tail(shard, &found.key, tail);
            }
        }
        Rows::Objects(objects) => {
            for ObjectRow { key, version, value } in objects {
                let row = Value { version, bytes: value }.to_row();
                state.put(Table::Object, &keys::object(shard, &key), &row);
            }
        }
        Rows::Dedup(entries) => import_dedup(state, shard, entries)?,
        Rows::Sources(sources) => {
            for found in sources {
                let seen = Seen { term: found.term, number: found.number };
                state.put(Table::Source, &keys::source(shard, &found.source), &seen.to_row());
            }
        }
        Rows::Scheduled(drafts) => {
            for ScheduledRow { ticket, due, accepted_at, draft } in drafts {
                // The same piece may be imported twice.
                if schedule::find(state, shard, ticket)?.is_none() {
                    schedule::enter(state, shard, ticket, &Waiting { due, accepted_at, draft });
                }
            }
        }
        Rows::Tickets(tickets) => {
            for found in tickets {
                let job = match found.became {
                    Ticketed::Joined(id) => ScheduledJob::Joined(id),
                    Ticketed::Ended(row) => {
                        ScheduledJob::Ended { end: stored(*row), accepted_at: found.accepted_at }
                    }
                };
                put_ticket(state, shard, found.ticket, &job);
            }
        }
        Rows::Ends(ends) => {
            for row in ends {
                if state.job_end(shard, row.end.id)?.is_none() {
                    state.end_job(shard, stored(row));
                }
            }
        }
        Rows::Counts(counts) => {
            let row = Numbered(counts.expired).to_row();
            state.put(Table::Store, &Single::Expired.of(shard), &row);
            let row = Numbered(counts.dedup_evicted).to_row();
            state.put(Table::Store, &Single::DedupEvicted.of(shard), &row);
        }
        _ => return Err(refusal("rows", "of another kind".to_owned(), "rows of a shard")),
    }
    Ok(())
}

fn stored(row: EndRow) -> StoredEnd {
    StoredEnd { end: row.end, keep_until: row.keep_until }
}

/// The shard as it was, but without events, and its seats without owners: whoever takes one gets a term above all
/// that were given.
fn begin<S: State>(
    state: &mut S,
    shard: Shard,
    before: &ShardInfo,
    from: ShardInfo,
    seats: Vec<SeatView>,
) -> Result<()> {
    if before.head.0 > 0 {
        // A repeat; nothing is changed under events that came meanwhile.
        return Ok(());
    }
    for view in &seats {
        gate::seat(state, Seat { shard, processor: view.processor })?;
        let floor = view.progress.window.floor();
        if floor > from.head {
            return Err(refusal("floor", floor.to_string(), format!("at most the last id {}", from.head)));
        }
    }
    let terms = seats.iter().map(|view| view.progress.fence.term.0 + 1);
    let first_term = Term(terms.max().unwrap_or(0).max(from.first_term.0));
    let info = ShardInfo { incarnation: IMPORTING, head: from.trimmed, first_term, ..from };
    state.put_shard(shard, info);
    for view in seats {
        let (seat, progress) = (Seat { shard, processor: view.processor }, view.progress);
        let fence = Fence { term: Term(0), nonce: Nonce(0), ..progress.fence };
        let head = SeatHead {
            fence,
            node: Bytes::new(),
            was_clean: progress.clean,
            clean: progress.clean,
            last_commit: None,
            request_no: view.request_no,
            requests_applied: progress.requests_applied,
            emitted: progress.emitted,
            forwarded: progress.forwarded,
            status: progress.status,
            note: progress.note,
            incarnation: progress.incarnation,
            states_life: 0,
        };
        state.put_seat(seat, SeatState { head, window: progress.window });
    }
    Ok(())
}

/// Events follow each other; only ids that were never given may be left out.
fn import_events<S: State>(state: &mut S, shard: Shard, info: ShardInfo, events: Vec<Event>) -> Result<()> {
    let events: Vec<Event> = events.into_iter().filter(|event| event.id > info.head).collect();
    let mut last = info.head;
    for event in &events {
        let expected = next_given(&info.gaps, last);
        if event.id != expected {
            return Err(refusal("id of an event", event.id.to_string(), format!("{expected}, the next one")));
        }
        last = event.id;
    }
    for event in events {
        let head = gate::shard(state, shard)?.head;
        if event.id != head.next() {
            let jumped = ShardInfo { head: EventId(event.id.0 - 1), ..gate::shard(state, shard)?.clone() };
            state.put_shard(shard, jumped);
        }
        join_all(state, shard, vec![event]);
    }
    Ok(())
}

fn import_dedup<S: State>(state: &mut S, shard: Shard, entries: Vec<DedupRow>) -> Result<()> {
    for found in entries {
        let row = keys::dedup(shard, found.name.key.as_ref(), &found.name.id);
        let DedupRow { receipt, body, until, event, .. } = found;
        dedup::remember(state, shard, &row, &Remembered { receipt, body, until, event })?;
    }
    Ok(())
}

fn import_seat<S: State>(state: &mut S, seat: Seat, rows: Rows) -> Result<()> {
    let (life, states_life) = {
        let head = &gate::seat(state, seat)?.head;
        (head.incarnation, head.states_life)
    };
    match rows {
        Rows::Sided(sided) => {
            for (id, lane) in sided {
                state.put(Table::Siding, &keys::siding(seat, life, &lane, id), &[]);
                state.put(Table::SidedId, &keys::life_number(seat, life, id), &lane.to_row());
            }
        }
        Rows::States(states) => {
            for (key, value) in states {
                let row = Value { version: value.version, bytes: Some(value.bytes) }.to_row();
                state.put(Table::LaneState, &keys::state(seat, states_life, &key), &row);
            }
        }
        Rows::Endings(endings) => {
            for ending in endings {
                state.put(Table::Ending, &keys::life_number(seat, life, ending.id), &ending.to_row());
            }
        }
        Rows::Dead(dead) => {
            for letter in dead {
                let row = keys::seat_number(seat, letter.event.id.0);
                state.put(Table::Dead, &row, &letter.to_row());
                expiry::note(state, Table::Dead, &row, letter.at);
            }
        }
        Rows::Outbox(emits) => {
            for OutboxRow { number, incarnation, adoptions, emit } in emits {
                let row = Outgoing { incarnation, adoptions, emit }.to_row();
                state.put(Table::Outbox, &keys::seat_number(seat, number), &row);
            }
        }
        Rows::Requests(requests) => {
            for RequestRow { number, token, op } in requests {
                state.put(Table::Request, &keys::seat_number(seat, number), &Filed { token, op }.to_row());
            }
        }
        Rows::Tokens(tokens) => {
            for found in tokens {
                let token = Token { number: found.number, until: found.until, answer: found.answer };
                let row = keys::token(seat, found.token);
                state.put(Table::RequestToken, &row, &token.to_row());
                if let Some(until) = found.until {
                    expiry::note(state, Table::RequestToken, &row, until);
                }
            }
        }
        _ => return Err(refusal("rows", "of another kind".to_owned(), "rows of a seat")),
    }
    Ok(())
}

fn import_lanes<S: State>(state: &mut S, seat: Seat, lanes: Vec<LaneRecord>) -> Result<()> {
    let life = gate::seat(state, seat)?.head.incarnation;
    for record in lanes {
        let checked = lane_changes::imported(state, seat, life, record)?;
        lane_changes::apply(state, seat, life, &checked);
    }
    Ok(())
}

/// Opens the shard, once its events reach its head.
fn finish<S: State>(state: &mut S, shard: Shard, info: ShardInfo) -> Result<StreamId> {
    let stored = gate::shard(state, shard)?;
    if stored.incarnation != IMPORTING && stored.head == info.head {
        return Ok(shard.stream);
    }
    let stored = importing(state, shard)?;
    let next = next_given(&stored.gaps, stored.head);
    if next <= info.head || stored.head > info.head || info.incarnation == IMPORTING {
        let limit = format!("the last id of the events imported; {next} comes next");
        return Err(refusal("head", info.head.to_string(), limit));
    }
    let finished = ShardInfo {
        incarnation: info.incarnation,
        head: info.head,
        time: stored.time.max(info.time),
        sealed: info.sealed,
        ..stored.clone()
    };
    state.put_shard(shard, finished);
    Ok(shard.stream)
}
