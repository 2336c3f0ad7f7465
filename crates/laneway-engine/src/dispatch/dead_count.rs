//! How many dead letters a seat has, for the meters: counted by the store, then kept by the seat's own commits.
//!
//! Retention takes dead letters away too and tells nobody, so they are counted again now and then while there are any. A
//! count that is asked for while a commit changes their number may contain that commit or not: it is worth nothing.

use laneway_core::store::Commit;

/// The dead letters of a seat.
#[derive(Debug, Default)]
pub(super) struct DeadCount {
    /// Those that are durable; nothing until they were counted.
    known: Option<u64>,
    /// By how much the commit on its way changes it.
    on_its_way: i64,
    /// Such a commit was on its way since the count was asked for.
    is_unsure: bool,
}

impl DeadCount {
    pub(super) fn known(&self) -> Option<u64> {
        self.known
    }

    /// A commit is on its way.
    pub(super) fn sent(&mut self, commit: &Commit) {
        let count = |len: usize| i64::try_from(len).unwrap_or(i64::MAX);
        self.on_its_way = count(commit.dead.len()) - count(commit.revived.len());
        self.is_unsure |= self.on_its_way != 0;
    }

    /// It is durable.
    pub(super) fn durable(&mut self) {
        let change = std::mem::take(&mut self.on_its_way);
        self.known = self.known.map(|known| known.saturating_add_signed(change));
    }

    /// The store is asked for the number.
    pub(super) fn asked(&mut self) {
        self.is_unsure = self.on_its_way != 0;
    }

    /// Its answer. Answers whether it was worth anything.
    pub(super) fn answered(&mut self, count: u64) -> bool {
        if !self.is_unsure {
            self.known = Some(count);
        }
        !self.is_unsure
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::store::Commit;
    use laneway_core::{
        CommitId, EventId, Fence, Nonce, Partition, ProcessorId, Seat, Shard, StreamId, Term,
    };

    use super::*;

    fn reviving(ids: &[u64]) -> Commit {
        let shard = Shard { stream: StreamId(1), partition: Partition(0) };
        let fence = Fence { term: Term(1), nonce: Nonce(1), version: 0, adoptions: 0 };
        let seat = Seat { shard, processor: ProcessorId(1) };
        let revived = ids.iter().map(|id| EventId(*id)).collect();
        Commit { revived, ..Commit::new(seat, fence, CommitId(1)) }
    }

    #[test]
    fn commits_keep_what_was_counted() {
        let mut dead = DeadCount::default();
        dead.asked();
        assert!(dead.answered(5));
        dead.sent(&reviving(&[1, 2]));
        assert_eq!(dead.known(), Some(5), "not durable yet");
        dead.durable();
        dead.sent(&reviving(&[]));
        dead.durable();
        assert_eq!(dead.known(), Some(3));
    }

    #[test]
    fn count_that_may_contain_a_commit_or_not_is_worth_nothing() {
        let mut dead = DeadCount::default();
        dead.sent(&reviving(&[1]));
        dead.asked();
        dead.durable();
        assert!(!dead.answered(5), "it was on its way when the count was asked for");
        dead.asked();
        dead.sent(&reviving(&[1]));
        dead.durable();
        assert!(!dead.answered(5), "it came and went in between");
        assert_eq!(dead.known(), None);
        dead.asked();
        dead.sent(&reviving(&[]));
        assert!(dead.answered(4), "a commit that changes nothing here");
    }
}
