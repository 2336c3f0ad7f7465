//! The state as maps. Holds no rule: what may change is decided in `machine`.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use bytes::Bytes;
use hashbrown::HashMap;
use laneway_core::{
    Event, EventId, Incarnation, JobMark, Key, Passed, Result, Seat, Shard, ShardInfo, StreamId, StreamInfo,
    Timestamp,
};

use crate::machine::{SeatHead, SeatState, State, StoredEnd, Table, Tail, View};

/// Everything a memory store knows.
#[derive(Clone, Debug)]
pub(super) struct MemoryState {
    pub(super) incarnation: Incarnation,
    streams: BTreeMap<StreamId, StreamInfo>,
    shards: HashMap<Shard, ShardMaps>,
    seats: HashMap<Seat, SeatState>,
    rows: BTreeMap<Table, BTreeMap<Bytes, Bytes>>,
}

#[derive(Clone, Debug)]
struct ShardMaps {
    info: ShardInfo,
    /// Ascending by id, and by time too, because log time never goes back.
    events: VecDeque<Event>,
    tails: BTreeMap<Key, Tail>,
    ends: BTreeMap<EventId, StoredEnd>,
}

impl MemoryState {
    pub(super) fn new(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            streams: BTreeMap::new(),
            shards: HashMap::new(),
            seats: HashMap::new(),
            rows: BTreeMap::new(),
        }
    }

    fn maps(&mut self, shard: Shard) -> &mut ShardMaps {
        self.shards.get_mut(&shard).expect("a rule writes to shards that it has read")
    }
}

impl View for MemoryState {
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    fn stream(&self, stream: StreamId) -> Option<&StreamInfo> {
        self.streams.get(&stream)
    }

    fn streams(&self) -> Vec<&StreamInfo> {
        self.streams.values().collect()
    }

    fn shard(&self, shard: Shard) -> Option<&ShardInfo> {
        self.shards.get(&shard).map(|maps| &maps.info)
    }

    fn tail(&self, shard: Shard, key: &Key) -> Result<Option<Tail>> {
        Ok(self.shards.get(&shard).and_then(|maps| maps.tails.get(key)).copied())
    }

    fn tails(&self, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Tail)>> {
        let Some(maps) = self.shards.get(&shard) else { return Ok(Vec::new()) };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let tails = maps.tails.range::<Key, _>((from, Bound::Unbounded));
        Ok(tails.take(limit).map(|(key, tail)| (key.clone(), *tail)).collect())
    }

    fn event(&self, shard: Shard, id: EventId) -> Result<Option<Event>> {
        let Some(maps) = self.shards.get(&shard) else { return Ok(None) };
        let found = maps.events.binary_search_by_key(&id, |event| event.id);
        Ok(found.ok().map(|at| maps.events[at].clone()))
    }

    fn job_mark(&self, shard: Shard, id: EventId) -> Result<Option<JobMark>> {
        let Some(maps) = self.shards.get(&shard) else { return Ok(None) };
        let found = maps.events.binary_search_by_key(&id, |event| event.id);
        Ok(found.ok().and_then(|at| maps.events[at].job))
    }

    fn first_since(&self, shard: Shard, time: Timestamp, through: EventId) -> Result<Option<EventId>> {
        let Some(maps) = self.shards.get(&shard) else { return Ok(None) };
        let at = maps.events.partition_point(|event| event.time < time);
        Ok(maps.events.get(at).map(|event| event.id).filter(|first| *first <= through))
    }

    fn seat(&self, seat: Seat) -> Option<&SeatState> {
        self.seats.get(&seat)
    }

    fn job_end(&self, shard: Shard, id: EventId) -> Result<Option<StoredEnd>> {
        Ok(self.shards.get(&shard).and_then(|maps| maps.ends.get(&id)).cloned())
    }

