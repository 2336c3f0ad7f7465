//! Everything the file store knows without reading a file, and the frame of the group being committed.
//!
//! Callers change it one at a time, each on its own thread under the store's lock, and what they change joins the open
//! group; the write thread takes the group out and publishes it once it is durable. Readers look under the same lock
//! and answer only after the group they have seen is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use laneway_core::store::JobView;
use laneway_core::{
    Incarnation, JobNumber, Mode, Result, Seat, Shard, ShardInfo, StreamId, StreamInfo, Topic,
};

use super::archive::{Archive, Reach, in_memory};
use super::contents::FrameContents;
use super::fetched::Fetched;
use super::published::{Published, PublishedShard};
use super::records::Records;
use super::resident::{self, Resident};
use super::rows::{RowChanges, Rows};
use super::tails::{ChangedLanes, Tails, shard_prefix};
use crate::clock::ClockMark;
use crate::file::group::Done;
use crate::file::index::{CheckpointWrite, PackedChanges, Snapshot};
use crate::file::log::{FrameBuffer, Mark, Position};
use crate::machine::codec::Stored;
use crate::machine::kept::KeptRange;
use crate::machine::{Now, SeatState, StoredEnd, jobs};

/// For so many ends of jobs a group keeps its memory from one use to the next.
const ENDS_KEPT: usize = 4_096;

/// The state of the file store.
#[derive(Debug)]
pub(crate) struct FileState {
    pub(crate) incarnation: Incarnation,
    pub(super) streams: BTreeMap<StreamId, StreamInfo>,
    pub(super) shards: HashMap<Shard, ShardInfo>,
    pub(super) seats: HashMap<Seat, SeatState>,
    pub(super) changed: Changed,
    pub(crate) rows: Rows,
    /// Shards in which drafts wait for their time.
    pub(super) scheduled: HashSet<Shard>,
    /// What is kept aside of shards, where something is.
    pub(super) kept: HashMap<Shard, KeptRange>,
    pub(crate) tails: Tails,
    /// Where events and job ends are read from; set once the log is open.
    archive: Option<Archive>,
    /// What readers may see without looking here.
    pub(crate) published: Arc<Published>,
    /// What the call being applied has read from files before.
    pub(crate) fetched: Fetched,
    pub(super) group: Group,
    /// Number of the last group that was handed out to be written.
    taken: u64,
    /// Ends of jobs in the group that is being written: they are not in the log yet.
    ends_on_their_way: Option<Arc<Vec<(Shard, StoredEnd)>>>,
    /// Number of the last group that was opened: whoever looks at the state has seen it.
    pub(crate) groups: u64,
    /// Where the durable log ends, and where the clocks stood then.
    pub(crate) end: Mark,
    pub(crate) clock_mark: ClockMark,
}

/// What changed since the last checkpoint began.
#[derive(Debug, Default)]
pub(super) struct Changed {
    pub(super) streams: HashSet<StreamId>,
    pub(super) shards: HashSet<Shard>,
    pub(super) seats: HashSet<Seat>,
    pub(super) removed_shards: Vec<Shard>,
}

/// A group: what its calls changed, from their application until it is durable.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Its number; groups become durable in order.
    pub(crate) number: u64,
    /// When its last call came.
    pub(crate) now: Now,
    /// Told when it is durable, or will never be.
    pub(crate) done: Arc<Done>,
    pub(crate) frame: FrameBuffer,
    pub(super) records: Records,
    pub(super) contents: FrameContents,
    /// Ends of jobs.
    pub(super) ends: Arc<Vec<(Shard, StoredEnd)>>,
    /// Shards changed as a whole: an adoption raises the head without an event.
    pub(super) reshaped: Vec<Shard>,
    /// Shards from whose schedule drafts were taken.
    pub(super) unscheduled: Vec<Shard>,
    /// Seats that were made, removed or asked for something.
    pub(super) asked: Vec<Seat>,
    pub(crate) topics: Vec<Topic>,
    /// What readers may see once the group is durable.
    heads: Vec<(Shard, Option<PublishedShard>)>,
    requests: Vec<(Seat, Option<u64>)>,
}

