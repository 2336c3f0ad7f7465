//! The cluster as people see it, and what they may ask of it. Any node answers, from the store alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Owner, Query, Rows, SeatView as StoredSeat, Seize};
use laneway_core::{Nonce, Partition, ProcessorId, Seat, StoreError, Term, Timestamp};

use super::documents::{NodeToken, PREFIX, View, drain_document};
use crate::engine::Stores;
use crate::log::Catalogue;
use crate::service::Env;

/// How often a wish is written again when somebody else changes the same document meanwhile.
const TRIES_MAX: u32 = 8;

/// The cluster of a store. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    env: Env,
    stores: Stores,
    catalogue: Arc<Catalogue>,
}

/// Why nothing came of a wish.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No living node has this name or token.
    #[error("node {0:?} does not exist")]
    NoNode(String),
    /// Several nodes have this name.
    #[error("{count} nodes are called {name:?}: say the token of one")]
    Several {
        /// The name.
        name: String,
        /// How many.
        count: usize,
    },
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The cluster at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// The store's time at that moment, if it has a clock.
    pub at: Option<Timestamp>,
    /// Its nodes, by name.
    pub nodes: Vec<NodeView>,
    /// Who leads.
    pub leader: Option<LeaderView>,
    /// Every partition of every processor.
    pub seats: Vec<SeatView>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Names this life of the node.
    pub token: NodeToken,
    /// Its name, for people.
    pub name: String,
    /// Which Laneway it runs.
    pub version: String,
    /// The processors it can run.
    pub runs: Vec<ProcessorId>,
    /// How much it takes in comparison to others.
    pub weight: u32,
    /// Whether it owns something only when no other can.
    pub standby: bool,
    /// Words about it.
    pub tags: Vec<String>,
    /// What it is there for.
    pub role: String,
    /// When it joined.
    pub since: Timestamp,
    /// When its lease ends, unless it is renewed; nothing where the store has no clock.
    pub expires: Option<Timestamp>,
    /// How long its lease is.
    pub lease: Duration,
    /// It is about to go.
    pub leaving: bool,
    /// Somebody wants it to own nothing.
    pub drained: bool,
}

/// Who leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderView {
    /// The node.
    pub node: NodeToken,
    /// Grows with every new leader.
    pub term: Term,
}

/// A partition of a processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatView {
    /// Its stream.
    pub stream: String,
    /// Its processor.
    pub processor: String,
    /// Which.
    pub seat: Seat,
    /// The node that owns it, if it lives and has not handed it over.
    pub owner: Option<NodeToken>,
    /// The node that should own it.
    pub planned: Option<NodeToken>,
    /// Grows with every owner.
    pub term: Term,
}

impl Cluster {
    pub(crate) fn new(env: Env, stores: Stores, catalogue: Arc<Catalogue>) -> Self {
        Self { env, stores, catalogue }
    }

    /// Nodes, leader, and who owns what.
    pub async fn look(&self) -> Result<ClusterView, ClusterError> {
        let view = self.view().await?;
        let nodes = view.nodes.iter().filter_map(|(token, seen)| {
            let record = seen.content.clone()?;
            Some(NodeView {
                token: *token,
                drained: view.drained.contains(&record.name),
                name: record.name,
                version: record.version,
                runs: record.runs.into_iter().collect(),
                weight: record.weight,
                standby: record.standby,
                tags: record.tags,
                role: record.role,
                since: record.since,
                expires: record.expires,
                lease: record.lease,
                leaving: record.leaving,
            })
        });
        let mut nodes: Vec<NodeView> = nodes.collect();
        nodes.sort_by(|one, other| (&one.name, one.token).cmp(&(&other.name, other.token)));
        let leader = view.leader.as_ref().and_then(|seen| seen.content);
        let leader = leader.filter(|leader| view.nodes.contains_key(&leader.node));
        Ok(ClusterView {
            at: view.clock,
            nodes,
            leader: leader.map(|leader| LeaderView { node: leader.node, term: leader.term }),
            seats: self.seats(&view).await?,
        })
    }

    /// Wishes that a node own nothing, or lifts that wish. It stays in the cluster, and what it had goes to others.
    pub async fn drain(&self, name: &str, drained: bool) -> Result<(), ClusterError> {
        let view = self.view().await?;
        let (_, record) = self.find(&view, name)?;
        let (documents, wish) = (&self.stores.documents, drain_document(&record));
        for _ in 0..TRIES_MAX {
            let written = match (documents.get(&wish).await?, drained) {
                (None, true) => documents.put(&wish, None, Bytes::new()).await.map(|_| ()),
                (Some(known), false) => documents.delete(&wish, known.version).await,
                (Some(_), true) | (None, false) => return Ok(()),
            };
            match written {
                Err(StoreError::Conflict(_)) => {}
                written => return Ok(written?),
            }
        }
        Err(StoreError::Down { reason: format!("document {wish} is changed all the time") }.into())
    }

