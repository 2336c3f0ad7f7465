//! What all nodes read and write: a document per node, the leader, the plan, and wishes to drain.
//!
//! Each is a version byte, then the fields in order, as in `service/fields.rs`. Reading never panics; a document that cannot be read
//! was written by a newer Laneway, and is left alone as long as it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Document, Documents, Partition, ProcessorId, Seat, StoreError, Term, Timestamp};

use crate::service::{Fields, Malformed, Reader};

/// All documents of the cluster begin with this.
pub(super) const PREFIX: &str = "cluster/";
const NODE: &str = "cluster/node/";
const DRAIN: &str = "cluster/drain/";
pub(super) const LEADER: &str = "cluster/leader";
pub(super) const PLAN: &str = "cluster/plan";

const VERSION: u8 = 1;

/// Names one life of a node: 128 random bits, made anew whenever it joins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeToken(pub u128);

impl fmt::Display for NodeToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl fmt::Debug for NodeToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl NodeToken {
    /// A process that is in no cluster, and of which no document tells whether it lives.
    pub(crate) const ALONE: Self = Self(0);

    /// The name of this node's document.
    pub(super) fn document(self) -> String {
        format!("{NODE}{self}")
    }

    /// Whether others believe it alive: nobody has buried it.
    pub(crate) async fn lives(self, documents: &dyn Documents) -> Result<bool, StoreError> {
        Ok(documents.get(&self.document()).await?.is_some())
    }

    /// As a seat's record names its owner.
    pub(crate) fn bytes(self) -> Bytes {
        Bytes::from(self.to_string())
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        if text.len() != 32 {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

/// What a node says of itself, and until when it is believed to live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeRecord {
    pub(super) name: String,
    /// Which Laneway it runs.
    pub(super) version: String,
    pub(super) weight: u32,
    pub(super) standby: bool,
    pub(super) tags: Vec<String>,
    pub(super) role: String,
    /// When it joined, by the store's clock.
    pub(super) since: Timestamp,
    /// How long its lease is.
    pub(super) lease: Duration,
    /// When its lease ends, by the store's clock; nothing where the store has none.
    pub(super) expires: Option<Timestamp>,
    /// It is about to go and takes nothing any more.
    pub(super) leaving: bool,
    /// What it can run.
    pub(super) runs: BTreeSet<ProcessorId>,
    /// Those among them that remote workers asked it for lately.
    pub(super) asked: BTreeSet<ProcessorId>,
}

/// Who leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leader {
    pub(super) node: NodeToken,
    pub(super) term: Term,
}

/// Which node should own each seat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan(pub(super) BTreeMap<ProcessorId, Vec<Option<NodeToken>>>);

impl Plan {
    /// The node that should own a seat.
    pub(crate) fn node_of(&self, processor: ProcessorId, partition: Partition) -> Option<NodeToken> {
        *self.0.get(&processor)?.get(partition.0 as usize)?
    }

    pub(super) fn node_of_seat(&self, seat: Seat) -> Option<NodeToken> {
        self.node_of(seat.processor, seat.shard.partition)
    }
}

/// Everything that was there in one look, with the versions that a change must name.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    pub(super) clock: Option<Timestamp>,
    pub(super) nodes: BTreeMap<NodeToken, Seen<Option<NodeRecord>>>,
    pub(super) leader: Option<Seen<Option<Leader>>>,
    pub(super) plan: Option<Seen<Option<Plan>>>,
    /// Names of nodes that are to own nothing.
    pub(super) drained: BTreeSet<String>,
}

/// A document's content and the version it was read at. Content that cannot be read is nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen<T> {
    pub(super) version: u64,
    pub(super) content: T,
}

impl View {
    pub(super) fn read(clock: Option<Timestamp>, documents: Vec<Document>) -> Self {
        let mut view = Self { clock, ..Self::default() };
        for document in documents {
            let Document { name, version, bytes } = document;
            if let Some(token) = name.strip_prefix(NODE).and_then(|name| NodeToken::of_bytes(name.as_bytes()))
            {
                view.nodes
                    .insert(token, Seen { version, content: readable(&name, NodeRecord::decode(bytes)) });
            } else if let Some(node) = name.strip_prefix(DRAIN) {
                view.drained.insert(node.to_owned());
            } else if name == LEADER {
                view.leader = Some(Seen { version, content: readable(&name, Leader::decode(bytes)) });
            } else if name == PLAN {
                view.plan = Some(Seen { version, content: readable(&name, Plan::decode(bytes)) });
            }
        }
        view
    }

    pub(super) fn record(&self, node: NodeToken) -> Option<&NodeRecord> {
        self.nodes.get(&node)?.content.as_ref()
    }

    pub(super) fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()?.content.as_ref()
    }
}