impl Group {
    /// An empty group with the memory of this one, which is over. All that it held is dropped here, and the state's lock is
    /// not needed for it.
    pub(crate) fn emptied(self) -> Self {
        let Self { mut frame, mut contents, ends, .. } = self;
        frame.clear();
        contents.clear();
        let mut ends = Arc::try_unwrap(ends).unwrap_or_default();
        ends.clear();
        ends.shrink_to(ENDS_KEPT);
        Self { frame, contents, ends: Arc::new(ends), ..Self::default() }
    }
}

/// A checkpoint in the making: the state at a commit boundary.
#[derive(Debug)]
pub(crate) struct Frozen {
    rows: Arc<RowChanges>,
    /// Lanes whose tails are to be read and written.
    pub(crate) tails: Arc<ChangedLanes>,
    resident: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    forgotten_tails: Vec<Vec<u8>>,
    /// The log up to here is contained.
    pub(crate) end: Mark,
    pub(crate) clock_mark: ClockMark,
}

impl FileState {
    /// An empty state; [`FileState::load`] and replay fill it.
    pub(crate) fn new(incarnation: Incarnation, tail_cache: usize) -> Self {
        Self {
            incarnation,
            streams: BTreeMap::new(),
            shards: HashMap::new(),
            seats: HashMap::new(),
            changed: Changed::default(),
            rows: Rows::default(),
            scheduled: HashSet::new(),
            kept: HashMap::new(),
            tails: Tails::new(tail_cache),
            archive: None,
            published: Arc::default(),
            fetched: Fetched::default(),
            group: Group::default(),
            taken: 0,
            ends_on_their_way: None,
            groups: 0,
            end: Mark::START,
            clock_mark: ClockMark::default(),
        }
    }

    /// Takes up the last checkpoint.
    pub(crate) fn load(&mut self, index: &Arc<Snapshot>) -> Result<()> {
        for (key, value) in index.resident()? {
            match resident::decode(&key, value)? {
                Resident::Stream(info) => drop(self.streams.insert(info.id, info)),
                Resident::Shard(shard, info) => drop(self.shards.insert(shard, info)),
                Resident::Seat(seat, state) => drop(self.seats.insert(seat, state)),
            }
        }
        self.rows.rebase(Some(Arc::clone(index)));
        self.tails.attach(Arc::clone(index))
    }

    /// After replay: everything there is, is durable, and older things are read from here.
    pub(crate) fn finish_load(&mut self, archive: Archive) {
        self.archive = Some(archive);
        self.scheduled =
            self.shards.iter().filter(|(_, info)| info.scheduled > 0).map(|(shard, _)| *shard).collect();
        self.published.set_shards(self.shards.keys().map(|shard| (*shard, self.to_publish(*shard))));
        self.published
            .set_requests(self.seats.iter().map(|(seat, state)| (*seat, Some(state.head.request_no))));
    }

    pub(super) fn archive(&self) -> &Archive {
        self.archive.as_ref().expect("set when loading finished")
    }

    /// A shard as readers may see it once everything applied is durable; `None` if there is no such shard.
    fn to_publish(&self, shard: Shard) -> Option<PublishedShard> {
        let (info, stream) = (self.shards.get(&shard)?, self.streams.get(&shard.stream)?);
        let plain = stream.settings.mode == Mode::Queue && !self.scheduled.contains(&shard);
        let kept = self.kept_of(shard).events.min(info.head);
        Some(PublishedShard { head: info.head, trimmed: info.trimmed.max(kept), plain })
    }

    /// What is kept aside of a shard.
    pub(crate) fn kept_of(&self, shard: Shard) -> KeptRange {
        self.kept.get(&shard).copied().unwrap_or_default()
    }

    /// Wakes these once the group is durable.
    pub(crate) fn announce(&mut self, topics: impl Iterator<Item = Topic>) {
        self.group.topics.extend(topics);
    }

    /// Opens a group if none is open. A group has the time of its last call: a call is never judged by a time before
    /// it began, however long the group waits for the one that is being written.
    pub(crate) fn open_group(&mut self, now: Now) {
        if self.group.number <= self.taken {
            self.groups += 1;
            self.group.number = self.groups;
        }
        self.group.now = now;
    }

    /// Whether this group still accepts calls.
    pub(crate) fn is_open(&self, group: u64) -> bool {
        self.group.number == group && group > self.taken
    }

    /// Bytes in the open group so far.
    pub(crate) fn open_bytes(&self) -> usize {
        self.group.frame.body_len()
    }

    /// Whether no call has changed anything or announced anything in the open group.
    pub(crate) fn open_is_empty(&self) -> bool {
        self.open_bytes() == 0 && self.group.topics.is_empty()
    }

