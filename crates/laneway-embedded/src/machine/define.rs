//! Define: streams, processors, and what changes a shard as a whole.

use laneway_core::adoption::adopted_head;
use laneway_core::limits::{NUMBER_MAX, STREAMS_MAX, VALUE_BYTES_MAX};
use laneway_core::store::{Define, Defined};
use laneway_core::{
    Bytes, ConflictReason, EventId, Incarnation, Partition, ProcessorId, ProcessorInfo, Refusal, Result,
    Seat, Shard, ShardInfo, StartAt, StoreError, StreamId, StreamInfo, StreamSettings, Term, Timestamp,
    Window, check_name,
};

use super::append::used_up;
use super::codec::keys::{self, Single};
use super::codec::{Numbered, Stored, load};
use super::state::look_at_all;
use super::{Now, SeatHead, SeatState, State, Table, View, gate, import};

/// Version of the rule from keys to partitions that new streams begin with.
const FIRST_LAYOUT: u32 = 1;

/// Tables whose rows begin with a shard.
const SHARD_TABLES: [Table; 13] = [
    Table::Object,
    Table::Dedup,
    Table::DedupOrder,
    Table::Source,
    Table::Schedule,
    Table::ScheduleDue,
    Table::Urgent,
    Table::ScheduledJob,
    Table::JobLife,
    Table::Chunk,
    Table::Expiry,
    Table::KeptEvent,
    Table::KeptEnd,
];

/// Tables whose rows begin with a seat.
const SEAT_TABLES: [Table; 11] = [
    Table::Lane,
    Table::LaneDue,
    Table::LaneBlock,
    Table::Siding,
    Table::SidedId,
    Table::LaneState,
    Table::Ending,
    Table::Dead,
    Table::Outbox,
    Table::Request,
    Table::RequestToken,
];

/// Changes the catalogue or a shard as a whole.
pub(crate) fn define<S: State>(state: &mut S, now: Now, define: Define) -> Result<Defined> {
    let stream = match define {
        Define::Stream { name, expect: None, settings } => Some(create_stream(state, name, settings)?),
        Define::Stream { name, expect: Some(version), settings } => {
            Some(change_stream(state, &name, version, settings)?)
        }
        Define::RemoveStream { stream, expect } => {
            remove_stream(state, stream, expect)?;
            None
        }
        Define::Processor { stream, name, start, settings } => {
            Some(register(state, stream, name, start, settings)?)
        }
        Define::RemoveProcessor { processor } => Some(remove_processor(state, processor)?),
        Define::Seal { shard } => Some(seal(state, shard)?),
        Define::Adopt { shard, stored } => Some(adopt(state, now, shard, stored)?),
        Define::Import(piece) => import::import(state, piece)?,
    };
    Ok(Defined { stream: stream.map(|id| gate::stream(state, id).cloned()).transpose()? })
}

fn named<'a, S: View>(state: &'a S, name: &str) -> Option<&'a StreamInfo> {
    state.streams().into_iter().find(|stream| stream.name == name)
}

fn next_number<S: View>(state: &S, single: Single, max: u32) -> Result<u32> {
    let last = load::<Numbered>(state, Table::Store, &single.key())?.map_or(0, |last| last.0);
    match u32::try_from(last + 1) {
        Ok(next) if next <= max => Ok(next),
        _ => {
            let field =
                if single == Single::Streams { "streams ever created" } else { "processors ever registered" };
            Err(Refusal::new(field, (last + 1).to_string(), format!("at most {max}")).into())
        }
    }
}

