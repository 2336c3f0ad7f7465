//! The store: every method is one script on one shard, called with the keys it may touch.
//!
//! Scripts that look at all seats of a shard are called with the keys of those this process knows of; one that knows better
//! answers which there are, and is called again. A shard that is not there may be one that a definition has not reached
//! because its caller died: then the definition is finished first.

use std::sync::Arc;

use hashbrown::HashMap;
use laneway_core::{Capabilities, Incarnation, ProcessorId, Result, Seat, Shard, StoreError, StreamId};
use parking_lot::Mutex;

use crate::clock::{CallTimes, ServerClock};
use crate::failure::{Failure, Subject, judge};
use crate::keys::Names;
use crate::link::Links;
use crate::options::RedisOptions;
use crate::pack::Arg;
use crate::reply::{Reply, corrupt};
use crate::script::{Scripts, Source};
use crate::server::ServerReport;
use crate::wakeups::{self, Heard, Listener};

/// How often a call is told of other seats than it came with before it gives up: each time a definition changed meanwhile.
const LEARNED_MAX: usize = 8;

/// How often the clocks are compared for one call before it gives up.
const COMPARED_MAX: usize = 4;

/// A store on a Redis server. Clones share its connection.
#[derive(Clone, Debug)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    names: Names,
    scripts: Scripts,
    links: Links,
    clock: ServerClock,
    /// Processors of streams, as far as shards told of them.
    known: Mutex<HashMap<StreamId, Known>>,
    heard: Arc<Heard>,
    _listener: Listener,
}

/// Processors of a stream by the version of its definition.
#[derive(Clone, Debug, Default)]
struct Known {
    def: u64,
    processors: Vec<ProcessorId>,
}

impl RedisStore {
    /// Opens a store: connects, asks the server who it is and how safe it is, and finishes definitions that were left
    /// half done.
    pub async fn open(options: RedisOptions) -> Result<Self> {
        let (scripts, names) = (Scripts::new(), Names::new(&options.namespace));
        let clock = ServerClock::new(options.clock.clone(), options.clock_settle);
        let within = options.connect_within;
        let links = Links::open(options, &scripts).await?;
        let heard = Arc::new(Heard::default());
        let listener =
            wakeups::listen(links.client().clone(), names.channel(), Arc::clone(&heard), within).await;
        let known = Mutex::default();
        let inner = Inner { names, scripts, links, clock, known, heard, _listener: listener };
        let store = Self { inner: Arc::new(inner) };
        store.finish_definitions().await?;
        Ok(store)
    }

    /// Asks a server what it says of itself, and whether a store may be on it. Changes nothing there.
    pub async fn examine(options: &RedisOptions) -> Result<ServerReport> {
        Links::examine(options).await
    }

    /// What the server said of itself when it was last connected to.
    pub fn report(&self) -> ServerReport {
        self.inner.links.last().report
    }

    /// How this store differs from others, and which life of the server the newest connection found.
    pub(crate) fn server(&self) -> (Capabilities, Incarnation) {
        let (durability, incarnation) = self.inner.links.life();
        (Capabilities { durability, persistent: true, shared: true }, incarnation)
    }

    pub(crate) fn heard(&self) -> &Heard {
        &self.inner.heard
    }

    pub(crate) fn names(&self) -> &Names {
        &self.inner.names
    }

    pub(crate) fn scripts(&self) -> &Scripts {
        &self.inner.scripts
    }

    pub(crate) async fn tell(&self, topic: &[u8]) -> Result<()> {
        let link = self.inner.links.get(&self.inner.scripts).await?;
        self.inner.links.publish(&link, &self.inner.names.channel(), topic).await
    }

    /// Calls a script once.
    pub(crate) async fn call(
        &self,
        source: &Source,
        subject: Subject,
        keys: &[String],
        call: &Arg,
    ) -> Result<Reply, Failure> {
        let mut packed = Vec::with_capacity(256);
        call.pack(&mut packed);
        for _ in 0..COMPARED_MAX {
            self.keep_time().await?;
            let times = self.inner.clock.times().ok_or_else(|| corrupt("the clocks were not compared"))?;
            match self.run(source, subject, keys, &packed, &times).await {
                Err(Failure::Clock) => self.compare_clocks().await?,
                answer => return answer,
            }
        }
        let reason = "the clock of the Redis server jumps again and again".to_owned();
        Err(Failure::Final(StoreError::Down { reason }))
    }

