//! The requests of a seat: which have been looked at, and which of those have to wait.
//!
//! Requests are looked at in the order of their numbers. One that has to wait steps aside, so that the others go on; it
//! stays filed in the store, which makes it survive a restart, and is looked at again when what it waits for has come.
//! Only its number and what it waits for are in memory, and only so many of them. Behind these, requests wait for their
//! turn, except those that pause or resume the whole processor: otherwise nothing could let a paused one go on.
//!
//! Invariants: every number up to `seen` was answered or waits. No call costs more than a look into an index for each
//! request that it answers, puts off or wakes.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::limits::PAGE_MAX;
use laneway_core::{EventId, LaneName};

/// Requests that may wait before the ones behind them wait too: about 16 MiB. A bulk cancel of jobs beyond the window
/// files one for each job.
const WAITING_MAX: usize = 1 << 17;

/// Requests that are looked up together. One may carry an answer of a megabyte.
const PAGE_LEN: usize = 16;

/// What a request waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Until {
    /// The window reaches this event.
    Window(EventId),
    /// Something of this lane becomes durable, or its run is over.
    Lane(LaneName),
    /// Nothing runs any more. No other request is looked at before it.
    Quiet,
    /// The commit that carries its effect.
    Answer,
}

#[derive(Debug)]
struct Waiting {
    until: Until,
    /// The event it is about, if that was beyond the window: it is not read before the request is decided, or it would
    /// run while the request waits.
    ahead: Option<EventId>,
}

/// How far the requests of a seat are.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Highest number known to exist.
    filed: u64,
    /// Highest number that was looked at.
    seen: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Those of the waiting that are to be looked at again.
    again: BTreeSet<u64>,
    /// The waiting by the event they are about, if the window has not reached it,
    far: BTreeSet<(EventId, u64)>,
    /// and if it has.
    near: BTreeSet<(EventId, u64)>,
    /// The waiting by the lane they wait for.
    by_lane: BTreeMap<LaneName, BTreeSet<u64>>,
    /// The one that waits until nothing runs.
    alone: Option<u64>,
    /// While too many wait: up to which number it was looked for those that concern the whole seat, and which were found.
    scanned: u64,
    early: BTreeSet<u64>,
    /// After which number the fetch under way looks.
    asked: u64,
    /// What the store was told: all up to this had their effect.
    told: u64,
}

impl Requests {
    pub(super) fn new(filed: u64, applied: u64) -> Self {
        Self { filed, seen: applied, told: applied, ..Self::default() }
    }

    /// So many are known to exist.
    pub(super) fn filed(&mut self, number: u64) {
        self.filed = self.filed.max(number);
    }

    /// The number after which the next request is to be fetched.
    pub(super) fn wanted(&self) -> Option<u64> {
        if let Some(again) = self.again.first() {
            return Some(again - 1);
        }
        let after = if self.is_full() { self.seen.max(self.scanned) } else { self.seen };
        (self.filed > after && self.alone.is_none()).then_some(after)
    }

    /// How many requests may be looked up together. Of those that are looked at again, only consecutive ones: others
    /// that wait may lie between them.
    pub(super) fn page_len(&self) -> usize {
        if let Some(first) = self.again.first() {
            return self.again.iter().zip(*first..).take(PAGE_LEN).take_while(|(a, b)| *a == b).count();
        }
        if self.is_full() { 1 } else { PAGE_LEN }
    }

