//! The state as the rules see it: every change is written into the group's frame and applied at once.
//!
//! A call that changes something sees [`FileState`] itself and may read a few small rows of the index under the lock. A
//! call that only looks sees [`Seen`], which reads no file at all.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{
    Event, EventId, Incarnation, JobMark, Key, Passed, Result, Seat, Shard, ShardInfo, StreamId, StreamInfo,
    Timestamp, Topic,
};

use super::archive::{Reach, in_memory};
use super::contents::Run;
use super::fetched::{Directly, EndSearch, Fetched, IndexReader, Wanted};
use super::file_state::FileState;
use super::rows::RowKey;
use super::tails::parse_shard;
use crate::machine::codec::keys::{self, Single};
use crate::machine::codec::{Numbered, Stored};
use crate::machine::kept::{KeptEvent, KeptRange};
use crate::machine::{SeatHead, SeatState, State, StoredEnd, Table, Tail, View, expiry};

/// The state together with what was read from files for one call that changes nothing.
pub(crate) struct Seen<'a> {
    pub(crate) state: &'a FileState,
    pub(crate) fetched: &'a Fetched,
}

/// How many rows of a version before are read at a time.
const NOTED_AT_ONCE: usize = 64;

fn row_key(table: Table, key: &[u8]) -> RowKey {
    let mut bytes = RowKey::with_capacity(key.len() + 1);
    bytes.push(table as u8);
    bytes.extend_from_slice(key);
    bytes
}

impl FileState {
    /// Rows of all tables after a key, whole keys.
    pub(crate) fn all_rows(&self, after: Option<&[u8]>, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        self.rows.scan(&[], after, limit, &Directly)
    }

    /// Notes when rows may go that a version before has written without. The notes follow from the rows, so they are in
    /// no frame: should the next checkpoint not come, the next start makes them again.
    pub(crate) fn note_expiries(&mut self) -> Result<()> {
        let noted = row_key(Table::Store, &Single::ExpiryNoted.key());
        if self.rows.get(&noted, &Directly)?.is_some() {
            return Ok(());
        }
        for table in expiry::TABLES {
            let mut after = None;
            loop {
                let page = self.rows.scan(&[table as u8], after.as_deref(), NOTED_AT_ONCE, &Directly)?;
                let Some((last, _)) = page.last() else { break };
                after = Some(last.clone());
                for (key, row) in page {
                    if let Some(time) = expiry::time_of(table, row)? {
                        let note = keys::expiry(table, &key[1..], time);
                        self.rows.put(&row_key(Table::Expiry, &note), Bytes::new());
                    }
                }
            }
        }
        self.rows.put(&noted, Numbered(1).to_row().into());
        Ok(())
    }

    /// Takes up what is kept aside of shards, after a load.
    pub(crate) fn load_kept(&mut self) -> Result<()> {
        let prefix = Single::Kept.key();
        let mut after = None;
        loop {
            let page = self.find_rows(&Directly, Table::Store, &prefix, after.as_deref(), NOTED_AT_ONCE)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            for (key, row) in page {
                self.note_kept(&key, &row);
            }
        }
    }

    /// Adds a row to the open group.
    fn log_row(&mut self, table: Table, key: &[u8], value: &[u8]) {
        if table == Table::Store {
            self.note_kept(key, value);
        }
        if table == Table::Schedule
            && let Some(shard) = parse_shard(key)
            && self.scheduled.insert(shard)
        {
            self.group.reshaped.push(shard);
        }
        self.group.records.put(self.group.frame.body_mut(), table, key, value);
    }

    fn note_kept(&mut self, key: &[u8], row: &[u8]) {
        if let Some((single, shard)) = key.split_first()
            && *single == Single::Kept as u8
            && let Some(shard) = parse_shard(shard)
            && let Ok(range) = KeptRange::from_row(Bytes::copy_from_slice(row))
        {
            self.kept.insert(shard, range);
            self.group.reshaped.push(shard);
        }
    }

    /// The first event up to `through` that is kept aside, not trimmed, and of this time or later. They are older than all in
    /// the log.
    fn first_kept_since(
        &self,
        reader: &impl IndexReader,
        shard: Shard,
        trimmed: EventId,
        time: Timestamp,
        through: EventId,
    ) -> Result<Option<EventId>> {
        // Times ascend with ids. The middles do not depend on `through`, which grows while the rows are being read: what was
        // read for one attempt serves the next.
        let (mut older, mut last, mut first) = (trimmed, self.kept_of(shard).events, None);
        while older < last {
            let middle = EventId(u64::midpoint(older.0, last.0));
            let next = if middle < through { self.next_kept(reader, shard, middle)? } else { None };
            match next {
                Some(event) if event.time < time => older = event.id,
                Some(event) => (last, first) = (middle, Some(event.id)),
                None => last = middle,
            }
        }
        Ok(first.filter(|first| *first <= through))
    }