    /// The end of the open group, for a call in it.
    pub(crate) fn open_done(&self) -> Arc<Done> {
        Arc::clone(&self.group.done)
    }

    /// Ends of jobs that are not in the log yet, the newest first.
    pub(super) fn fresh_ends(&self) -> impl Iterator<Item = &(Shard, StoredEnd)> {
        let on_their_way = self.ends_on_their_way.iter().flat_map(|ends| ends.iter().rev());
        self.group.ends.iter().rev().chain(on_their_way)
    }

    /// Views of jobs that all have ended, if nothing that is said of them could be of a group that is not durable yet:
    /// whoever waited for the end of a job need not wait for the open group too.
    pub(crate) fn durable_ends(
        &self,
        now: Now,
        shard: Shard,
        numbers: &[JobNumber],
        results: bool,
    ) -> Result<Option<Vec<JobView>>> {
        let mut views = Vec::with_capacity(numbers.len());
        for number in numbers {
            let JobNumber::Event(id) = number else { return Ok(None) };
            // The log has what is durable, and nothing else.
            let end = in_memory(self.archive().job_end(shard, *id, 0, Reach::Memory))?;
            let Some(end) = end.flatten() else { return Ok(None) };
            let Some(state) = jobs::untouched_end(self, now, shard, end, results)? else { return Ok(None) };
            views.push(JobView { number: *number, state });
        }
        Ok(Some(views))
    }

    /// Closes the open group and hands it to whoever writes it to the log; this empty one is the next.
    pub(crate) fn take_group(&mut self, next: Group) -> Group {
        let mut group = std::mem::replace(&mut self.group, next);
        group.records.close(group.frame.body_mut());
        self.taken = group.number;
        self.ends_on_their_way = Some(Arc::clone(&group.ends));
        group.unscheduled.dedup();
        group.unscheduled.retain(|shard| self.has_no_schedule(*shard));
        self.scheduled.retain(|shard| !group.unscheduled.contains(shard));
        let changed = group.reshaped.iter().chain(&group.unscheduled);
        let shards = group.contents.runs.iter().map(|run| &run.shard).chain(changed);
        group.heads = shards.map(|shard| (*shard, self.to_publish(*shard))).collect();
        let request_no = |seat: &Seat| self.seats.get(seat).map(|state| state.head.request_no);
        group.requests = group.asked.iter().map(|seat| (*seat, request_no(seat))).collect();
        group
    }

    /// The group's frame is durable at this place: readers may find what is in it.
    pub(crate) fn publish(&mut self, position: Option<Position>, group: &mut Group) {
        if let Some(position) = position {
            self.archive().directory().add(position, group.now.calendar, &group.contents);
        }
        self.published.set_shards(group.heads.drain(..));
        self.published.set_requests(group.requests.drain(..));
        self.ends_on_their_way = None;
    }

    /// Hands out everything that changed since the last checkpoint began. Only between groups.
    pub(crate) fn freeze(&mut self, now: Now) -> Frozen {
        let changed = std::mem::take(&mut self.changed);
        let mut resident = Vec::new();
        for id in changed.streams {
            resident.push((resident::stream_key(id), self.streams.get(&id).map(Stored::to_row)));
        }
        for shard in changed.shards {
            resident.push((resident::shard_key(shard), self.shards.get(&shard).map(Stored::to_row)));
        }
        for seat in changed.seats {
            resident.push((resident::seat_key(seat), self.seats.get(&seat).map(Stored::to_row)));
        }
        let forgotten_tails =
            changed.removed_shards.iter().map(|shard| shard_prefix(*shard).to_vec()).collect();
        Frozen {
            rows: self.rows.freeze(),
            tails: self.tails.freeze(now.wall),
            resident,
            forgotten_tails,
            end: self.end,
            clock_mark: self.clock_mark,
        }
    }
}

impl Frozen {
    /// As the index wants it, with the tails read meanwhile.
    pub(crate) fn into_write(self, tails: PackedChanges) -> CheckpointWrite {
        CheckpointWrite {
            resident: self.resident,
            tails,
            rows: self.rows.rows.iter().map(|(key, slot)| (key.to_vec(), slot.value.clone())).collect(),
            forgotten_rows: self.rows.forgotten.clone(),
            forgotten_tails: self.forgotten_tails,
        }
    }
}
