//! Forwarding: emits wait in the outbox of their seat and are appended to their partitions, once and in order
//! (contract 1.1).
//!
//! One that no partition will ever take is passed over and told to the seat, which reports it: the others of the seat
//! must not wait for it. What handlers give is checked before it is committed, so that this is for what changed since.

use std::collections::BTreeMap;

use laneway_core::limits::{APPEND_BYTES_MAX, EVENTS_PER_APPEND_MAX};
use laneway_core::store::{Append, Origin, OutboxRow, Query, Receipt, Rows, Source};
use laneway_core::{
    Conflict, ConflictReason, Draft, Fence, Incarnation, Partition, Result, Seat, Shard, Store, StoreError,
    StreamId, StreamInfo,
};

use super::catalogue::{Catalogue, CatalogueError};

/// Emits read from the outbox at a time: each may be as large as an event.
const ROWS_MAX: usize = 100;
/// Emits forwarded before that is noted.
const FORWARD_MAX: usize = 1_000;

/// What came of forwarding.
#[derive(Debug)]
pub(crate) struct Forwarded {
    /// Every emit up to this number has arrived, or never will.
    pub(crate) through: u64,
    /// Those that never will.
    pub(crate) lost: Vec<Lost>,
}

/// An emit that its stream does not take.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) stream: StreamId,
    pub(crate) draft: Draft,
    pub(crate) why: String,
}

/// Whose outbox it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Emitter {
    pub(crate) seat: Seat,
    pub(crate) fence: Fence,
    /// The life of the store in which the seat was granted. In another one its outbox may hold what the next owner put there:
    /// whatever arrives under the old fence would arrive again, and in another order.
    pub(crate) life: Incarnation,
}

/// Forwards what waits in an outbox after a number; answers up to which number everything has arrived.
///
/// Safe to repeat at any point: every partition knows the highest number it has from this outbox.
///
/// Refuses: `Adopt` when the store has another life than the one the seat was taken in, and `Fenced` when the outbox has
/// rows of another owner's life. A partition may have lost what arrived in the life before, or never had what this
/// owner believes forwarded, and would take what comes behind it: only who takes the seat anew knows where to begin.
pub(crate) async fn forward_outbox(
    store: &dyn Store,
    catalogue: &Catalogue,
    emitter: Emitter,
    after: u64,
) -> Result<Forwarded> {
    let Emitter { seat, fence, life } = emitter;
    let rows = outbox(store, seat, after).await?;
    let mut forwarded = Forwarded { through: after, lost: Vec::new() };
    let Some(last) = rows.last().map(|row| row.number) else { return Ok(forwarded) };
    if rows.iter().any(|row| row.adoptions > fence.adoptions) {
        return Err(StoreError::Fenced { seat, current: fence.term });
    }
    // Per target in order; a reset processor and an adopted shard number under other names.
    let mut parts: BTreeMap<(Shard, u32, u32), Vec<Draft>> = BTreeMap::new();
    for OutboxRow { number, incarnation, adoptions, emit } in rows {
        let info = match catalogue.stream_of(emit.stream).await {
            Ok(info) => info,
            // The stream was removed after the event was emitted: there is nowhere to go.
            Err(error @ (CatalogueError::NoStream(_) | CatalogueError::NoProcessor(_))) => {
                let (stream, why) = (emit.stream, error.to_string());
                forwarded.lost.push(Lost { stream, draft: emit.draft, why });
                continue;
            }
            Err(CatalogueError::Store(error)) => return Err(error),
        };
        let shard = info.shard(route(&info, &emit.draft, number));
        let draft = Draft { origin_seq: Some(number), ..emit.draft };
        parts.entry((shard, incarnation, adoptions)).or_default().push(draft);
    }
    for ((shard, incarnation, adoptions), drafts) in parts {
        let source = Source::Outbox { shard: seat.shard, processor: seat.processor, incarnation, adoptions };
        let info = catalogue.stream_of(shard.stream).await.map_err(|error| match error {
            CatalogueError::Store(error) => error,
            other => StoreError::NotFound { what: other.to_string() },
        })?;
        let target = Append {
            shard,
            incarnation: life,
            layout: info.layout,
            origin: Some(Origin { source, term: fence.term }),
            drafts: Vec::new(),
            object: None,
        };
        for drafts in within_an_append(drafts) {
            forwarded.lost.extend(arrive(store, catalogue, Append { drafts, ..target.clone() }).await?);
        }
    }
    forwarded.through = last;
    Ok(forwarded)
}

