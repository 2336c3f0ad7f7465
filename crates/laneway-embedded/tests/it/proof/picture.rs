//! Everything that can be read of a shard, in a form that can be compared. Reading may fail: damage tests want
//! that.

use std::fmt::Debug;

use laneway_core::store::{
    Counts, DeadLetter, Ending, Entry, JobEnd, JobView, Jobs, LaneSelect, LaneTail, LaneView, Lanes,
    OutboxRow, Query, Read, ReadFrom, RequestRow, Rows, ScheduledRow, SeatView, Versioned,
};
use laneway_core::{Document, EventId, JobNumber, Key, Result, Seat, ShardInfo, Window};

use super::world::{Ground, Territory, Whole};

const ALL: usize = 10_000;

/// One shard, whole.
#[derive(Debug, PartialEq)]
pub(crate) struct Picture {
    pub(crate) info: ShardInfo,
    pub(crate) entries: Vec<Entry>,
    tails: Vec<LaneTail>,
    scheduled: Vec<ScheduledRow>,
    urgent: Vec<(EventId, u8)>,
    ended: Vec<JobEnd>,
    jobs: Vec<JobView>,
    counts: Counts,
    pub(crate) seats: Vec<SeatPicture>,
}

/// One seat, whole.
#[derive(Debug, PartialEq)]
pub(crate) struct SeatPicture {
    pub(crate) view: SeatView,
    floor: EventId,
    above: Vec<(u64, u64)>,
    lanes: Vec<LaneView>,
    states: Vec<(Key, Versioned)>,
    endings: Vec<Ending>,
    dead: Vec<DeadLetter>,
    outbox: Vec<OutboxRow>,
    requests: Vec<RequestRow>,
}

macro_rules! rows {
    ($store:expr, $query:expr, $kind:ident) => {
        match $store.query($query).await? {
            Rows::$kind(rows) => rows,
            other => panic!("rows of another kind were answered: {other:?}"),
        }
    };
}

/// All events after an id, page by page.
pub(crate) async fn entries(store: &dyn Whole, ground: &Ground, mut after: EventId) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let from = ReadFrom::After(after);
        let read =
            Read { shard: ground.shard, from, limit: 500, bytes: 4 << 20, processor: None, states: false };
        let page = store.read(read).await?;
        let Some(last) = page.entries.last() else { return Ok(entries) };
        after = last.id();
        entries.extend(page.entries);
    }
}

impl Picture {
    pub(crate) async fn take(store: &dyn Whole, ground: &Ground) -> Result<Self> {
        let shard = ground.shard;
        let (info, views) = match store.query(Query::Seats(shard)).await? {
            Rows::Seats(info, views) => (info, views),
            other => panic!("seats were asked for: {other:?}"),
        };
        let mut seats = Vec::new();
        for view in views {
            seats.push(SeatPicture::take(store, Seat { shard, processor: view.processor }, view).await?);
        }
        let entries = entries(store, ground, info.trimmed).await?;
        let ended = rows!(store, Query::Ended(shard, EventId(0), ALL), Ended).ends;
        let events = (1..=info.head.0).rev().take(200).map(|id| JobNumber::Event(EventId(id)));
        let tickets = (1..=info.scheduled).rev().take(50).map(JobNumber::Schedule);
        let numbers = events.chain(tickets).collect();
        Ok(Self {
            entries,
            tails: rows!(store, Query::Tails(shard, None, ALL), Tails),
            scheduled: rows!(store, Query::Scheduled(shard, 0, ALL), Scheduled),
            urgent: rows!(store, Query::Urgent(shard, EventId(0), ALL), Urgent),
            ended,
            jobs: store.jobs(Jobs::Get { shard, numbers, results: true }).await?,
            counts: rows!(store, Query::Counts(shard), Counts),
            seats,
            info,
        })
    }

    /// The first thing in which two pictures differ.
    pub(crate) fn difference(&self, expected: &Self) -> Option<String> {
        let pairs: [(&str, &dyn Debug, &dyn Debug, bool); 9] = [
            ("shard", &self.info, &expected.info, self.info == expected.info),
            ("seats", &self.seats, &expected.seats, self.seats == expected.seats),
            ("events", &self.entries, &expected.entries, self.entries == expected.entries),
            ("tails", &self.tails, &expected.tails, self.tails == expected.tails),
            ("schedule", &self.scheduled, &expected.scheduled, self.scheduled == expected.scheduled),
            ("urgent", &self.urgent, &expected.urgent, self.urgent == expected.urgent),
            ("ended", &self.ended, &expected.ended, self.ended == expected.ended),
            ("jobs", &self.jobs, &expected.jobs, self.jobs == expected.jobs),
            ("counts", &self.counts, &expected.counts, self.counts == expected.counts),
        ];
        let (name, found, expected, _) = pairs.into_iter().find(|(_, _, _, same)| !same)?;
        Some(format!("{name}: {}", first_difference(&format!("{found:?}"), &format!("{expected:?}"))))
    }
}

/// The place where two texts part, with a little around it.
pub(crate) fn first_difference(found: &str, expected: &str) -> String {
    let same = found.bytes().zip(expected.bytes()).take_while(|(left, right)| left == right).count();
    let around = |text: &str| {
        let bytes = &text.as_bytes()[same.saturating_sub(160).min(text.len())..(same + 200).min(text.len())];
        String::from_utf8_lossy(bytes).into_owned()
    };
    format!("found ..{}.. expected ..{}..", around(found), around(expected))
}

impl SeatPicture {
    async fn take(store: &dyn Whole, seat: Seat, mut view: SeatView) -> Result<Self> {
        let window = std::mem::replace(&mut view.progress.window, Window::at(EventId(0)));
        let select = LaneSelect::Blocked { kind: None, after: None, limit: ALL };
        Ok(Self {
            view,
            floor: window.floor(),
            above: window.words().map(|(word, bits)| (word, above(word, bits, window.floor()))).collect(),
            lanes: store.lanes(Lanes { seat, select, siding: ALL, states: true }).await?,
            states: rows!(store, Query::States(seat, None, ALL), States),
            endings: rows!(store, Query::Endings(seat, EventId(0), ALL), Endings),
            dead: rows!(store, Query::Dead(seat, EventId(0), ALL), Dead),
            outbox: rows!(store, Query::Outbox(seat, 0, ALL), Outbox),
            requests: rows!(store, Query::Requests(seat, 0, ALL), Requests),
        })
    }
}

/// The bits of a word above the floor: what is below it has no one form.
fn above(word: u64, bits: u64, floor: EventId) -> u64 {
    if floor.0 / 64 == word { bits & !(u64::MAX >> (63 - floor.0 % 64)) } else { bits }
}

/// All that an actor can have changed.
#[derive(Debug, PartialEq)]
pub(crate) struct Land {
    pub(crate) shards: Vec<Picture>,
    documents: Vec<Document>,
}

impl Land {
    pub(crate) async fn take(store: &dyn Whole, territory: &Territory) -> Result<Self> {
        let mut shards = Vec::new();
        for ground in territory.grounds() {
            shards.push(Picture::take(store, ground).await?);
        }
        Ok(Self { shards, documents: store.list(&format!("actor-{}/", territory.actor)).await? })
    }

    pub(crate) fn difference(&self, expected: &Self) -> Option<String> {
        let mut pairs = self.shards.iter().zip(&expected.shards);
        let shard = pairs.find_map(|(found, expected)| found.difference(expected));
        let documents = (self.documents != expected.documents)
            .then(|| format!("documents: {:?}, expected {:?}", self.documents, expected.documents));
        shard.or(documents)
    }
}