    async fn run(
        &self,
        source: &Source,
        subject: Subject,
        keys: &[String],
        packed: &[u8],
        times: &CallTimes,
    ) -> Result<Reply, Failure> {
        let link = self.inner.links.get(&self.inner.scripts).await?;
        let life = link.server.incarnation.0.to_be_bytes().to_vec();
        let [calendar, steady, wall, dates, expiry, lease] =
            [times.calendar, times.steady, times.wall, times.dates, times.expiry, times.lease]
                .map(|micros| micros.to_string().into_bytes());
        let expected = times.expected.map_or_else(Vec::new, |micros| micros.to_string().into_bytes());
        let settled = if times.settled { vec![b'1'] } else { Vec::new() };
        let channel = self.inner.names.channel().into_bytes();
        let arguments =
            [packed.to_vec(), calendar, steady, life, channel, wall, dates, expiry, lease, expected, settled];
        let value = self.inner.links.run(&link, source, keys, &arguments).await?;
        judge(Reply::of(value)?, subject, link.server.incarnation)
    }

    /// Reads the server's clock, and writes down what was found of it.
    pub(crate) async fn ask_clock(&self, call: &Arg) -> Result<Reply, Failure> {
        let mut packed = Vec::with_capacity(128);
        call.pack(&mut packed);
        let keys = self.inner.names.clock();
        self.run(&self.inner.scripts.clock, Subject::Store, &keys, &packed, &CallTimes::UNKNOWN).await
    }

    pub(crate) fn clock(&self) -> &ServerClock {
        &self.inner.clock
    }

    /// Calls a script on a shard alone.
    pub(crate) async fn on_shard(&self, source: &Source, shard: Shard, call: &Arg) -> Result<Reply> {
        let keys = self.inner.names.shard(shard, &[]);
        self.mending(source, Subject::Shard(shard), &keys, call).await
    }

    /// Calls a script on one seat.
    pub(crate) async fn on_seat(&self, source: &Source, seat: Seat, call: &Arg) -> Result<Reply> {
        let keys = self.inner.names.shard(seat.shard, &[seat.processor]);
        self.mending(source, Subject::Seat(seat), &keys, call).await
    }

    /// Calls a script; if its place is not there, finishes definitions that may not have reached it and calls it again.
    pub(crate) async fn mending(
        &self,
        source: &Source,
        subject: Subject,
        keys: &[String],
        call: &Arg,
    ) -> Result<Reply> {
        match self.call(source, subject, keys, call).await {
            Err(Failure::Missing(error)) => {
                if !self.finish_definitions().await? {
                    return Err(error);
                }
                self.call(source, subject, keys, call).await.map_err(last)
            }
            answer => answer.map_err(last),
        }
    }

    /// Calls a script on a shard with all its seats.
    pub(crate) async fn on_seats(&self, source: &Source, shard: Shard, call: &Arg) -> Result<Reply> {
        let mut mended = false;
        for _ in 0..LEARNED_MAX {
            let known = self.inner.known.lock().get(&shard.stream).cloned().unwrap_or_default();
            let keys = self.inner.names.shard(shard, &known.processors);
            let seats = Arg::list(known.processors.iter().map(|processor| processor.0));
            let call = call.clone().with("def", known.def).with("seats", seats);
            match self.call(source, Subject::Shard(shard), &keys, &call).await {
                Err(Failure::Learn { def, processors }) => {
                    self.inner.known.lock().insert(shard.stream, Known { def, processors });
                }
                Err(Failure::Missing(error)) => {
                    if mended || !self.finish_definitions().await? {
                        return Err(error);
                    }
                    mended = true;
                }
                answer => return answer.map_err(last),
            }
        }
        Err(corrupt(format!("shard {shard} names other processors each time it is asked")))
    }
}

pub(crate) fn last(failure: Failure) -> StoreError {
    match failure {
        Failure::Missing(error) | Failure::Final(error) => error,
        Failure::Learn { .. } => corrupt("a script asked for seats that it has no use for"),
        Failure::Clock => corrupt("a script asked for a time that it was given"),
    }
}