/// The next emits of an outbox: no more in memory than one append carries, and a page.
async fn outbox(store: &dyn Store, seat: Seat, after: u64) -> Result<Vec<OutboxRow>> {
    let (mut found, mut bytes, mut after) = (Vec::new(), 0, after);
    while found.len() < FORWARD_MAX && bytes < APPEND_BYTES_MAX {
        let Rows::Outbox(rows) = store.query(Query::Outbox(seat, after, ROWS_MAX)).await? else {
            return Err(StoreError::Corrupt {
                what: "the store answered another list than the outbox".to_owned(),
            });
        };
        let is_last = rows.len() < ROWS_MAX;
        after = rows.last().map_or(after, |row| row.number);
        bytes += rows.iter().map(|row| row.emit.draft.data.len()).sum::<usize>();
        found.extend(rows);
        if is_last {
            break;
        }
    }
    Ok(found)
}

/// Drafts in their order, as many at a time as one append may carry.
fn within_an_append(drafts: Vec<Draft>) -> Vec<Vec<Draft>> {
    let mut parts: Vec<Vec<Draft>> = Vec::new();
    let mut bytes = 0;
    for draft in drafts {
        bytes += draft.data.len();
        match parts.last_mut() {
            Some(part) if bytes <= APPEND_BYTES_MAX && part.len() < EVENTS_PER_APPEND_MAX => part.push(draft),
            _ => {
                bytes = draft.data.len();
                parts.push(vec![draft]);
            }
        }
    }
    parts
}

/// Appends drafts. When the store will never take them all together, one by one; answers those that it never takes.
async fn arrive(store: &dyn Store, catalogue: &Catalogue, append: Append) -> Result<Vec<Lost>> {
    let stream = append.shard.stream;
    let lost = |draft: &Draft, why| Lost { stream, draft: draft.clone(), why };
    let mut all = Vec::new();
    match offer(store, catalogue, append.clone()).await? {
        Offered::Taken(receipts) => {
            let each = append.drafts.iter().zip(&receipts);
            all.extend(each.filter_map(|(draft, receipt)| stale(receipt).map(|why| lost(draft, why))));
        }
        Offered::Refused(why) if append.drafts.len() == 1 => all.push(lost(&append.drafts[0], why)),
        Offered::Refused(_) => {
            for draft in &append.drafts {
                let alone = Append { drafts: vec![draft.clone()], ..append.clone() };
                match offer(store, catalogue, alone).await? {
                    Offered::Taken(receipts) => {
                        all.extend(receipts.iter().filter_map(stale).map(|why| lost(draft, why)));
                    }
                    Offered::Refused(why) => all.push(lost(draft, why)),
                }
            }
        }
    }
    Ok(all)
}

/// What a store says to an append.
enum Offered {
    Taken(Vec<Receipt>),
    /// It can never be done.
    Refused(String),
}

/// Why an event that was sent is not in its lane: nobody reads the receipts of emits.
fn stale(receipt: &Receipt) -> Option<String> {
    let Receipt::Stale { newest, generation } = receipt else { return None };
    Some(format!("stale: event {newest} of its lane has generation {generation}"))
}