    fn job_ends(&self, shard: Shard, after: EventId, limit: usize) -> Result<Vec<StoredEnd>> {
        let Some(maps) = self.shards.get(&shard) else { return Ok(Vec::new()) };
        let ends = maps.ends.range((Bound::Excluded(after), Bound::Unbounded));
        Ok(ends.take(limit).map(|(_, end)| end.clone()).collect())
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.rows.get(&table).and_then(|rows| rows.get(key)).cloned())
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let Some(rows) = self.rows.get(&table) else { return Ok(Vec::new()) };
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let rows = rows.range::<[u8], _>((from, Bound::Unbounded));
        let rows = rows.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        Ok(rows.map(|(key, row)| (key.clone(), row.clone())).collect())
    }
}

impl State for MemoryState {
    fn put_stream(&mut self, stream: StreamInfo) {
        self.streams.insert(stream.id, stream);
    }

    fn remove_stream(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
        self.shards.retain(|shard, _| shard.stream != stream);
    }

    fn put_shard(&mut self, shard: Shard, info: ShardInfo) {
        let Some(maps) = self.shards.get_mut(&shard) else {
            let maps =
                ShardMaps { info, events: VecDeque::new(), tails: BTreeMap::new(), ends: BTreeMap::new() };
            self.shards.insert(shard, maps);
            return;
        };
        let gone = maps.events.partition_point(|event| event.id <= info.trimmed);
        maps.events.drain(..gone);
        maps.info = info;
    }

    fn put_tail(&mut self, shard: Shard, key: &Key, tail: Tail) {
        self.maps(shard).tails.insert(key.clone(), tail);
    }

    fn remove_tail(&mut self, shard: Shard, key: &Key) {
        self.maps(shard).tails.remove(key);
    }

    fn push(&mut self, shard: Shard, event: Event) {
        let maps = self.maps(shard);
        assert_eq!(event.id, maps.info.head.next(), "ids follow each other");
        maps.info.head = event.id;
        maps.info.time = event.time;
        if let (Some(key), Some(tail)) = (&event.key, Tail::of(&event)) {
            maps.tails.insert(key.clone(), tail);
        }
        maps.events.push_back(event);
    }

    fn put_seat(&mut self, seat: Seat, state: SeatState) {
        self.seats.insert(seat, state);
    }

    fn advance_seat(&mut self, seat: Seat, head: SeatHead, passed: &Passed) {
        let gaps = self.shards.get(&seat.shard).map(|maps| &maps.info.gaps[..]).unwrap_or_default();
        let state = self.seats.get_mut(&seat).expect("a rule writes to seats that it has read");
        state.head = head;
        state.window.pass(passed, gaps);
    }

    fn remove_seat(&mut self, seat: Seat) {
        self.seats.remove(&seat);
    }

    fn end_job(&mut self, shard: Shard, end: StoredEnd) {
        let before = self.maps(shard).ends.insert(end.end.id, end);
        assert!(before.is_none(), "the first end of a job stays");
    }

    fn expire_job_ends(&mut self, shard: Shard, before: Timestamp) {
        let maps = self.maps(shard);
        let trimmed = maps.ends.range(..=maps.info.trimmed);
        let over = trimmed.filter(|(_, end)| end.keep_until < before).map(|(id, _)| *id);
        let over: Vec<EventId> = over.collect();
        for id in &over {
            maps.ends.remove(id);
        }
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        let rows = self.rows.entry(table).or_default();
        rows.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        if let Some(rows) = self.rows.get_mut(&table) {
            rows.remove(key);
        }
    }

    fn forget(&mut self, table: Table, prefix: &[u8]) {
        let Some(rows) = self.rows.get_mut(&table) else { return };
        let mut from = rows.split_off(prefix);
        let rest = from.iter().find(|(key, _)| !key.starts_with(prefix)).map(|(key, _)| key.clone());
        if let Some(rest) = rest {
            rows.append(&mut from.split_off(&rest));
        }
    }
}