fn create_stream<S: State>(state: &mut S, name: String, settings: StreamSettings) -> Result<StreamId> {
    check_name("name of a stream", &name)?;
    settings.check()?;
    if let Some(stream) = named(state, &name) {
        return Err(StoreError::conflict(ConflictReason::Version { actual: Some(stream.version) }));
    }
    let number = next_number(state, Single::Streams, STREAMS_MAX)?;
    let id = StreamId(number);
    let info = ShardInfo {
        incarnation: state.incarnation(),
        adoptions: 0,
        layout: FIRST_LAYOUT,
        sealed: false,
        first_id: EventId(1),
        first_term: Term(0),
        head: EventId(0),
        scheduled: 0,
        trimmed: EventId(0),
        time: Timestamp(0),
        gaps: Vec::new(),
    };
    let partitions = settings.partitions;
    state.put(Table::Store, &Single::Streams.key(), &Numbered(u64::from(number)).to_row());
    state.put_stream(StreamInfo {
        id,
        name,
        version: 1,
        settings,
        layout: FIRST_LAYOUT,
        processors: Vec::new(),
    });
    for shard in shards(id, partitions) {
        state.put_shard(shard, info.clone());
    }
    Ok(id)
}

fn shards(stream: StreamId, partitions: u32) -> impl Iterator<Item = Shard> {
    (0..partitions).map(move |partition| Shard { stream, partition: Partition(partition) })
}

fn change_stream<S: State>(
    state: &mut S,
    name: &str,
    expect: u64,
    settings: StreamSettings,
) -> Result<StreamId> {
    check_name("name of a stream", name)?;
    settings.check()?;
    let stream = expected(named(state, name), expect)?;
    settings.check_change(&stream.settings)?;
    let id = stream.id;
    let changed = StreamInfo { version: stream.version + 1, settings, ..stream.clone() };
    state.put_stream(changed);
    Ok(id)
}

fn expected(stream: Option<&StreamInfo>, expect: u64) -> Result<&StreamInfo> {
    let actual = stream.map(|stream| stream.version);
    match stream {
        Some(stream) if stream.version == expect => Ok(stream),
        _ => Err(StoreError::conflict(ConflictReason::Version { actual })),
    }
}

fn remove_stream<S: State>(state: &mut S, id: StreamId, expect: u64) -> Result<()> {
    let stream = expected(Some(gate::stream(state, id)?), expect)?;
    let processors: Vec<ProcessorId> = stream.processors.iter().map(|processor| processor.id).collect();
    for shard in shards(id, stream.settings.partitions) {
        for processor in &processors {
            state.remove_seat(Seat { shard, processor: *processor });
        }
    }
    for table in SHARD_TABLES.into_iter().chain(SEAT_TABLES) {
        state.forget(table, &keys::stream(id));
    }
    for single in Single::OF_SHARD {
        state.forget(Table::Store, &single.of_stream(id));
    }
    state.remove_stream(id);
    Ok(())
}

fn register<S: State>(
    state: &mut S,
    id: StreamId,
    name: String,
    start: StartAt,
    settings: Bytes,
) -> Result<StreamId> {
    check_name("name of a processor", &name)?;
    Refusal::check_max("bytes of a processor's settings", settings.len(), VALUE_BYTES_MAX)?;
    let stream = gate::stream(state, id)?;
    for other in state.streams() {
        if other.id != id && other.processors.iter().any(|processor| processor.name == name) {
            let limit = format!("unique; it is registered on stream {}", other.name);
            return Err(Refusal::new("name of a processor", name, limit).into());
        }
    }
    if let Some(at) = stream.processors.iter().position(|processor| processor.name == name) {
        if stream.processors[at].settings != settings {
            let mut changed = StreamInfo { version: stream.version + 1, ..stream.clone() };
            changed.processors[at].settings = settings;
            state.put_stream(changed);
        }
        return Ok(id);
    }
    let number = next_number(state, Single::Processors, u32::MAX)?;
    let processor = ProcessorId(number);
    let mut changed = StreamInfo { version: stream.version + 1, ..stream.clone() };
    changed.processors.push(ProcessorInfo { id: processor, name, settings });
    let floors = look_at_all(shards(id, stream.settings.partitions), |shard| {
        Ok((shard, start_floor(state, shard, start)?))
    })?;
    state.put(Table::Store, &Single::Processors.key(), &Numbered(u64::from(number)).to_row());
    state.put_stream(changed);
    for (shard, floor) in floors {
        let head = SeatHead { was_clean: true, clean: true, ..SeatHead::default() };
        state.put_seat(Seat { shard, processor }, SeatState { head, window: Window::at(floor) });
    }
    Ok(id)
}

