//! Everything that can be read of a shard, in a form that can be compared.
//!
//! Used for "the refused call wrote nothing", "the reopened store has everything" and to compare two stores.

use laneway_core::store::{
    Counts, DeadLetter, Ending, Entry, JobEnd, LaneSelect, LaneTail, LaneView, Lanes, OutboxRow, Query,
    ReadFrom, RequestRow, Rows, ScheduledRow, SeatView, Versioned,
};
use laneway_core::{EventId, Key, ProcessorId, Seat, Shard, ShardInfo, Window};

use super::Bench;

/// One shard, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The shard itself.
    pub info: ShardInfo,
    /// Its events.
    pub entries: Vec<Entry>,
    /// Ends of its lanes.
    pub tails: Vec<LaneTail>,
    /// Drafts that are not due.
    pub scheduled: Vec<ScheduledRow>,
    /// Events with a priority.
    pub urgent: Vec<(EventId, u8)>,
    /// Ended jobs.
    pub ended: Vec<JobEnd>,
    /// Counts.
    pub counts: Counts,
    /// Its seats.
    pub seats: Vec<SeatSnapshot>,
}

/// One seat, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct SeatSnapshot {
    /// Progress, with an empty window: the window is in the two fields below, in a form that has one value
    /// for one meaning.
    pub view: SeatView,
    /// The floor.
    pub floor: EventId,
    /// Passed ids above the floor.
    pub above: Vec<EventId>,
    /// Lane records with their sidings.
    pub lanes: Vec<LaneView>,
    /// States.
    pub states: Vec<(Key, Versioned)>,
    /// Ends other than done.
    pub endings: Vec<Ending>,
    /// Dead letters.
    pub dead: Vec<DeadLetter>,
    /// Emits on their way.
    pub outbox: Vec<OutboxRow>,
    /// Requests without effect.
    pub requests: Vec<RequestRow>,
}

const ALL: usize = 10_000;

macro_rules! rows {
    ($bench:expr, $query:expr, $kind:ident) => {
        match $bench.query($query).await {
            Rows::$kind(rows) => rows,
            other => panic!("rows of another kind were answered: {other:?}"),
        }
    };
}

impl Bench {
    /// Reads everything of a shard.
    pub async fn snapshot(&self, shard: Shard) -> Snapshot {
        let (info, seats) = self.seats(shard).await;
        let from = ReadFrom::After(info.trimmed);
        let entries = self.try_read(shard, from).await.expect("reading above the trim").entries;
        let mut seat_snapshots = Vec::new();
        for view in seats {
            seat_snapshots.push(self.seat_snapshot(shard, view).await);
        }
        Snapshot {
            entries,
            tails: rows!(self, Query::Tails(shard, None, ALL), Tails),
            scheduled: rows!(self, Query::Scheduled(shard, 0, ALL), Scheduled),
            urgent: rows!(self, Query::Urgent(shard, EventId(0), ALL), Urgent),
            ended: rows!(self, Query::Ended(shard, EventId(0), ALL), Ended).ends,
            counts: rows!(self, Query::Counts(shard), Counts),
            seats: seat_snapshots,
            info,
        }
    }

    async fn seat_snapshot(&self, shard: Shard, mut view: SeatView) -> SeatSnapshot {
        let seat = Seat { shard, processor: view.processor };
        let window = std::mem::replace(&mut view.progress.window, Window::at(EventId(0)));
        let select = LaneSelect::Blocked { kind: None, after: None, limit: ALL };
        let lanes = self
            .store()
            .lanes(Lanes { seat, select, siding: ALL, states: true })
            .await
            .expect("the seat is listed");
        SeatSnapshot {
            view,
            floor: window.floor(),
            above: above(&window),
            lanes,
            states: rows!(self, Query::States(seat, None, ALL), States),
            endings: rows!(self, Query::Endings(seat, EventId(0), ALL), Endings),
            dead: rows!(self, Query::Dead(seat, EventId(0), ALL), Dead),
            outbox: rows!(self, Query::Outbox(seat, 0, ALL), Outbox),
            requests: rows!(self, Query::Requests(seat, 0, ALL), Requests),
        }
    }
}

impl Snapshot {
    /// The seat of a processor.
    pub fn seat(&self, processor: ProcessorId) -> &SeatSnapshot {
        let found = self.seats.iter().find(|seat| seat.view.processor == processor);
        found.expect("the processor has a seat")
    }
}

/// Passed ids above the floor.
pub(crate) fn above(window: &Window) -> Vec<EventId> {
    let words = window.words();
    let ids = words.flat_map(|(word, bits)| {
        (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| EventId(word * 64 + bit))
    });
    ids.filter(|id| *id > window.floor()).collect()
}