async fn offer(store: &dyn Store, catalogue: &Catalogue, append: Append) -> Result<Offered> {
    match catalogue.while_life_lasts(append.incarnation, || store.append(append.clone())).await {
        Ok(appended) => Ok(Offered::Taken(appended.receipts)),
        Err(StoreError::Refused(refusal)) => Ok(Offered::Refused(refusal.to_string())),
        // Somebody else owns the seat: it is not ours to say what becomes of its emits.
        Err(error @ StoreError::Conflict(Conflict { reason: ConflictReason::OriginTerm { .. }, .. })) => {
            Err(error)
        }
        Err(error @ StoreError::Conflict(_)) => Ok(Offered::Refused(error.to_string())),
        Err(error @ (StoreError::NotFound { .. } | StoreError::Moved { .. })) => {
            // The next try sees what became of the stream.
            catalogue.refresh().await?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

fn route(info: &StreamInfo, draft: &Draft, number: u64) -> Partition {
    let partitions = info.settings.partitions;
    match &draft.key {
        Some(key) => key.partition(partitions),
        None => Partition(u32::try_from(number % u64::from(partitions.max(1))).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use laneway_core::store::{Commit, Define, Emit, Entry, Owner, Read, ReadFrom, Seize};
    use laneway_core::{CommitId, EventId, Key, Kind, ManualClock, Mode, Nonce, StartAt, StreamSettings};
    use laneway_embedded::MemoryStore;

    use super::*;

    fn check(sizes: &[usize], parts: &[usize]) {
        let drafts = sizes.iter().map(|size| Draft::new(None, Kind::default(), vec![0; *size])).collect();
        let found: Vec<usize> = within_an_append(drafts).iter().map(Vec::len).collect();
        assert_eq!(found, parts);
    }

    #[test]
    fn drafts_are_sent_in_as_few_appends_as_can_be() {
        check(&[], &[]);
        check(&[1 << 20; 16], &[16]);
        check(&[1 << 20; 33], &[16, 16, 1]);
        check(&[0; 2_001], &[1_000, 1_000, 1]);
    }

    struct Outbox {
        store: Arc<MemoryStore>,
        catalogue: Catalogue,
        seat: Seat,
        fence: Fence,
        to: Arc<StreamInfo>,
    }

    /// A seat that has emitted these drafts to a stream of one partition, so many per commit.
    async fn outbox(mode: Mode, drafts: Vec<Draft>, per_commit: usize) -> Outbox {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
        let catalogue = Catalogue::new(store.clone());
        let define = |name: &str, mode| Define::Stream {
            name: name.to_owned(),
            expect: None,
            settings: StreamSettings { partitions: 1, mode, ..StreamSettings::default() },
        };
        let from = catalogue.define(define("from", Mode::Queue)).await.expect("new").expect("a stream");
        let to = catalogue.define(define("to", mode)).await.expect("new").expect("a stream");
        let (name, settings) = ("charge".to_owned(), Bytes::new());
        let processor = Define::Processor { stream: from.id, name, start: StartAt::Beginning, settings };
        catalogue.define(processor).await.expect("new");
        let (_, processor) = catalogue.processor("charge").await.expect("it exists");
        let seat = Seat { shard: from.shard(Partition(0)), processor };
        let incarnation = store.about().incarnation;
        let seize = Seize { seat, incarnation, expect: None, nonce: Nonce(7), node: Bytes::new() };
        let mut fence = store.seize(seize).await.expect("nobody has it").progress.fence;
        for (number, drafts) in (1..).zip(drafts.chunks(per_commit)) {
            let emits = drafts.iter().map(|draft| Emit { stream: to.id, draft: draft.clone() }).collect();
            let commit = Commit { emits, ..Commit::new(seat, fence, CommitId(number)) };
            fence = store.commit(commit).await.expect("it is within the limits").fence;
        }
        Outbox { store, catalogue, seat, fence, to }
    }

    impl Outbox {
        async fn forward(&self, after: u64) -> Forwarded {
            let life = self.store.about().incarnation;
            let emitter = Emitter { seat: self.seat, fence: self.fence, life };
            let answer = forward_outbox(&*self.store, &self.catalogue, emitter, after).await;
            answer.expect("nothing stands in its way for ever")
        }

        /// The same after a failover that lost nothing, with the seat taken anew.
        async fn in_another_life(&self) -> Self {
            let before = self.store.about().incarnation;
            let store = Arc::new(self.store.restored(Incarnation(before.0 + 1)));
            let catalogue = Catalogue::new(store.clone());
            let expect = Some(Owner { term: self.fence.term, nonce: self.fence.nonce });
            let seize = |incarnation| {
                let (expect, nonce) = (expect.clone(), Nonce(8));
                store.seize(Seize { seat: self.seat, incarnation, expect, nonce, node: Bytes::new() })
            };
            let resume = catalogue.in_this_life(seize).await.expect("nobody else took it");
            let fence = resume.progress.fence;
            Self { store, catalogue, seat: self.seat, fence, to: Arc::clone(&self.to) }
        }

        async fn emit(&mut self, kind: &str) {
            let emits = vec![Emit { stream: self.to.id, draft: draft(Some("ann"), kind, 0) }];
            let commit = Commit { emits, ..Commit::new(self.seat, self.fence, CommitId(99)) };
            self.fence = self.store.commit(commit).await.expect("the seat is ours").fence;
        }

        async fn arrived(&self) -> Vec<String> {
            let read = Read {
                shard: self.to.shard(Partition(0)),
                from: ReadFrom::After(EventId(0)),
                limit: 1_000,
                bytes: 8 << 20,
                processor: None,
                states: false,
            };
            let page = self.store.read(read).await.expect("it is there");
            let kind =
                |entry: Entry| if let Entry::Event(event) = entry { event.kind } else { Kind::default() };
            page.entries.into_iter().map(|entry| kind(entry).as_str().to_owned()).collect()
        }
    }

    fn draft(key: Option<&str>, kind: &str, size: usize) -> Draft {
        let key = key.map(|key| Key::new(key.to_owned()).expect("a short key"));
        Draft::new(key, Kind::new(kind).expect("a short type"), vec![0; size])
    }

    #[tokio::test]
    async fn more_than_an_append_carries_goes_with_several() {
        let outbox = outbox(Mode::Queue, vec![draft(Some("ann"), "", 1 << 20); 250], 20).await;
        let mut through = 0;
        while through < 250 {
            let forwarded = outbox.forward(through).await;
            assert!(forwarded.through > through && forwarded.lost.is_empty(), "{forwarded:?}");
            through = forwarded.through;
        }
        let Rows::Seats(info, _) =
            outbox.store.query(Query::Seats(outbox.to.shard(Partition(0)))).await.expect("it is there")
        else {
            panic!("seats")
        };
        assert_eq!(info.head, EventId(250));
    }

    #[tokio::test]
    async fn emit_that_its_stream_never_takes_is_answered_and_holds_up_no_other() {
        let mut unexpected = draft(Some("bob"), "unexpected", 0);
        unexpected.expect_prev = Some(Some(EventId(99)));
        let drafts = vec![
            draft(Some("ann"), "first", 0),
            draft(None, "without key", 0),
            unexpected,
            draft(Some("eve"), "last", 0),
        ];
        let outbox = outbox(Mode::Latest, drafts, 4).await;
        let forwarded = outbox.forward(0).await;
        let lost: Vec<&str> = forwarded.lost.iter().map(|lost| lost.draft.kind.as_str()).collect();
        assert_eq!((forwarded.through, lost), (4, vec!["without key", "unexpected"]));
        assert!(forwarded.lost[0].why.contains("key"), "{}", forwarded.lost[0].why);
        assert_eq!(outbox.arrived().await, ["first", "last"]);
        // Again, as after a crash before that was noted: nothing arrives twice.
        outbox.forward(0).await;
        assert_eq!(outbox.arrived().await, ["first", "last"]);
    }

    #[tokio::test]
    async fn emit_that_arrived_is_known_though_its_shard_was_adopted_since() {
        let drafts = ["first", "second"].map(|kind| draft(Some("ann"), kind, 0));
        let before = outbox(Mode::Queue, drafts.to_vec(), 1).await;
        before.forward(0).await;
        // The store comes back with all it had; that the emits arrived was not noted yet.
        let mut after = before.in_another_life().await;
        after.emit("third").await;
        assert_eq!(after.forward(0).await.through, 3);
        assert_eq!(after.arrived().await, ["first", "second", "third"]);
    }

    #[tokio::test]
    async fn who_took_the_seat_in_another_life_forwards_nothing() {
        let before = outbox(Mode::Queue, vec![draft(Some("ann"), "first", 0)], 1).await;
        let after = before.in_another_life().await;
        let life = before.store.about().incarnation;
        let emitter = Emitter { seat: before.seat, fence: before.fence, life };
        let refused = forward_outbox(&*after.store, &after.catalogue, emitter, 0).await;
        assert!(matches!(refused, Err(StoreError::Adopt { .. })), "{refused:?}");
        assert_eq!(after.arrived().await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn emit_that_is_stale_when_it_arrives_is_answered() {
        let of = |generation, kind| Draft { generation: Some(generation), ..draft(Some("ann"), kind, 0) };
        let outbox = outbox(Mode::Latest, vec![of(2, "newest"), of(1, "old"), of(3, "newer")], 3).await;
        let forwarded = outbox.forward(0).await;
        let [lost] = &forwarded.lost[..] else { panic!("{forwarded:?}") };
        assert_eq!((lost.draft.kind.as_str(), forwarded.through), ("old", 3));
        assert_eq!(lost.why, "stale: event 1 of its lane has generation 2");
    }
}