    /// Ends a node's lease now, whatever it is doing: others take what it had, and whatever it still commits is refused.
    /// If it lives it drops everything and joins again.
    pub async fn break_lease(&self, name: &str) -> Result<NodeToken, ClusterError> {
        for _ in 0..TRIES_MAX {
            let view = self.view().await?;
            let (token, _) = self.find(&view, name)?;
            match self.stores.documents.delete(&token.document(), view.nodes[&token].version).await {
                // It was just renewed.
                Err(StoreError::Conflict(_)) => {}
                deleted => return Ok(deleted.map(|()| token)?),
            }
        }
        Err(StoreError::Down { reason: format!("the lease of node {name:?} is renewed all the time") }.into())
    }

    /// Takes a seat from whoever owns it, for nobody: whatever the owner still commits is refused, and whoever the plan names takes
    /// it anew.
    pub async fn break_seat(&self, seat: &SeatView) -> Result<(), ClusterError> {
        let store = &self.stores.store;
        let Rows::Seats(_, found) = store.query(Query::Seats(seat.seat.shard)).await? else {
            return Err(other_list().into());
        };
        let Some(stored) = found.into_iter().find(|stored| stored.processor == seat.seat.processor) else {
            return Err(StoreError::NotFound { what: format!("seat {}", seat.seat) }.into());
        };
        let fence = stored.progress.fence;
        let expect = (fence.term.0 > 0).then_some(Owner { term: fence.term, nonce: fence.nonce });
        let (seat, nonce) = (seat.seat, Nonce(self.env.token().0));
        let taken = |incarnation| {
            store.seize(Seize { seat, incarnation, expect: expect.clone(), nonce, node: Bytes::new() })
        };
        self.catalogue.in_this_life(taken).await?;
        Ok(())
    }

    async fn view(&self) -> Result<View, StoreError> {
        let clock = self.stores.documents.clock().await?;
        Ok(View::read(clock, self.stores.documents.list(PREFIX).await?))
    }

    /// A node by its token or name.
    fn find(&self, view: &View, name: &str) -> Result<(NodeToken, String), ClusterError> {
        let named = view.nodes.iter().filter_map(|(token, seen)| {
            let record = seen.content.as_ref()?;
            (record.name == name || token.to_string() == name).then(|| (*token, record.name.clone()))
        });
        let mut named: Vec<_> = named.collect();
        match named.len() {
            0 => Err(ClusterError::NoNode(name.to_owned())),
            1 => Ok(named.remove(0)),
            count => Err(ClusterError::Several { name: name.to_owned(), count }),
        }
    }

    async fn seats(&self, view: &View) -> Result<Vec<SeatView>, ClusterError> {
        let mut seats = Vec::new();
        for stream in self.catalogue.streams().await? {
            let names: BTreeMap<_, _> =
                stream.processors.iter().map(|processor| (processor.id, &processor.name)).collect();
            if names.is_empty() {
                continue;
            }
            for partition in 0..stream.settings.partitions {
                let shard = stream.shard(Partition(partition));
                let Rows::Seats(_, found) = self.stores.store.query(Query::Seats(shard)).await? else {
                    return Err(other_list().into());
                };
                for stored in found {
                    let Some(name) = names.get(&stored.processor) else { continue };
                    let seat = Seat { shard, processor: stored.processor };
                    seats.push(SeatView {
                        stream: stream.name.clone(),
                        processor: (*name).clone(),
                        seat,
                        owner: owner_of(&stored).filter(|node| view.nodes.contains_key(node)),
                        planned: view.plan().and_then(|plan| plan.node_of_seat(seat)),
                        term: stored.progress.fence.term,
                    });
                }
            }
        }
        Ok(seats)
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cluster").finish_non_exhaustive()
    }
}

fn other_list() -> StoreError {
    StoreError::Corrupt { what: "the store answered another list than seats".to_owned() }
}

/// The node that a seat's record names, unless it has handed the seat over.
fn owner_of(stored: &StoredSeat) -> Option<NodeToken> {
    if stored.progress.clean { None } else { NodeToken::of_bytes(&stored.progress.node) }
}