fn readable<T>(name: &str, decoded: Result<T, Malformed>) -> Option<T> {
    decoded.inspect_err(|error| tracing::warn!(name, %error, "a document of the cluster cannot be read")).ok()
}

/// The name of the wish that a node own nothing.
pub(super) fn drain_document(node: &str) -> String {
    format!("{DRAIN}{node}")
}

fn begin(bytes: Bytes) -> Result<Reader, Malformed> {
    let mut from = Reader::new(bytes);
    if from.byte("version")? == VERSION { Ok(from) } else { Err(from.malformed()) }
}

impl NodeRecord {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = Fields::new(VERSION);
        out.bytes(self.name.as_bytes());
        out.bytes(self.version.as_bytes());
        out.u32(self.weight);
        out.flag(self.standby);
        out.u32(u32::try_from(self.tags.len()).unwrap_or(u32::MAX));
        self.tags.iter().for_each(|tag| out.bytes(tag.as_bytes()));
        out.bytes(self.role.as_bytes());
        out.u64(self.since.0);
        out.u64(u64::try_from(self.lease.as_micros()).unwrap_or(u64::MAX));
        out.flag(self.expires.is_some());
        out.u64(self.expires.unwrap_or_default().0);
        out.flag(self.leaving);
        for processors in [&self.runs, &self.asked] {
            out.u32(u32::try_from(processors.len()).unwrap_or(u32::MAX));
            processors.iter().for_each(|processor| out.u32(processor.0));
        }
        out.finish()
    }

    fn decode(bytes: Bytes) -> Result<Self, Malformed> {
        let mut from = begin(bytes)?;
        let (name, version) = (from.text("name")?, from.text("version")?);
        let (weight, standby) = (from.u32("weight")?, from.flag("standby")?);
        let tags = (0..from.u32("tags")?).map(|_| from.text("tags")).collect::<Result<_, _>>()?;
        let (role, since) = (from.text("role")?, Timestamp(from.u64("since")?));
        let lease = Duration::from_micros(from.u64("lease")?);
        let expires = (from.flag("expires")?, from.u64("expires")?);
        let record = Self {
            name,
            version,
            weight,
            standby,
            tags,
            role,
            since,
            lease,
            expires: expires.0.then_some(Timestamp(expires.1)),
            leaving: from.flag("leaving")?,
            runs: processors(&mut from)?,
            asked: processors(&mut from)?,
        };
        from.end().map(|()| record)
    }
}

fn processors(from: &mut Reader) -> Result<BTreeSet<ProcessorId>, Malformed> {
    (0..from.u32("processors")?).map(|_| from.u32("processors").map(ProcessorId)).collect()
}

impl Leader {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = Fields::new(VERSION);
        out.u128(self.node.0);
        out.u64(self.term.0);
        out.finish()
    }

    fn decode(bytes: Bytes) -> Result<Self, Malformed> {
        let mut from = begin(bytes)?;
        let leader = Self { node: NodeToken(from.u128("node")?), term: Term(from.u64("term")?) };
        from.end().map(|()| leader)
    }
}

/// A partition that nobody can own, in the stored plan.
const NOBODY: u32 = u32::MAX;

impl Plan {
    /// The nodes once, then per processor their numbers: a plan of thousands of seats is a few kilobytes.
    pub(super) fn encode(&self) -> Bytes {
        let nodes: BTreeSet<NodeToken> = self.0.values().flatten().flatten().copied().collect();
        let number_of: BTreeMap<NodeToken, u32> = nodes.iter().copied().zip(0..).collect();
        let mut out = Fields::new(VERSION);
        out.u32(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        nodes.iter().for_each(|node| out.u128(node.0));
        out.u32(u32::try_from(self.0.len()).unwrap_or(u32::MAX));
        for (processor, seats) in &self.0 {
            out.u32(processor.0);
            out.u32(u32::try_from(seats.len()).unwrap_or(u32::MAX));
            seats.iter().for_each(|node| out.u32(node.map_or(NOBODY, |node| number_of[&node])));
        }
        out.finish()
    }

    fn decode(bytes: Bytes) -> Result<Self, Malformed> {
        let mut from = begin(bytes)?;
        let nodes: Vec<NodeToken> =
            (0..from.u32("nodes")?).map(|_| from.u128("nodes").map(NodeToken)).collect::<Result<_, _>>()?;
        let mut plan = Self::default();
        for _ in 0..from.u32("processors")? {
            let processor = ProcessorId(from.u32("processor")?);
            let seats = (0..from.u32("seats")?).map(|_| match from.u32("seats")? {
                NOBODY => Ok(None),
                number => nodes.get(number as usize).copied().map(Some).ok_or_else(|| from.malformed()),
            });
            let seats = seats.collect::<Result<_, _>>()?;
            plan.0.insert(processor, seats);
        }
        from.end().map(|()| plan)
    }
}
