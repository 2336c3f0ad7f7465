//! Orders of many customers: sent through a store on disk, run in lanes, settled, and checked.
//!
//! `cargo run --release -p laneway-embedded --example by_hand [-- FOLDER]`. Given a folder, the data stays there and
//! the next run goes on where this one ended, also if this one was killed.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use futures::future::try_join_all;
use laneway_core::store::{
    Append, Commit, Define, Entry, Origin, Owner, Query, Read, ReadFrom, Rows, Seize, Source,
};
use laneway_core::{
    Bytes, Clock, CommitId, Draft, Durability, Event, Key, Kind, Nonce, Partition, Seat, Shard, StartAt,
    Store, StreamInfo, StreamSettings, SystemClock, Term,
};
use laneway_embedded::FileStore;
use laneway_lanes::{End, Lanes, Outcome, Run, Settings};
use parking_lot::Mutex;

const CUSTOMERS: u64 = 500;
const PARTITIONS: u32 = 4;
type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let temporary = tempfile::tempdir()?;
    let out = &mut std::io::stdout();
    let in_order = run(given.as_deref().unwrap_or(temporary.path()), 10_000, out).await?;
    match given {
        Some(folder) => {
            writeln!(out, "the data lies in {}; run this again to go on there", folder.display())?
        }
        None => {
            writeln!(out, "the data was in a temporary folder; to keep it:")?;
            writeln!(out, "  cargo run --release -p laneway-embedded --example by_hand -- .laneway-demo")?
        }
    }
    Ok(if in_order { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sends so many orders, runs all that are not settled, and answers whether every lane ran in order.
pub(crate) async fn run(folder: &Path, orders: u64, out: &mut dyn Write) -> Result<bool> {
    let store = FileStore::open(folder)?;
    let stream = define(&store).await?;
    let started = SystemClock.steady();
    let (made, appends, durability) = send(&store, &stream, orders).await?;
    let seconds = SystemClock.steady().since(started).as_secs_f64();
    writeln!(out, "sent   {orders} orders of {CUSTOMERS} customers in {appends} appends, {seconds:.2} s")?;
    writeln!(out, "       {:.0} orders/s, every receipt says: {durability}", orders as f64 / seconds)?;

    // Orders of one customer run one after the other, those of different customers side by side.
    let witness = Arc::new(Mutex::new(Witness::default()));
    let seen = Arc::clone(&witness);
    let ship = move |run: Run<Key, Event>| ship(Arc::clone(&seen), run);
    let lanes = Lanes::start(Settings { concurrency: 64, ..Settings::default() }, ship)?;
    let started = SystemClock.steady();
    let counts = try_join_all(shards(&stream).map(|shard| work(&store, &stream, &lanes, shard))).await?;
    let seconds = SystemClock.steady().since(started).as_secs_f64();
    let (settled, commits) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    let witness = std::mem::take(&mut *witness.lock());
    writeln!(out, "ran    {settled} orders in {} lanes, up to {} at once", witness.last.len(), witness.most)?;
    writeln!(out, "       {:.0} orders/s, settled by {commits} commits", settled as f64 / seconds)?;
    show_lane(&store, &stream, &customer(17), out).await?;

    let missing = made.iter().filter(|(key, number)| witness.last.get(*key) != Some(*number)).count();
    let in_order = witness.broken == 0 && missing == 0;
    match in_order {
        true => writeln!(out, "order checked: every lane ran in order, one at a time")?,
        false => {
            writeln!(out, "order BROKEN: {} orders out of turn, {missing} lanes incomplete", witness.broken)?
        }
    }
    store.close()?;
    Ok(in_order)
}

/// Sees what really runs, and knows nothing of ids and lanes: two orders of a customer at once, or one out of turn.
#[derive(Default)]
pub(crate) struct Witness {
    running: HashSet<Key>,
    last: HashMap<Key, u64>,
    most: usize,
    pub(crate) broken: u64,
}

impl Witness {
    pub(crate) fn begin(&mut self, customer: &Key, number: u64) {
        let alone = self.running.insert(customer.clone());
        let before = self.last.insert(customer.clone(), number);
        self.broken += u64::from(!alone || before.is_some_and(|before| number != before + 1));
        self.most = self.most.max(self.running.len());
    }

    pub(crate) fn end(&mut self, customer: &Key) {
        self.running.remove(customer);
    }
}

/// The handler: it begins, waits for something, ends.
async fn ship(witness: Arc<Mutex<Witness>>, run: Run<Key, Event>) -> Outcome<(), String> {
    let text = String::from_utf8_lossy(&run.value().data);
    let Ok(number) = text.parse::<u64>() else { return Outcome::Fail(format!("no order: {text}")) };
    witness.lock().begin(run.key(), number);
    tokio::task::yield_now().await;
    witness.lock().end(run.key());
    Outcome::Done(())
}

/// Sends the next orders. They are numbered, so a run that was killed is simply sent again: the store knows what it
/// has. Answers how many orders each customer has made over all runs, the appends, and what the receipts say.
async fn send(
    store: &FileStore,
    stream: &StreamInfo,
    orders: u64,
) -> Result<(HashMap<Key, u64>, u64, Durability)> {
    let mut before = 0;
    for shard in shards(stream) {
        if let Rows::Sources(sources) = store.query(Query::Sources(shard, None, 1)).await? {
            before = sources.iter().map(|source| source.number).fold(before, u64::max);
        }
    }
    let first = before - before % orders + 1;
    let (mut made, mut appends, mut durability) = (HashMap::new(), 0, Durability::Memory);
    let mut batches = vec![Vec::new(); PARTITIONS as usize];
    for order in 1..first + orders {
        let key = customer((order * 7919 + order / CUSTOMERS) % CUSTOMERS);
        let number = made.entry(key.clone()).and_modify(|number| *number += 1).or_insert(1);
        if order >= first {
            let batch = &mut batches[key.partition(PARTITIONS).0 as usize];
            let draft = Draft::new(Some(key), Kind::new("order")?, number.to_string());
            batch.push(Draft { origin_seq: Some(order), ..draft });
        }
    }
    for (shard, batch) in shards(stream).zip(batches) {
        for drafts in batch.chunks(100).map(<[Draft]>::to_vec) {
            let origin = Some(Origin { source: Source::Named("orders example".into()), term: Term(1) });
            let (incarnation, layout) = (store.about().incarnation, stream.layout);
            let append = Append { shard, incarnation, layout, origin, drafts, object: None };
            durability = store.append(append).await?.durability;
            appends += 1;
        }
    }
    Ok((made, appends, durability))
}

/// Owns one partition: reads on from what is settled, runs it in lanes, settles it. Answers events and commits.
async fn work(
    store: &FileStore,
    stream: &StreamInfo,
    lanes: &Lanes<Key, Event, (), String>,
    shard: Shard,
) -> Result<(u64, u64)> {
    let seat = Seat { shard, processor: stream.processors[0].id };
    let Rows::Seats(_, seats) = store.query(Query::Seats(shard)).await? else {
        return Err("no seats".into());
    };
    let before = seats[0].progress.fence;
    let expect = (before.term > Term(0)).then_some(Owner { term: before.term, nonce: before.nonce });
    let (incarnation, nonce) = (store.about().incarnation, Nonce(u128::from(SystemClock.calendar().0)));
    let resume = store.seize(Seize { seat, incarnation, expect, nonce, node: "example".into() }).await?;
    let (mut fence, mut floor) = (resume.progress.fence, resume.progress.window.floor());
    let (mut settled, mut commits) = (0, 0);
    loop {
        let events = read(store, shard, ReadFrom::After(floor)).await?;
        if events.is_empty() {
            return Ok((settled, commits));
        }
        let pushes = events.iter().filter_map(|event| Some((event.key.clone()?, event.clone())));
        let mut commit = Commit::new(seat, fence, CommitId(u128::from(fence.version)));
        for (event, ticket) in events.iter().zip(lanes.push_many(pushes).await) {
            match ticket.map_err(|error| format!("{error:?}"))?.await {
                End::Done(()) => commit.passed.insert(event.id),
                end => return Err(format!("order {} ended {end:?}", event.id).into()),
            }
        }
        let committed = store.commit(commit).await?;
        (fence, floor) = (committed.fence, committed.floor);
        (settled, commits) = (settled + events.len() as u64, commits + 1);
    }
}

/// Shows the last events of one lane: each names the one before it.
async fn show_lane(store: &FileStore, stream: &StreamInfo, key: &Key, out: &mut dyn Write) -> Result<()> {
    let shard = stream.shard(key.partition(PARTITIONS));
    let Rows::Lane(tail) = store.query(Query::Lane(shard, key.clone())).await? else { return Ok(()) };
    writeln!(out, "lane   {key} in partition {}, newest first:", shard.partition)?;
    let mut next = tail.map(|tail| tail.id);
    for _ in 0..4 {
        let Some(id) = next else { break };
        for event in read(store, shard, ReadFrom::Ids(vec![id])).await? {
            let (prev, seq) = (event.prev.unwrap_or_default(), event.seq.unwrap_or_default());
            let number = String::from_utf8_lossy(&event.data);
            writeln!(
                out,
                "       id {id:>6}   prev {prev:>6}   seq {seq:>4}   {} {number}",
                event.kind.as_str()
            )?;
            next = event.prev;
        }
    }
    Ok(())
}

async fn read(store: &FileStore, shard: Shard, from: ReadFrom) -> Result<Vec<Event>> {
    let page =
        store.read(Read { shard, from, limit: 500, bytes: 1 << 20, processor: None, states: false }).await?;
    let events = page.entries.into_iter().filter_map(|entry| match entry {
        Entry::Event(event) => Some(event),
        Entry::Superseded { .. } => None,
    });
    Ok(events.collect())
}

/// The stream and its one processor, made by the first run.
async fn define(store: &FileStore) -> Result<StreamInfo> {
    if let Rows::Streams(streams) = store.query(Query::Streams).await?
        && let Some(stream) = streams.into_iter().find(|stream| !stream.processors.is_empty())
    {
        return Ok(stream);
    }
    let settings = StreamSettings { partitions: PARTITIONS, ..StreamSettings::default() };
    let orders = Define::Stream { name: "orders".to_owned(), expect: None, settings };
    let stream = store.define(orders).await?.stream.ok_or("a new stream is answered")?.id;
    let (name, start) = ("ship".to_owned(), StartAt::Beginning);
    let processor = Define::Processor { stream, name, start, settings: Bytes::new() };
    Ok(store.define(processor).await?.stream.ok_or("the processor's stream is answered")?)
}

fn shards(stream: &StreamInfo) -> impl Iterator<Item = Shard> + use<'_> {
    (0..PARTITIONS).map(|partition| stream.shard(Partition(partition)))
}

fn customer(number: u64) -> Key {
    Key::new(format!("customer-{number:03}")).expect("a short name")
}
