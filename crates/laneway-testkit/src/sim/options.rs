//! What a seed draws before anything runs. Printed with every failure.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use laneway_core::{Mode, StreamSettings};
use laneway_engine::cluster::NodeSettings;
use laneway_engine::handler::{OnFailure, Policy};
use laneway_engine::{Batch, ProcessorSettings};

use super::life::Skew;

/// The streams of every world.
pub(crate) const STREAMS: [&str; 4] = ["orders", "objects", "out", "errands"];
/// The processors of every world, with their streams. The last one is worked by remote workers.
pub(crate) const PROCESSORS: [(&str, &str); 5] =
    [("charge", "orders"), ("audit", "orders"), ("sync", "objects"), ("ship", "out"), ("remote", "errands")];

/// Microseconds that one wall clock is ahead of another at most.
const AHEAD_MAX: i64 = 5_000_000;
/// Millionths that one steady clock is faster than another at most: each may be off by half of it.
const FAST_MAX: u64 = 400;

/// What one world is like.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) partitions: [u32; 4],
    pub(crate) processors: Vec<ProcessorSettings>,
    /// Calls of a hundred thousand that something happens to, other than taking time.
    pub(crate) faults: u32,
    /// Calls of a hundred thousand at which the process dies.
    pub(crate) deaths: u32,
    /// Wake-ups of a hundred that are lost.
    pub(crate) deaf: u32,
    /// Mean time between incidents that nobody's call brings about.
    pub(crate) incident_every: Duration,
    /// How long there are faults.
    pub(crate) faulty_for: Duration,
    /// Mean time between appends of one producer.
    pub(crate) append_every: Duration,
    /// Events of a thousand that kill the process.
    pub(crate) killers: u32,
    /// Whether processors are reset now and then.
    pub(crate) resets: bool,
    /// How many nodes there are. One alone knows nothing of clusters.
    pub(crate) nodes: u32,
    /// How long a node of several is believed to live after it was last heard of.
    pub(crate) lease: Duration,
    /// How the clocks of each machine go wrong.
    skews: [Skew; 3],
    /// Mean time between failovers of the store to a replica that had not followed to the end.
    pub(crate) failover_every: Option<Duration>,
}

impl Options {
    /// What this seed draws.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x6f70_7469_6f6e_7300);
        let rng = &mut rng;
        let failures = [0, 1, 2, 3, 4].map(|_| pick(rng, &POLICIES));
        let processors =
            failures.into_iter().enumerate().map(|(at, on_failure)| processor(rng, at, on_failure));
        let processors = processors.collect();
        let drawn = Self {
            partitions: [1 + rng.u32(0..3), 1 + rng.u32(0..2), 1 + rng.u32(0..2), 1],
            processors,
            faults: pick(rng, &[0, 500, 2_000, 5_000]),
            deaths: pick(rng, &[0, 30, 100, 250]),
            deaf: pick(rng, &[0, 10, 60]),
            incident_every: Duration::from_secs(pick(rng, &[8, 20, 45])),
            faulty_for: Duration::from_secs(150 + rng.u64(0..90)),
            append_every: Duration::from_millis(pick(rng, &[400, 800, 2_000])),
            killers: pick(rng, &[0, 0, 3, 10]),
            resets: rng.u8(0..4) == 0,
            nodes: 1,
            lease: Duration::ZERO,
            skews: [Skew::default(); 3],
            failover_every: None,
        };
        // Drawn last, so that a world of one node is what its seed always drew.
        let nodes = pick(rng, &[1, 2, 3, 3]);
        let lease = Duration::from_secs(pick(rng, &[2, 5, 10]));
        // All nodes together do as much as one.
        let append_every = drawn.append_every * nodes;
        let skewed = nodes > 1 && rng.bool();
        let skews = [0, 1, 2].map(|_| {
            let skew = Skew { ahead: rng.i64(0..AHEAD_MAX), fast: rng.u64(0..FAST_MAX) };
            if skewed { skew } else { Skew::default() }
        });
        let failover_every = pick(rng, &[None, None, Some(25), Some(60)]).map(Duration::from_secs);
        // Some worlds live long and quietly: as much happens in them as in the others. Most of those have one node, because
        // nodes that look after their leases are what costs.
        let slower = if rng.u8(0..16) < if nodes == 1 { 12 } else { 1 } { 10 } else { 1 };
        Self {
            nodes,
            lease,
            skews,
            append_every: append_every * slower,
            failover_every: failover_every.map(|every| every * slower),
            incident_every: drawn.incident_every * slower,
            faulty_for: drawn.faulty_for * slower,
            ..drawn
        }
    }

    /// Whether the clocks of its machines differ.
    pub(crate) fn is_skewed(&self) -> bool {
        self.skews.iter().any(|skew| skew.ahead > 0)
    }

    /// How the clocks of the machine at each place go wrong at first.
    pub(crate) fn skews(&self) -> [Skew; 3] {
        self.skews
    }

    /// Whether the engines of this world share their store.
    pub(crate) fn is_cluster(&self) -> bool {
        self.nodes > 1
    }

    /// How a node of several takes part.
    pub(crate) fn node(&self, place: u32) -> NodeSettings {
        NodeSettings { lease: self.lease, ..NodeSettings::new(node_name(place)) }
    }

    pub(crate) fn stream(&self, at: usize) -> StreamSettings {
        let mode = if STREAMS[at] == "objects" { Mode::Latest } else { Mode::Queue };
        // Longer than any run: what was settled can be compared at the end.
        let keep = Duration::from_secs(24 * 3_600);
        StreamSettings { partitions: self.partitions[at], mode, keep, ..StreamSettings::default() }
    }
}

