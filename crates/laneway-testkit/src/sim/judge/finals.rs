//! What the store must hold at the end: all of what was accepted (A1, D1), emits where they were sent (A2), and nothing
//! else.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::store::{
    Emit, Ending, JobEnd, LaneSelect, LaneView, Lanes, OutboxRow, Query, Rows, SeatView, Versioned,
};
use laneway_core::{Bytes, Event, EventId, Key, LaneName, Seat, Shard, Store, StreamId, Timestamp};

use super::Judge;
use super::shards::is_unique;

const ALL: usize = 10_000;

/// What was found in a shard.
pub(crate) struct ShardFound {
    events: Vec<Event>,
    ended: Vec<JobEnd>,
    trimmed: EventId,
    seats: Vec<SeatView>,
}

/// What was found at a seat.
pub(crate) struct SeatFound {
    lanes: Vec<LaneView>,
    states: Vec<(Key, Versioned)>,
    endings: Vec<Ending>,
    dead: Vec<EventId>,
    outbox: Vec<OutboxRow>,
}

macro_rules! rows {
    ($store:expr, $query:expr, $kind:ident) => {
        match $store.query($query).await {
            Ok(Rows::$kind(rows)) => rows,
            other => panic!("the store did not answer the list asked for: {other:?}"),
        }
    };
}

impl ShardFound {
    pub(crate) async fn read(store: &dyn Store, shard: Shard) -> Self {
        let (info, seats) = match store.query(Query::Seats(shard)).await {
            Ok(Rows::Seats(info, seats)) => (info, seats),
            other => panic!("the store did not answer the list asked for: {other:?}"),
        };
        let mut events: Vec<Event> = Vec::new();
        loop {
            let after = events.last().map_or(info.trimmed, |event| event.id);
            let page = rows!(store, Query::Events(shard, after, ALL), Events);
            if page.is_empty() {
                break;
            }
            events.extend(page);
        }
        let ended = rows!(store, Query::Ended(shard, EventId(0), ALL), Ended).ends;
        Self { events, ended, trimmed: info.trimmed, seats }
    }
}

impl SeatFound {
    pub(crate) async fn read(store: &dyn Store, seat: Seat) -> Self {
        let select = LaneSelect::Blocked { kind: None, after: None, limit: ALL };
        let lanes = store.lanes(Lanes { seat, select, siding: ALL, states: true }).await;
        let dead = rows!(store, Query::Dead(seat, EventId(0), ALL), Dead);
        Self {
            lanes: lanes.unwrap_or_else(|error| panic!("the seat is listed: {error}")),
            states: rows!(store, Query::States(seat, None, ALL), States),
            endings: rows!(store, Query::Endings(seat, EventId(0), ALL), Endings),
            dead: dead.into_iter().map(|dead| dead.event.id).collect(),
            outbox: rows!(store, Query::Outbox(seat, 0, ALL), Outbox),
        }
    }
}

fn timeless(end: &JobEnd) -> JobEnd {
    JobEnd { finished_at: Timestamp(0), ..end.clone() }
}

impl Judge {
    /// D1: every event is there as it was, and what was acknowledged is among them.
    pub(crate) fn reckon_shard(&mut self, shard: Shard, found: &ShardFound) {
        let mut faults = Vec::new();
        let known = self.events.get(&shard).cloned().unwrap_or_default();
        let there: BTreeMap<EventId, &Event> = found.events.iter().map(|event| (event.id, event)).collect();
        for (id, event) in known.iter().filter(|(id, _)| **id > found.trimmed) {
            if there.get(id) != Some(&event) {
                faults.push(("D1", format!("event {shard}/{id} is {:?} at the end", there.get(id))));
            }
        }
        for (_, id, data) in self.acked.iter().filter(|(acked, _, _)| *acked == shard) {
            if known.get(id).is_none_or(|event| event.data != *data) {
                let data = String::from_utf8_lossy(data);
                faults.push(("D1", format!("{shard}/{id} was acknowledged for {data} and is not there")));
            }
        }
        let ended: BTreeMap<EventId, JobEnd> =
            found.ended.iter().map(|end| (end.id, timeless(end))).collect();
        for ((_, id), end) in self.ends.iter().filter(|((at, _), _)| *at == shard) {
            let gone = self.forgotten.contains(&(shard, *id)) || *id <= found.trimmed;
            match ended.get(id) {
                None if gone => {}
                Some(found) if *found == timeless(end) => {}
                other => faults.push(("A1", format!("job {shard}/{id} ended {end:?}, found {other:?}"))),
            }
        }
        for id in ended.keys().filter(|id| !self.ends.contains_key(&(shard, **id))) {
            faults.push(("A1", format!("job {shard}/{id} has an end of no commit")));
        }
        for view in &found.seats {
            let seat = Seat { shard, processor: view.processor };
            faults.extend(self.reckon_progress(seat, view));
        }
        faults.into_iter().for_each(|(invariant, detail)| self.report(invariant, detail));
    }

