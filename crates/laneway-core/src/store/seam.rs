//! The trait that every store implements.

use async_trait::async_trait;

use super::{
    Accepted, Append, Appended, Commit, Committed, Define, Defined, Held, JobView, Jobs, LaneView, Lanes,
    Page, Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use crate::clock::ClockReport;
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

/// Twelve methods: nine transitions, each atomic on one shard (a definition: on its stream with all shards), and three
/// reads, `read`, `lanes` and `query`, which change nothing. Each takes one value that says everything it needs.
///
/// Errors say what to do next. Every call may be repeated after [`crate::StoreError::Unknown`]; an append is
/// then safe only with an origin or dedup ids, so callers always send one of them.
///
/// Not said again at each method: a place that does not exist is `NotFound`, and the store itself may answer `Full`,
/// `Down`, `Unknown` or `Corrupt`.
#[async_trait]
pub trait Store: Send + Sync {
    /// What this connection knows; no transition, no I/O.
    fn about(&self) -> About;

    /// How the store's clock stands, as this connection knows it; no transition, no I/O. `None` where a store does
    /// not watch its clock.
    fn clock_report(&self) -> Option<ClockReport> {
        None
    }

    /// Reports what keeps the store from deleting its oldest files. Empty for stores without files of their own.
    async fn held(&self) -> Result<Vec<Held>> {
        Ok(Vec::new())
    }

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
    /// Atomic: everything one call moves, with schedule, ids, chain and dedup entries. A draft that has become stale
    /// (latest mode) leaves the schedule without an event, and its job ends `Superseded` in the same step.
    /// Repeat: by anyone, any time; what was moved is not moved again, and a store may move fewer than asked for.
    /// Refuses: `Adopt`, `Moved` for a sealed shard, `Refused` while the shard is being imported.
    async fn promote(&self, promote: Promote) -> Result<Promoted>;

    /// Reads durable events of one shard. In latest streams an event that is not its lane's newest comes as
    /// its id and the winner's, without payload.
    ///
    /// Atomic: no event beyond the page's head; states and winners may be newer than the events, though durable too.
    /// The request number and the next due time are hints.
    /// Repeat: changes nothing; it may find more events, or fewer after a trim.
    /// Refuses: `Trimmed` below the trim; `Refused` for ids that are not ascending or more than a page holds, and for
    /// states without a processor. A larger page than the limits allow is cut, not refused.
    async fn read(&self, read: Read) -> Result<Page>;

    /// Makes the caller the owner of a seat.
    ///
    /// Atomic: the new term is above every older one, by number, by clock and by the shard's floor; every
    /// older fence is refused for ever.
    /// Repeat: with the same nonce, the same answer again.
    /// Refuses: `Fenced` when the owner is not `expect`, `Adopt`.
    async fn seize(&self, seize: Seize) -> Result<Resume>;

    /// Reads lane records with their state and the beginning of their siding.
    ///
    /// Atomic: all lanes of one answer are as of one moment, and durable; two pages are not.
    /// Repeat: changes nothing, by anyone, owner or not.
    /// Refuses: `Refused` for more names than a page holds. A larger limit is cut, not refused.
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
    /// Refuses: `Refused` for texts over their limit and while the shard is being imported.
    async fn request(&self, request: Request) -> Result<Accepted>;

    /// Reads jobs, shortens their life, forgets them, cancels scheduled ones.
    ///
    /// Atomic: each job. Repeat: yes. Refuses: `Conflict` for a job that has not ended (take, forget) or that has
    /// joined its lane (cancel); `Refused` for more jobs than a page holds.
    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>>;

    /// Keeps one chunk of a large result, invisible until a commit names it, and not for long.
    ///
    /// Atomic: the chunk. It asks for no fence: the nonce keeps the chunks of two runs apart.
    /// Repeat: yes; the same chunk is written again, and its time begins anew.
    /// Refuses: `Refused` for an empty or too long chunk, a number no result can have, an event that is not there yet.
    async fn stash(&self, stash: Stash) -> Result<()>;

    /// Reads lists of one shard (or the catalogue): one filter, one kind of rows.
    ///
    /// Atomic: one page is as of one moment, and durable; the pages of a list are not one picture of it.
    /// Repeat: changes nothing.
    /// Refuses: nothing but a place that does not exist. A larger limit than a page holds is cut, not refused.
    async fn query(&self, query: Query) -> Result<Rows>;

    /// Removes what retention allows. Never an event that a registered processor has not passed, also not one
    /// in a siding.
    ///
    /// Atomic: what one call removes; rows past their time may take several calls.
    /// Repeat: yes, by anyone. Without any processor age alone decides, and what goes unprocessed is counted.
    /// Refuses: `Refused` while the shard is being imported.
    async fn trim(&self, trim: Trim) -> Result<Trimmed>;
}