    /// Whether the request after this number may be decided now.
    pub(super) fn may_go_on(&self, after: u64) -> bool {
        let is_next = self.seen == after && !self.is_full() && self.alone.is_none();
        is_next || self.again.contains(&(after + 1))
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Whether every request that is known had its effect, and the store knows it.
    pub(super) fn are_applied(&self) -> bool {
        self.waiting.is_empty() && self.early.is_empty() && self.filed <= self.seen && self.told == self.seen
    }

    /// Number of the last request that had its effect, if all had.
    pub(super) fn applied_to(&self) -> u64 {
        self.seen
    }

    /// Whether it is not yet the turn of a request that was fetched after this number.
    pub(super) fn is_early(&self, number: u64, fetched_after: u64) -> bool {
        number > self.seen && (fetched_after > self.seen || self.is_full())
    }

    /// A request was met before its turn: it is decided now, or met again in its turn.
    pub(super) fn met_early(&mut self, number: u64, decide: bool) {
        self.scanned = self.scanned.max(number);
        if decide {
            self.early.insert(number);
        }
    }

    /// The next request is being fetched. One that is to be looked at again from now on was not looked for.
    pub(super) fn sent(&mut self) {
        self.asked = self.wanted().unwrap_or(self.asked);
    }

    /// There was no request after all.
    pub(super) fn nothing_found(&mut self) {
        if self.forget_gone(u64::MAX) {
            return;
        }
        if self.is_full() {
            self.scanned = self.filed;
        } else {
            self.filed = self.seen;
        }
    }

    /// Forgets those that were looked for and are not there, below this number. Answers whether there were any.
    fn forget_gone(&mut self, number: u64) -> bool {
        let gone: Vec<u64> = self.again.range(self.asked.saturating_add(1)..number).copied().collect();
        for number in &gone {
            self.forget(*number);
        }
        !gone.is_empty()
    }

    /// A request was fetched. Answers whether it still has to have its effect.
    pub(super) fn found(&mut self, number: u64) -> bool {
        self.forget_gone(number);
        self.asked = number;
        if self.again.contains(&number) {
            return true;
        }
        if self.early.remove(&number) {
            self.seen = number;
            return false;
        }
        number > self.seen || self.waiting.contains_key(&number)
    }

    fn see(&mut self, number: u64) {
        if !self.early.contains(&number) {
            self.seen = self.seen.max(number);
        }
    }

    /// It had its effect.
    pub(super) fn answered(&mut self, number: u64) {
        self.see(number);
        self.forget(number);
    }

    /// It has to wait.
    pub(super) fn put_off(&mut self, number: u64, until: Until) {
        self.see(number);
        let before = self.forget(number);
        let (ahead, side) = match &until {
            Until::Window(id) => (Some(*id), &mut self.far),
            _ => (before, &mut self.near),
        };
        side.extend(ahead.map(|id| (id, number)));
        match &until {
            Until::Lane(lane) => {
                self.by_lane.entry(lane.clone()).or_default().insert(number);
            }
            Until::Quiet => self.alone = Some(number),
            Until::Window(_) | Until::Answer => {}
        }
        self.waiting.insert(number, Waiting { until, ahead });
    }

    /// Takes a request out of the waiting. Answers the event that is not read before the request is decided.
    fn forget(&mut self, number: u64) -> Option<EventId> {
        self.again.remove(&number);
        let Waiting { until, ahead } = self.waiting.remove(&number)?;
        match until {
            Until::Lane(lane) => {
                let of_lane = self.by_lane.get_mut(&lane).expect("it waits for this lane");
                of_lane.remove(&number);
                if of_lane.is_empty() {
                    self.by_lane.remove(&lane);
                }
            }
            Until::Quiet => self.alone = None,
            Until::Window(_) | Until::Answer => {}
        }
        if let Some(id) = ahead {
            self.far.remove(&(id, number));
            self.near.remove(&(id, number));
        }
        ahead
    }

    /// The first event after this one that is not to be read yet.
    pub(super) fn not_before(&self, read_to: EventId) -> Option<EventId> {
        let unread = (read_to.next(), 0)..;
        let [near, far] = [&self.near, &self.far].map(|ahead| ahead.range(unread.clone()).next());
        near.into_iter().chain(far).map(|(id, _)| *id).min()
    }

    /// The window has come as far as this.
    pub(super) fn reached(&mut self, ceiling: EventId) {
        while let Some((id, number)) = self.far.first().copied().filter(|(id, _)| *id <= ceiling) {
            self.far.remove(&(id, number));
            self.near.insert((id, number));
            self.again.insert(number);
        }
    }

    /// Something of this lane is durable, or its run is over.
    pub(super) fn moved(&mut self, lane: &LaneName) {
        if let Some(of_lane) = self.by_lane.get(lane) {
            self.again.extend(of_lane);
        }
    }

    /// A run is over, or a commit durable.
    pub(super) fn quieter(&mut self) {
        self.again.extend(self.alone);
    }

    /// Up to which number all had their effect, if the store does not know it yet. No further than one commit may say.
    pub(super) fn applied_now(&mut self) -> Option<u64> {
        let all = self.waiting.first_key_value().map_or(self.seen, |(first, _)| first - 1).min(self.seen);
        let next = all.min(self.told + PAGE_MAX as u64);
        (next > self.told).then(|| {
            self.told = next;
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane() -> LaneName {
        LaneName::Event(EventId(7))
    }

    #[test]
    fn one_that_waits_does_not_keep_the_next_from_being_looked_at() {
        let mut requests = Requests::new(3, 0);
        assert!(requests.found(1));
        requests.put_off(1, Until::Window(EventId(100)));
        assert_eq!((requests.wanted(), requests.applied_now()), (Some(1), None));
        requests.answered(2);
        requests.answered(3);
        assert_eq!((requests.wanted(), requests.applied_now()), (None, None));
        requests.reached(EventId(99));
        assert_eq!(requests.wanted(), None);
        requests.reached(EventId(100));
        assert_eq!(requests.wanted(), Some(0));
        requests.sent();
        assert!(requests.found(1));
        requests.answered(1);
        assert_eq!((requests.wanted(), requests.applied_now()), (None, Some(3)));
    }

    #[test]
    fn one_to_be_looked_at_again_while_another_is_fetched_is_not_taken_for_gone() {
        let mut requests = Requests::new(2, 0);
        requests.put_off(1, Until::Lane(lane()));
        requests.sent();
        requests.moved(&lane());
        assert!(requests.found(2));
        requests.answered(2);
        assert_eq!((requests.wanted(), requests.applied_now()), (Some(0), None));
        // One that was looked for and is not there was answered otherwise.
        requests.sent();
        requests.nothing_found();
        assert_eq!((requests.wanted(), requests.applied_now()), (None, Some(2)));
    }

    #[test]
    fn request_of_a_page_is_not_gone_when_the_next_is_decided() {
        let mut requests = Requests::new(3, 0);
        assert_eq!((requests.wanted(), requests.page_len()), (Some(0), PAGE_LEN));
        requests.sent();
        assert!(requests.found(1));
        requests.put_off(1, Until::Lane(lane()));
        requests.moved(&lane());
        assert!(requests.may_go_on(1) && requests.found(2));
        requests.answered(2);
        assert_eq!(
            (requests.wanted(), requests.page_len()),
            (Some(0), 1),
            "the seat looks at it again, alone"
        );
    }

    #[test]
    fn nothing_behind_a_reset_is_decided_with_its_page() {
        let mut requests = Requests::new(3, 0);
        requests.sent();
        assert!(requests.found(1));
        requests.put_off(1, Until::Quiet);
        assert!(!requests.may_go_on(1));
        requests.answered(1);
        assert!(requests.may_go_on(1) && !requests.may_go_on(2), "only the next one");
    }

    #[test]
    fn event_whose_request_waits_for_the_window_is_not_read_before_it_is_decided() {
        let mut requests = Requests::new(3, 0);
        requests.put_off(1, Until::Window(EventId(100)));
        requests.put_off(2, Until::Window(EventId(50)));
        requests.reached(EventId(60));
        assert_eq!(
            requests.not_before(EventId(7)),
            Some(EventId(50)),
            "looked at again, and still undecided"
        );
        requests.put_off(2, Until::Lane(lane()));
        assert_eq!(requests.not_before(EventId(7)), Some(EventId(50)), "it waits for something else now");
        assert_eq!(
            requests.not_before(EventId(50)),
            Some(EventId(100)),
            "one that was read holds nothing up"
        );
        requests.answered(2);
        requests.answered(1);
        assert_eq!(requests.not_before(EventId(7)), None);
    }

    #[test]
    fn reset_keeps_the_others_back_until_nothing_runs() {
        let mut requests = Requests::new(2, 0);
        requests.put_off(1, Until::Quiet);
        assert_eq!(requests.wanted(), None);
        requests.quieter();
        assert_eq!(requests.wanted(), Some(0));
    }

    #[test]
    fn only_the_lane_that_moved_is_looked_at_again() {
        let mut requests = Requests::new(2, 0);
        requests.put_off(1, Until::Lane(lane()));
        requests.put_off(2, Until::Lane(LaneName::Event(EventId(8))));
        requests.moved(&lane());
        assert_eq!(requests.wanted(), Some(0));
        requests.put_off(1, Until::Lane(lane()));
        assert_eq!(requests.wanted(), None);
    }

    #[test]
    fn no_more_wait_than_memory_has_room_for() {
        let mut requests = Requests::new(1_000_000, 0);
        for number in 1..=WAITING_MAX as u64 {
            assert_eq!(requests.wanted(), Some(number - 1));
            requests.put_off(number, Until::Window(EventId(1_000)));
        }
        let full = WAITING_MAX as u64;
        assert_eq!(requests.wanted(), Some(full));
        assert!(requests.is_early(full + 1, full), "the next is only met");
        assert!(!requests.is_early(1, 0), "one that waits is decided when its time has come");
        requests.answered(1);
        assert_eq!(requests.wanted(), Some(full));
        assert!(!requests.is_early(full + 1, full));
    }

    #[test]
    fn what_concerns_the_seat_is_met_behind_too_many_that_wait() {
        let full = WAITING_MAX as u64;
        let mut requests = Requests::new(full + 3, 0);
        (1..=full).for_each(|number| requests.put_off(number, Until::Window(EventId(1_000))));
        assert!(requests.found(full + 1) && requests.is_early(full + 1, full));
        requests.met_early(full + 1, false);
        assert_eq!(requests.wanted(), Some(full + 1));
        assert!(requests.found(full + 2) && requests.is_early(full + 2, full + 1));
        requests.met_early(full + 2, true);
        requests.answered(full + 2);
        assert_eq!(requests.applied_now(), None, "the first still waits");
        requests.answered(1);
        assert_eq!((requests.wanted(), requests.applied_now()), (Some(full), Some(1)));
        assert!(requests.found(full + 1));
        requests.answered(full + 1);
        assert_eq!(requests.wanted(), Some(full + 1));
        assert!(!requests.found(full + 2), "it was answered before its turn");
        assert_eq!(requests.wanted(), Some(full + 2));
    }

    #[test]
    fn one_that_was_decided_before_its_turn_and_waits_is_passed_in_its_turn() {
        let full = WAITING_MAX as u64;
        let mut requests = Requests::new(full + 1, 0);
        (1..=full).for_each(|number| requests.put_off(number, Until::Window(EventId(1_000))));
        requests.met_early(full + 1, true);
        requests.put_off(full + 1, Until::Lane(lane()));
        (1..=full).for_each(|number| requests.answered(number));
        assert_eq!(requests.wanted(), Some(full));
        requests.sent();
        assert!(!requests.found(full + 1));
        assert_eq!((requests.wanted(), requests.applied_now()), (None, Some(PAGE_MAX as u64)));
        requests.moved(&lane());
        assert_eq!(requests.wanted(), Some(full));
        requests.sent();
        assert!(requests.found(full + 1));
    }

    /// Looking at all that wait for each of them would take minutes.
    #[test]
    fn jobs_cancelled_in_bulk_beyond_the_window_cost_one_look_each() {
        let count = WAITING_MAX as u64;
        let mut requests = Requests::new(count, 0);
        for number in 1..=count {
            assert_eq!(requests.wanted(), Some(number - 1));
            requests.put_off(number, Until::Window(EventId(1_000_000 - number)));
        }
        for number in (1..=count).rev() {
            let id = EventId(1_000_000 - number);
            assert_eq!(requests.not_before(EventId(0)), Some(id));
            requests.reached(id);
            requests.quieter();
            assert_eq!(requests.wanted(), Some(number - 1));
            requests.put_off(number, Until::Lane(LaneName::Event(id)));
            assert_eq!(requests.wanted(), None);
            requests.moved(&LaneName::Event(id));
            assert_eq!(requests.wanted(), Some(number - 1));
            requests.answered(number);
        }
        assert_eq!(requests.not_before(EventId(0)), None);
    }

    #[test]
    fn those_looked_at_again_are_looked_up_together_if_nothing_lies_between_them() {
        let mut requests = Requests::new(6, 0);
        for (number, id) in [(1, 10), (2, 10), (3, 99), (4, 10), (5, 10), (6, 10)] {
            requests.put_off(number, Until::Window(EventId(id)));
        }
        requests.reached(EventId(10));
        assert_eq!((requests.wanted(), requests.page_len()), (Some(0), 2));
        requests.sent();
        assert!(requests.found(1));
        requests.answered(1);
        assert!(requests.may_go_on(1) && requests.found(2));
        requests.answered(2);
        assert!(!requests.may_go_on(2), "the third waits");
        assert_eq!((requests.wanted(), requests.page_len()), (Some(3), 3));
    }

    #[test]
    fn one_commit_tells_no_more_than_it_may() {
        let mut requests = Requests::new(100_000, 0);
        requests.put_off(1, Until::Lane(lane()));
        requests.answered(100_000);
        requests.answered(1);
        assert_eq!(requests.applied_now(), Some(PAGE_MAX as u64));
        assert_eq!(requests.applied_now(), Some(2 * PAGE_MAX as u64));
    }
}
