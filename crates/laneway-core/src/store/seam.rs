//! The trait that every store implements.

use async_trait::async_trait;

use super::{
    Accepted, Append, Appended, Commit, Committed, Define, Defined, JobView, Jobs, LaneView, Lanes, Page,
    Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use crate::durability::Capabilities;
use crate::error::Result;
use crate::ids::Incarnation;

/// What a connection knows about its store without asking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// In what ways it differs from others.
    pub capabilities: Capabilities,
    /// Which life of the store this connection has learned; appends and seizures carry it.
    pub incarnation: Incarnation,
}

/// The twelve transitions. Each is atomic on one shard, takes one struct and gives one struct.
///
/// Errors say what to do next. Every call may be repeated after [`crate::StoreError::Unknown`]; an append is
/// then safe only with an origin or dedup ids, so callers always send one of them.
#[async_trait]
pub trait Store: Send + Sync {
    /// What this connection knows; no transition, no I/O.
    fn about(&self) -> About;

    /// Creates or changes a stream, registers or removes a processor, seals or adopts a shard.
    ///
    /// Atomic: the definition; a stream's shards exist with it. Trim respects a processor from then on.
    /// Repeat: a conflict on the version tells that the first one happened.
    /// Refuses: `Conflict` on another version, `Refused` for an impossible change.
    async fn define(&self, define: Define) -> Result<Defined>;

    /// Appends events to one shard.
    ///
    /// Atomic: ids, chain, tails, dedup entries, source number, object and schedule entries of the call. Any
    /// conflict writes nothing.
    /// Repeat: duplicates by origin number or dedup id answer the first receipt.
    /// Refuses, in this order: `Adopt`, `Moved`, a stale origin term; then per draft a duplicate by origin,
    /// dedup (duplicate or `Conflict`), `expect_prev`, object version, generation (stale).
    /// Returns only when durable at the level it states.
    async fn append(&self, append: Append) -> Result<Appended>;

    /// Moves due drafts to the end of their lanes, in order of due time and number.
    ///
    /// Atomic: each call's moves together. Repeat: anyone, any time.
    async fn promote(&self, promote: Promote) -> Result<Promoted>;

    /// Reads durable events of one shard.
    ///
    /// Refuses: `Trimmed` below the trim. In latest streams an event that is not its lane's newest comes as
    /// its id and the winner's, without payload.
    async fn read(&self, read: Read) -> Result<Page>;

    /// Makes the caller the owner of a seat.
    ///
    /// Atomic: the new term is above every older one, by number, by clock and by the shard's floor; every
    /// older fence is refused for ever.
    /// Repeat: with the same nonce, the same answer again.
    /// Refuses: `Fenced` when the owner is not `expect`, `Adopt`.
    async fn seize(&self, seize: Seize) -> Result<Resume>;

    /// Reads lane records with their state and the beginning of their siding.
    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>>;

    /// Settles runs: the only way in which progress, lane records, states, outbox and job ends change.
    ///
    /// Atomic: all of it or nothing, and the seat's version grows by one.
    /// Repeat: the same commit id again gives the same answer, as long as no later commit was accepted.
    /// Refuses: `Fenced` unless the fence is equal in all four parts; `Refused` for what no owner may do.
    async fn commit(&self, commit: Commit) -> Result<Committed>;

    /// Files a wish with the owner of a seat. It has an effect only through a later commit.
    ///
    /// Atomic: numbered and stored. Repeat: the same token gives the first number again.
    async fn request(&self, request: Request) -> Result<Accepted>;

    /// Reads jobs, shortens their life, forgets them, cancels scheduled ones.
    ///
    /// Atomic: each job. Repeat: yes. Refuses: `Conflict` for a job that has not ended (forget) or that has
    /// joined its lane (cancel).
    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>>;

    /// Keeps one chunk of a large result, invisible until a commit names it, and not for long.
    ///
    /// Repeat: yes; the same chunk is written again.
    async fn stash(&self, stash: Stash) -> Result<()>;

    /// Reads lists of one shard (or the catalogue): one filter, one kind of rows.
    async fn query(&self, query: Query) -> Result<Rows>;

    /// Removes what retention allows. Never an event that a registered processor has not passed, also not one
    /// in a siding.
    ///
    /// Repeat: yes, by anyone. Without any processor age alone decides, and what goes unprocessed is counted.
    async fn trim(&self, trim: Trim) -> Result<Trimmed>;
}