/// Where a processor begins: everything up to this counts as passed.
pub(super) fn start_floor<S: View>(state: &S, shard: Shard, start: StartAt) -> Result<EventId> {
    let info = gate::shard(state, shard)?;
    let floor = match start {
        StartAt::Beginning => info.trimmed,
        StartAt::End => info.head,
        StartAt::Id(id) => EventId(id.0.saturating_sub(1)),
        StartAt::Time(time) => match state.first_since(shard, time, info.head)? {
            Some(first) => EventId(first.0.saturating_sub(1)),
            None => info.head,
        },
    };
    Ok(floor.clamp(info.trimmed, info.head))
}

fn remove_processor<S: State>(state: &mut S, processor: ProcessorId) -> Result<StreamId> {
    let found = state.streams().into_iter().find(|stream| gate::is_registered(stream, processor));
    let stream = found.ok_or_else(|| gate::missing(format!("processor {processor}")))?;
    let (id, partitions) = (stream.id, stream.settings.partitions);
    let mut changed = StreamInfo { version: stream.version + 1, ..stream.clone() };
    changed.processors.retain(|registered| registered.id != processor);
    state.put_stream(changed);
    for shard in shards(id, partitions) {
        let seat = Seat { shard, processor };
        raise_first_term(state, seat);
        for table in SEAT_TABLES {
            state.forget(table, &keys::seat(seat));
        }
        state.remove_seat(seat);
    }
    Ok(id)
}

/// A processor that comes back under the same name gets higher terms, also when the clock went back: the fence
/// that handlers show to others must only grow.
fn raise_first_term<S: State>(state: &mut S, seat: Seat) {
    let term = state.seat(seat).map_or(Term(0), |stored| stored.head.fence.term);
    if let Some(info) = state.shard(seat.shard)
        && term >= info.first_term
        && term.0 > 0
    {
        let raised = ShardInfo { first_term: Term(term.0 + 1), ..info.clone() };
        state.put_shard(seat.shard, raised);
    }
}

/// The sealed shard takes nothing more, and every append must be routed by the new layout.
fn seal<S: State>(state: &mut S, shard: Shard) -> Result<StreamId> {
    let stream = gate::stream(state, shard.stream)?;
    let info = gate::shard(state, shard)?;
    if info.sealed {
        return Ok(stream.id);
    }
    let layout = stream.layout + 1;
    let (id, partitions) = (stream.id, stream.settings.partitions);
    let changed = StreamInfo { version: stream.version + 1, layout, ..stream.clone() };
    state.put_stream(changed);
    for other in shards(id, partitions) {
        if let Some(info) = state.shard(other).cloned() {
            let sealed = info.sealed || other == shard;
            state.put_shard(other, ShardInfo { layout, sealed, ..info });
        }
    }
    Ok(id)
}

fn adopt<S: State>(state: &mut S, now: Now, shard: Shard, stored: Incarnation) -> Result<StreamId> {
    let info = gate::shard(state, shard)?;
    gate::imported(shard, info)?;
    let current = state.incarnation();
    if info.incarnation == current {
        return Ok(shard.stream);
    }
    if info.incarnation != stored {
        return Err(StoreError::Adopt { shard, stored: info.incarnation.0, current });
    }
    let (first, head) = (info.head.next(), adopted_head(info.head, now.calendar));
    if head.0 > NUMBER_MAX {
        return Err(used_up(shard));
    }
    let mut gaps = info.gaps.clone();
    match gaps.last_mut() {
        Some(last) if last.1.next() == first => last.1 = head,
        _ => gaps.push((first, head)),
    }
    let adopted =
        ShardInfo { incarnation: current, adoptions: info.adoptions + 1, head, gaps, ..info.clone() };
    state.put_shard(shard, adopted);
    Ok(shard.stream)
}