/// The name of the node at a place, in all its lives.
pub(crate) fn node_name(place: u32) -> String {
    format!("node-{place}")
}

const POLICIES: [OnFailure; 6] = [
    OnFailure::Park,
    OnFailure::Park,
    OnFailure::DeadLetter,
    OnFailure::DeadLetterLane,
    OnFailure::Halt,
    OnFailure::Drop,
];

pub(crate) fn pick<A: Copy>(rng: &mut Rng, from: &[A]) -> A {
    from[rng.usize(0..from.len())]
}

fn processor(rng: &mut Rng, at: usize, on_failure: OnFailure) -> ProcessorSettings {
    let policy = Policy {
        max_attempts: pick(rng, &[1, 2, 3, 5]),
        backoff: Duration::from_millis(pick(rng, &[100, 1_000])),
        backoff_max: Duration::from_secs(10),
        on_failure,
        crashes_max: pick(rng, &[1, 2, 3]),
    };
    let batch = pick(rng, &[Batch::One, Batch::One, Batch::lane(4), Batch::lanes(3)]);
    let remote = PROCESSORS[at].0 == "remote";
    ProcessorSettings {
        concurrency: pick(rng, &[1, 3, 16]),
        timeout: (!remote).then(|| Duration::from_secs(pick(rng, &[2, 4]))),
        policy,
        batch: if remote { Batch::One } else { batch },
        run_ahead: if remote { 0 } else { pick(rng, &[0, 0, 2, 8]) },
        rate_per_key: pick(rng, &[None, None, None, Some(4)]),
        ..ProcessorSettings::default()
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partitions, faults, deaths, deaf, killers, resets, nodes, lease, skews, .. } = self;
        write!(
            f,
            "nodes {nodes} with leases of {lease:?}, {skews:?}, partitions {partitions:?}, faults {faults} and deaths {deaths} per 100,000 calls, lost wake-ups {deaf} %, \
             killers {killers} per 1,000, resets {resets}, failover every {:?}, incident every {:?}, faulty for {:?}, append every {:?}",
            self.failover_every, self.incident_every, self.faulty_for, self.append_every
        )?;
        for ((name, _), settings) in PROCESSORS.iter().zip(&self.processors) {
            let ProcessorSettings { concurrency, timeout, policy, batch, run_ahead, rate_per_key, .. } =
                settings;
            write!(
                f,
                "\n  {name}: {:?} after {} attempts (crashes {}), {batch:?}, run_ahead {run_ahead}, \
                 concurrency {concurrency}, timeout {timeout:?}, rate_per_key {rate_per_key:?}",
                policy.on_failure, policy.max_attempts, policy.crashes_max
            )?;
        }
        Ok(())
    }
}