    /// The first event behind an id that is kept aside.
    fn next_kept(&self, reader: &impl IndexReader, shard: Shard, id: EventId) -> Result<Option<Event>> {
        let row = keys::shard_number(shard, id.0);
        let rows = self.find_rows(reader, Table::KeptEvent, &keys::shard(shard), Some(&row), 1)?;
        rows.into_iter().next().map(|(_, row)| Ok(KeptEvent::from_row(row)?.0)).transpose()
    }

    /// An event that is kept aside.
    fn kept_event(&self, reader: &impl IndexReader, shard: Shard, id: EventId) -> Result<Option<Event>> {
        let row = self.rows.get(&row_key(Table::KeptEvent, &keys::shard_number(shard, id.0)), reader)?;
        Ok(row.map(KeptEvent::from_row).transpose()?.map(|kept| kept.0))
    }

    /// Whether no draft of a shard waits for its time. An index that cannot be read is found by whoever needs it.
    pub(super) fn has_no_schedule(&self, shard: Shard) -> bool {
        let first = self.find_rows(&Directly, Table::ScheduleDue, &keys::shard(shard), None, 1);
        first.is_ok_and(|rows| rows.is_empty())
    }

    fn find_event(
        &self,
        fetched: &Fetched,
        reader: &impl IndexReader,
        shard: Shard,
        id: EventId,
    ) -> Result<Option<Event>> {
        if self.shards.get(&shard).is_none_or(|info| id <= info.trimmed || id > info.head) {
            return Ok(None);
        }
        if id <= self.kept_of(shard).events {
            return self.kept_event(reader, shard, id);
        }
        if let Some(event) = fetched.events.get(&(shard, id)) {
            return Ok(event.clone());
        }
        let found = in_memory(self.archive().event(shard, id, Reach::Memory))?;
        found.ok_or_else(|| fetched.miss(Wanted::Event(shard, id)))
    }

    fn find_job_mark(
        &self,
        fetched: &Fetched,
        reader: &impl IndexReader,
        shard: Shard,
        id: EventId,
    ) -> Result<Option<JobMark>> {
        if let Some((known, jobs)) = &fetched.jobs
            && *known == shard
            && let Ok(at) = jobs.binary_search_by_key(&id, |(id, _)| *id)
        {
            // It was looked up before: a trim may have come since, or long ago without its bytes having gone.
            let is_there = self.shards.get(&shard).is_some_and(|info| id > info.trimmed);
            return Ok(is_there.then_some(jobs[at].1));
        }
        Ok(self.find_event(fetched, reader, shard, id)?.and_then(|event| event.job))
    }

    fn find_first_since(
        &self,
        fetched: &Fetched,
        reader: &impl IndexReader,
        shard: Shard,
        time: Timestamp,
        through: EventId,
    ) -> Result<Option<EventId>> {
        let Some(info) = self.shards.get(&shard) else { return Ok(None) };
        // Nothing of an idle shard is young enough.
        if info.time < time || info.trimmed >= through.min(info.head) {
            return Ok(None);
        }
        let kept = self.first_kept_since(reader, shard, info.trimmed, time, through)?;
        if kept.is_some() || through <= self.kept_of(shard).events {
            return Ok(kept);
        }
        let durable = self.published.head(shard).unwrap_or(info.trimmed);
        let since = match fetched.since(shard, time) {
            Some(since) => since,
            None => {
                let (trimmed, head) = (info.trimmed, durable);
                return Err(fetched.miss(Wanted::Since { shard, time, trimmed, head }));
            }
        };
        // Events that came after the look are the newest of all.
        let newer = (info.head > since.head).then(|| since.head.next());
        let first = since.first.or(newer).map(|first| first.max(info.trimmed.next()));
        Ok(first.filter(|first| *first <= through))
    }

    fn find_job_end(
        &self,
        fetched: &Fetched,
        reader: &impl IndexReader,
        shard: Shard,
        id: EventId,
    ) -> Result<Option<StoredEnd>> {
        let searched = match fetched.ends.get(&(shard, id)) {
            Some(EndSearch::There(end)) => return Ok(Some(end.clone())),
            Some(EndSearch::AbsentThrough(serial)) => *serial,
            None => 0,
        };
        let found = self.end_in_memory(reader, shard, id, searched)?;
        found.ok_or_else(|| fetched.miss(Wanted::JobEnd(shard, id)))
    }

    fn find_job_end_life(
        &self,
        fetched: &Fetched,
        reader: &impl IndexReader,
        shard: Shard,
        id: EventId,
    ) -> Result<Option<Timestamp>> {
        let searched = match fetched.end_lives.get(&(shard, id)) {
            Some(EndSearch::There(until)) => return Ok(Some(*until)),
            Some(EndSearch::AbsentThrough(serial)) => *serial,
            None => 0,
        };
        let found = self.end_in_memory(reader, shard, id, searched)?;
        let found = found.map(|end| end.map(|end| end.keep_until));
        found.ok_or_else(|| fetched.miss(Wanted::JobEndLife(shard, id)))
    }

