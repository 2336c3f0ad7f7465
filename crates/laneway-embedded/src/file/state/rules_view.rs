//! The state as the rules see it: every change is written into the group's frame and applied at once.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{
    Event, EventId, Incarnation, JobMark, Key, Passed, Result, Seat, Shard, ShardInfo, StreamId, StreamInfo,
    Timestamp, Topic,
};

use super::file_state::FileState;
use super::find;
use crate::machine::{SeatHead, SeatState, State, StoredEnd, Table, Tail};

impl FileState {
    fn row_key(table: Table, key: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(key.len() + 1);
        bytes.push(table as u8);
        bytes.extend_from_slice(key);
        bytes
    }
}

impl State for FileState {
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    fn stream(&self, stream: StreamId) -> Option<&StreamInfo> {
        self.streams.get(&stream)
    }

    fn streams(&self) -> Vec<&StreamInfo> {
        self.streams.values().collect()
    }

    fn put_stream(&mut self, stream: StreamInfo) {
        self.group.records.stream(self.group.frame.body_mut(), &stream);
        self.apply_stream(stream);
    }

    fn remove_stream(&mut self, stream: StreamId) {
        self.group.records.remove_stream(self.group.frame.body_mut(), stream);
        self.group.reshaped.extend(self.shards.keys().filter(|shard| shard.stream == stream));
        self.apply_remove_stream(stream);
    }

    fn shard(&self, shard: Shard) -> Option<&ShardInfo> {
        self.shards.get(&shard)
    }

    fn put_shard(&mut self, shard: Shard, info: ShardInfo) {
        self.group.records.shard(self.group.frame.body_mut(), shard, &info);
        self.group.reshaped.push(shard);
        self.apply_shard(shard, info);
    }

    fn tail(&self, shard: Shard, key: &Key) -> Result<Option<Tail>> {
        self.tails.get(shard, key)
    }

    fn tails(&self, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Tail)>> {
        self.tails.list(shard, after, limit)
    }

    fn put_tail(&mut self, shard: Shard, key: &Key, tail: Tail) {
        self.group.records.tail(self.group.frame.body_mut(), shard, key, &tail);
        self.tails.set(shard, key, Some(tail));
    }

    fn remove_tail(&mut self, shard: Shard, key: &Key) {
        self.group.records.tail_gone(self.group.frame.body_mut(), shard, key);
        self.tails.set(shard, key, None);
    }

    fn push(&mut self, shard: Shard, event: Event) {
        let group = &mut self.group;
        if group.records.event(group.frame.body_mut(), shard, &event) {
            group.contents.runs.push((shard, event.id, event.id));
            group.topics.push(Topic::Shard(shard));
            self.changed.shards.insert(shard);
        } else if let Some(run) = group.contents.runs.last_mut() {
            run.2 = event.id;
        }
        self.apply_event(shard, &event);
    }

    fn event(&self, shard: Shard, id: EventId) -> Result<Option<Event>> {
        let trimmed = self.shards.get(&shard).is_none_or(|info| id <= info.trimmed);
        if trimmed { Ok(None) } else { find::event(self, shard, id) }
    }

    fn job_mark(&self, shard: Shard, id: EventId) -> Result<Option<JobMark>> {
        if let Some((known, jobs)) = &self.known_jobs
            && *known == shard
            && let Ok(at) = jobs.binary_search_by_key(&id, |(id, _)| *id)
        {
            // It was looked up before: a trim may have come since, or long ago without its bytes having gone.
            let is_there = self.shards.get(&shard).is_some_and(|info| id > info.trimmed);
            return Ok(is_there.then_some(jobs[at].1));
        }
        Ok(self.event(shard, id)?.and_then(|event| event.job))
    }

    fn first_since(&self, shard: Shard, time: Timestamp) -> Result<Option<EventId>> {
        find::first_since(self, shard, time)
    }

    fn seat(&self, seat: Seat) -> Option<&SeatState> {
        self.seats.get(&seat)
    }

    fn put_seat(&mut self, seat: Seat, state: SeatState) {
        self.group.records.seat(self.group.frame.body_mut(), seat, &state);
        self.group.asked.push(seat);
        self.apply_seat(seat, state);
    }

    fn advance_seat(&mut self, seat: Seat, head: SeatHead, passed: &Passed) {
        self.group.records.advance(self.group.frame.body_mut(), seat, &head, passed);
        if self.seats.get(&seat).is_some_and(|state| state.head.request_no < head.request_no) {
            self.group.topics.push(Topic::Seat(seat));
            self.group.asked.push(seat);
        }
        self.apply_advance(seat, head, passed);
    }

    fn remove_seat(&mut self, seat: Seat) {
        self.group.records.remove_seat(self.group.frame.body_mut(), seat);
        self.group.asked.push(seat);
        self.apply_remove_seat(seat);
    }

    fn end_job(&mut self, shard: Shard, end: StoredEnd) {
        let group = &mut self.group;
        let before = group.frame.body_len();
        let start = group.frame.body_mut().len() - before;
        let at = group.records.job_end(group.frame.body_mut(), shard, &end) - start;
        let at = u32::try_from(at).expect("frames are shorter than a segment");
        group.contents.ends.push((shard, end.end.id, at));
        group.contents.keep_until = group.contents.keep_until.max(end.keep_until);
        Arc::get_mut(&mut group.ends).expect("only an open group gets ends").push((shard, end));
    }

    fn job_end(&self, shard: Shard, id: EventId) -> Result<Option<StoredEnd>> {
        match self.fresh_ends().find(|(found, stored)| *found == shard && stored.end.id == id) {
            Some((_, stored)) => Ok(Some(stored.clone())),
            None => find::job_end(self, shard, id),
        }
    }

    fn job_ends(&self, shard: Shard, after: EventId, limit: usize) -> Result<Vec<StoredEnd>> {
        let mut ends = find::job_ends(self, shard, after, limit)?;
        let fresh = self.fresh_ends().filter(|(found, stored)| *found == shard && stored.end.id > after);
        ends.extend(fresh.map(|(_, stored)| stored.clone()));
        ends.sort_by_key(|stored| stored.end.id);
        ends.truncate(limit);
        Ok(ends)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        self.rows.get(&Self::row_key(table, key))
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let after = after.map(|after| Self::row_key(table, after));
        let rows = self.rows.scan(&Self::row_key(table, prefix), after.as_deref(), limit)?;
        Ok(rows.into_iter().map(|(key, value)| (key.slice(1..), value)).collect())
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.group.records.put(self.group.frame.body_mut(), table, key, value);
        self.rows.put(&Self::row_key(table, key), Bytes::copy_from_slice(value));
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        self.group.records.delete(self.group.frame.body_mut(), table, key);
        self.rows.delete(&Self::row_key(table, key));
    }

    fn forget(&mut self, table: Table, prefix: &[u8]) {
        self.group.records.forget(self.group.frame.body_mut(), table, prefix);
        self.rows.forget(&Self::row_key(table, prefix));
    }
}