    fn reckon_progress(&self, seat: Seat, view: &SeatView) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let Some(model) = self.seats.get(&seat) else { return faults };
        let progress = &view.progress;
        if model.fence.is_some_and(|fence| fence != progress.fence) {
            faults.push((
                "S3",
                format!("seat {seat} has {:?}, accepted made {:?}", progress.fence, model.fence),
            ));
        }
        let counters = (progress.emitted, progress.forwarded, progress.requests_applied, progress.status);
        let expected = (model.emitted, model.forwarded, model.applied, model.status);
        if counters != expected {
            faults.push(("A1", format!("seat {seat} has counters {counters:?}, expected {expected:?}")));
        }
        for id in self.events.get(&seat.shard).into_iter().flat_map(BTreeMap::keys) {
            let passed = progress.window.contains(*id);
            let places =
                [model.settled.contains_key(id) || *id <= model.start, model.sided.contains_key(id), !passed];
            if places.iter().filter(|place| **place).count() != 1 {
                faults
                    .push(("S4", format!("seat {seat}: event {id} is settled, sided, waiting: {places:?}")));
            }
        }
        faults
    }

    /// A1: rows of a seat are those of its accepted commits.
    pub(crate) fn reckon_seat(&mut self, seat: Seat, found: &SeatFound) {
        let Some(model) = self.seats.get(&seat) else { return };
        let mut faults = Vec::new();
        let mut compare = |what: &str, is: String, expected: String| {
            if is != expected {
                faults.push(format!("seat {seat}: {what} are {is}, expected {expected}"));
            }
        };
        let records: BTreeMap<&LaneName, _> =
            found.lanes.iter().map(|view| (&view.record.lane, &view.record)).collect();
        compare("records", format!("{records:?}"), format!("{:?}", model.records));
        let sided =
            found.lanes.iter().flat_map(|view| view.siding.iter().map(|id| (*id, view.record.lane.clone())));
        let sided: BTreeMap<EventId, LaneName> = sided.collect();
        compare("sidings", format!("{sided:?}"), format!("{:?}", model.sided));
        let states =
            found.states.iter().map(|(key, state)| (key.clone(), (state.version, state.bytes.clone())));
        let states: BTreeMap<Key, (u64, Bytes)> = states.collect();
        compare("states", format!("{states:?}"), format!("{:?}", model.states));
        let endings: BTreeMap<EventId, _> =
            found.endings.iter().map(|ending| (ending.id, ending.end)).collect();
        compare("endings", format!("{endings:?}"), format!("{:?}", model.endings));
        let dead: BTreeSet<EventId> = found.dead.iter().copied().collect();
        compare("dead letters", format!("{dead:?}"), format!("{:?}", model.dead));
        let outbox: Vec<Bytes> = found.outbox.iter().map(|row| row.emit.draft.data.clone()).collect();
        compare("emits on their way", format!("{outbox:?}"), format!("{:?}", model.outbox));
        faults.into_iter().for_each(|detail| self.report("A1", detail));
        if let Some((_, most)) = self.most_starts().map(|(name, most)| (*name, *most))
            && most > 3
        {
            self.hit("event started more than three times");
        }
    }

    /// A2: every emit of an accepted commit arrived once, in order per seat and target lane, and no other did.
    pub(crate) fn reckon_emits(&mut self) {
        let mut faults = Vec::new();
        let mut arrived: BTreeMap<(StreamId, Bytes), Vec<(Shard, EventId)>> = BTreeMap::new();
        for (shard, events) in &self.events {
            for event in
                events.values().filter(|event| event.data.starts_with(b"e") && is_unique(event.kind.as_str()))
            {
                if event.headers.get("laneway-redriven-from").is_none() {
                    arrived.entry((shard.stream, event.data.clone())).or_default().push((*shard, event.id));
                }
            }
        }
        let mut last: BTreeMap<(Seat, StreamId, Option<Key>), (Shard, EventId)> = BTreeMap::new();
        let unique = |emit: &Emit| emit.draft.data.starts_with(b"e") && is_unique(emit.draft.kind.as_str());
        for (seat, emit) in self.emits.iter().filter(|(_, emit)| unique(emit)) {
            let name = String::from_utf8_lossy(&emit.draft.data);
            let may_double = self.may_double.contains(&emit.draft.data);
            match arrived.remove(&(emit.stream, emit.draft.data.clone())).as_deref() {
                // One that came again brought everything behind it again.
                Some([earlier @ .., place]) if earlier.is_empty() || may_double => {
                    let lane = (*seat, emit.stream, emit.draft.key.clone());
                    let before = last.insert(lane, *place);
                    if emit.draft.key.is_some() && before.is_some_and(|before| before > *place) {
                        faults.push(format!("emit {name} of seat {seat} arrived before its predecessor"));
                    }
                }
                Some(places) => {
                    faults.push(format!("emit {name} of seat {seat} arrived {} times", places.len()))
                }
                None => faults.push(format!("emit {name} of seat {seat} never arrived")),
            }
        }
        for ((_, data), places) in arrived {
            faults.push(format!("{:?} at {places:?} is an emit of no accepted commit", data));
        }
        faults.into_iter().for_each(|detail| self.report("A2", detail));
    }
}