    /// The end of a job; `None` if only a file can tell. Sealed segments up to `searched` do not have it.
    fn end_in_memory(
        &self,
        reader: &impl IndexReader,
        shard: Shard,
        id: EventId,
        searched: u64,
    ) -> Result<Option<Option<StoredEnd>>> {
        if self.kept_of(shard).may_have_end(id)
            && let Some(row) =
                self.rows.get(&row_key(Table::KeptEnd, &keys::shard_number(shard, id.0)), reader)?
        {
            return Ok(Some(Some(StoredEnd::from_row(row)?)));
        }
        if let Some((_, stored)) = self.fresh_ends().find(|(found, end)| *found == shard && end.end.id == id)
        {
            return Ok(Some(Some(stored.clone())));
        }
        in_memory(self.archive().job_end(shard, id, searched, Reach::Memory))
    }

    fn find_job_ends(
        &self,
        fetched: &Fetched,
        reader: &impl IndexReader,
        shard: Shard,
        after: EventId,
        limit: usize,
    ) -> Result<Vec<StoredEnd>> {
        let mut ends = match fetched.end_pages.get(&(shard, after, limit)) {
            Some(ends) => ends.clone(),
            None => return Err(fetched.miss(Wanted::JobEnds { shard, after, limit })),
        };
        if self.kept_of(shard).ends.1 > after {
            let row = keys::shard_number(shard, after.0);
            let rows = self.find_rows(reader, Table::KeptEnd, &keys::shard(shard), Some(&row), limit)?;
            for (_, row) in rows {
                ends.push(StoredEnd::from_row(row)?);
            }
        }
        let fresh = self.fresh_ends().filter(|(found, stored)| *found == shard && stored.end.id > after);
        ends.extend(fresh.map(|(_, stored)| stored.clone()));
        ends.sort_by_key(|stored| stored.end.id);
        ends.dedup_by_key(|stored| stored.end.id);
        ends.truncate(limit);
        Ok(ends)
    }

    fn find_rows(
        &self,
        reader: &impl IndexReader,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let after = after.map(|after| row_key(table, after));
        let rows = self.rows.scan(&row_key(table, prefix), after.as_deref(), limit, reader)?;
        Ok(rows.into_iter().map(|(key, value)| (key.slice(1..), value)).collect())
    }
}

impl View for FileState {
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
        self.shards.get(&shard)
    }

    fn seat(&self, seat: Seat) -> Option<&SeatState> {
        self.seats.get(&seat)
    }

    fn tail(&self, shard: Shard, key: &Key) -> Result<Option<Tail>> {
        self.tails.get(shard, key, &Directly)
    }

    fn tails(&self, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Tail)>> {
        self.tails.list(shard, after, limit, &Directly)
    }

    fn old_tails(&self, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Tail)>> {
        self.tails.list_old(shard, after, limit, &Directly)
    }

    fn has_old_tails(&self, shard: Shard, time: Timestamp) -> bool {
        self.tails.has_stored(shard, time)
    }

    fn event(&self, shard: Shard, id: EventId) -> Result<Option<Event>> {
        self.find_event(&self.fetched, &Directly, shard, id)
    }

    fn job_mark(&self, shard: Shard, id: EventId) -> Result<Option<JobMark>> {
        self.find_job_mark(&self.fetched, &Directly, shard, id)
    }

    fn first_since(&self, shard: Shard, time: Timestamp, through: EventId) -> Result<Option<EventId>> {
        self.find_first_since(&self.fetched, &Directly, shard, time, through)
    }

    fn job_end(&self, shard: Shard, id: EventId) -> Result<Option<StoredEnd>> {
        self.find_job_end(&self.fetched, &Directly, shard, id)
    }

    fn job_end_life(&self, shard: Shard, id: EventId) -> Result<Option<Timestamp>> {
        self.find_job_end_life(&self.fetched, &Directly, shard, id)
    }

    fn job_ends(&self, shard: Shard, after: EventId, limit: usize) -> Result<Vec<StoredEnd>> {
        self.find_job_ends(&self.fetched, &Directly, shard, after, limit)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        self.rows.get(&row_key(table, key), &Directly)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        self.find_rows(&Directly, table, prefix, after, limit)
    }

    fn first_keys(&self, table: Table, prefix: &[u8], limit: usize) -> Result<Vec<Bytes>> {
        let keys = self.rows.first_keys(&row_key(table, prefix), limit, &Directly)?;
        Ok(keys.into_iter().map(|key| key.slice(1..)).collect())
    }
}

impl Seen<'_> {
    /// How many of the next rows of a table there are, at most `limit`, and where to go on if there may be more.
    pub(crate) fn count_page(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<(u64, Option<Bytes>)> {
        let after = after.map(|after| row_key(table, after));
        let (prefix, reader) = (row_key(table, prefix), self.fetched);
        let (count, last) = self.state.rows.count_page(&prefix, after.as_deref(), limit, reader)?;
        Ok((count, last.map(|last| last.slice(1..))))
    }
}

impl View for Seen<'_> {
    fn incarnation(&self) -> Incarnation {
        self.state.incarnation
    }

    fn stream(&self, stream: StreamId) -> Option<&StreamInfo> {
        self.state.streams.get(&stream)
    }

    fn streams(&self) -> Vec<&StreamInfo> {
        self.state.streams.values().collect()
    }

    fn shard(&self, shard: Shard) -> Option<&ShardInfo> {
        self.state.shards.get(&shard)
    }

    fn seat(&self, seat: Seat) -> Option<&SeatState> {
        self.state.seats.get(&seat)
    }

    fn tail(&self, shard: Shard, key: &Key) -> Result<Option<Tail>> {
        self.state.tails.get(shard, key, self.fetched)
    }

    fn tails(&self, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Tail)>> {
        self.state.tails.list(shard, after, limit, self.fetched)
    }

    fn old_tails(&self, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Tail)>> {
        self.state.tails.list_old(shard, after, limit, self.fetched)
    }

    fn has_old_tails(&self, shard: Shard, time: Timestamp) -> bool {
        self.state.tails.has_stored(shard, time)
    }

    fn event(&self, shard: Shard, id: EventId) -> Result<Option<Event>> {
        self.state.find_event(self.fetched, self.fetched, shard, id)
    }

    fn job_mark(&self, shard: Shard, id: EventId) -> Result<Option<JobMark>> {
        self.state.find_job_mark(self.fetched, self.fetched, shard, id)
    }

    fn first_since(&self, shard: Shard, time: Timestamp, through: EventId) -> Result<Option<EventId>> {
        self.state.find_first_since(self.fetched, self.fetched, shard, time, through)
    }

    fn job_end(&self, shard: Shard, id: EventId) -> Result<Option<StoredEnd>> {
        self.state.find_job_end(self.fetched, self.fetched, shard, id)
    }

    fn job_end_life(&self, shard: Shard, id: EventId) -> Result<Option<Timestamp>> {
        self.state.find_job_end_life(self.fetched, self.fetched, shard, id)
    }

    fn job_ends(&self, shard: Shard, after: EventId, limit: usize) -> Result<Vec<StoredEnd>> {
        self.state.find_job_ends(self.fetched, self.fetched, shard, after, limit)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        self.state.rows.get(&row_key(table, key), self.fetched)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        self.state.find_rows(self.fetched, table, prefix, after, limit)
    }
}

impl State for FileState {
    fn put_stream(&mut self, stream: StreamInfo) {
        self.group.records.stream(self.group.frame.body_mut(), &stream);
        self.apply_stream(stream);
    }

    fn remove_stream(&mut self, stream: StreamId) {
        self.group.records.remove_stream(self.group.frame.body_mut(), stream);
        self.group.reshaped.extend(self.shards.keys().filter(|shard| shard.stream == stream));
        self.apply_remove_stream(stream);
    }

    fn put_shard(&mut self, shard: Shard, info: ShardInfo) {
        self.group.records.shard(self.group.frame.body_mut(), shard, &info);
        self.group.reshaped.push(shard);
        self.apply_shard(shard, info);
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
        let head = group.frame.body_mut().len() - group.frame.body_len();
        if let Some(start) = group.records.event(group.frame.body_mut(), shard, &event) {
            let at = u32::try_from(start - head).expect("frames are shorter than a segment");
            group.contents.runs.push(Run { shard, first: event.id, last: event.id, at });
            group.topics.push(Topic::Shard(shard));
            self.changed.shards.insert(shard);
        } else if let Some(run) = group.contents.runs.last_mut() {
            run.last = event.id;
        }
        self.apply_event(shard, &event);
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

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.log_row(table, key, value);
        self.rows.put(&row_key(table, key), Bytes::copy_from_slice(value));
    }

    fn put_new(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.log_row(table, key, value);
        self.rows.put_new(&row_key(table, key), Bytes::copy_from_slice(value));
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        if table == Table::Schedule {
            self.group.unscheduled.extend(parse_shard(key));
        }
        self.group.records.delete(self.group.frame.body_mut(), table, key);
        self.rows.delete(&row_key(table, key));
    }

    fn forget(&mut self, table: Table, prefix: &[u8]) {
        self.group.records.forget(self.group.frame.body_mut(), table, prefix);
        self.rows.forget(&row_key(table, prefix));
    }
}
