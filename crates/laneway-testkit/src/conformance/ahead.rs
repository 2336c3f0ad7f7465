//! Cases about lanes that are run ahead of the window (contract 3.6): what an owner may settle there, and that it is not
//! forgotten before the floor is there.

use laneway_core::store::{Commit, JobState, LaneChange};
use laneway_core::{EventId, Fence, JobNumber, LaneRecord, Terminal, limits};

use super::expect::expect_refused;
use crate::bench::{
    Bench, Place, draft, ending, inline, job_draft, job_end, keyless, lane, lane_change, passed,
};

/// The last events of a shard, beyond the window: two of lane `a`, the second of them a job, and one of lane `b`.
struct Far {
    place: Place,
    fence: Fence,
    first: EventId,
    job: EventId,
    other: EventId,
}

async fn far(bench: &Bench) -> Far {
    let place = bench.place().await;
    let page = vec![keyless(""); limits::EVENTS_PER_APPEND_MAX];
    let calls = usize::try_from(limits::WINDOW_IDS).expect("small") / page.len() + 1;
    for _ in 0..calls {
        bench.send(&place, page.clone()).await;
    }
    let first = bench.send_one(&place, draft("a", "first")).await;
    let job = bench.send_one(&place, job_draft("a", "job", place.seat.processor)).await;
    let other = bench.send_one(&place, draft("b", "other")).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    Far { place, fence, first, job, other }
}

fn ahead(to: EventId) -> LaneRecord {
    LaneRecord { ahead: Some(to), ..LaneRecord::new(lane("a")) }
}

impl Far {
    /// Accepts what `change` makes of an otherwise empty commit.
    async fn accept(&mut self, bench: &Bench, change: impl FnOnce(&mut Commit)) {
        let mut commit = bench.commit_of(self.place.seat, self.fence);
        change(&mut commit);
        self.fence = bench.commit(commit).await.fence;
    }

    /// Refuses it, and checks that nothing was written.
    async fn refuse(&self, bench: &Bench, change: impl FnOnce(&mut Commit)) {
        let before = bench.snapshot(self.place.shard).await;
        let mut commit = bench.commit_of(self.place.seat, self.fence);
        change(&mut commit);
        expect_refused!(bench.store().commit(commit).await);
        assert_eq!(bench.snapshot(self.place.shard).await, before, "a refusal writes nothing");
    }

    async fn side_both(&mut self, bench: &Bench) {
        let (first, job) = (self.first, self.job);
        let change = LaneChange { side: vec![first, job], ..lane_change(ahead(job)) };
        self.accept(bench, |commit| commit.lanes = vec![change]).await;
    }
}

/// Contract 3.6: ids beyond the window join the siding of a lane only as far as its record is ahead.
pub async fn a_lane_is_sided_beyond_the_window_as_far_as_it_is_ahead(bench: &Bench) {
    let mut far = far(bench).await;
    let (first, job, other) = (far.first, far.job, far.other);
    for record in [LaneRecord::new(lane("a")), ahead(first)] {
        let change = LaneChange { side: vec![first, job], ..lane_change(record) };
        far.refuse(bench, |commit| commit.lanes = vec![change]).await;
    }
    // No lane is ahead of the log.
    far.refuse(bench, |commit| commit.lanes = vec![lane_change(ahead(other.next()))]).await;
    far.side_both(bench).await;
    let seat = bench.snapshot(far.place.shard).await.seats.remove(0);
    assert_eq!(seat.floor, EventId(0), "nothing is passed by it");
    assert_eq!(seat.lanes[0].siding, [first, job]);
    assert_eq!(seat.lanes[0].record, ahead(job));
}

/// Contract 3.6: what is in a siding beyond the window ends there, and its job with it, once.
pub async fn what_is_run_ahead_ends_beyond_the_window_and_once(bench: &Bench) {
    let mut far = far(bench).await;
    let (first, job, other) = (far.first, far.job, far.other);
    // Not before it is in a siding, and nobody else's.
    far.refuse(bench, |commit| commit.endings = vec![ending(first, Terminal::Failed)]).await;
    far.refuse(bench, |commit| commit.jobs = vec![job_end(job, inline("early"))]).await;
    far.side_both(bench).await;
    far.refuse(bench, |commit| commit.endings = vec![ending(other, Terminal::Failed)]).await;
    let unside = LaneChange { unside: vec![first, job], ..lane_change(ahead(job)) };
    far.accept(bench, |commit| {
        commit.lanes = vec![unside];
        commit.endings = vec![ending(first, Terminal::Failed)];
        commit.jobs = vec![job_end(job, inline("result"))];
    })
    .await;
    let ended = bench.job(far.place.shard, JobNumber::Event(job)).await;
    assert!(matches!(ended, JobState::Ended { .. }), "{ended:?}");
    far.refuse(bench, |commit| commit.endings = vec![ending(first, Terminal::Failed)]).await;
    far.refuse(bench, |commit| commit.jobs = vec![job_end(job, inline("late"))]).await;
    // One that comes back into its siding keeps its first end.
    let side = LaneChange { side: vec![job], ..lane_change(ahead(job)) };
    far.accept(bench, |commit| commit.lanes = vec![side]).await;
    let unside = LaneChange { unside: vec![job], ..lane_change(ahead(job)) };
    far.accept(bench, |commit| {
        commit.lanes = vec![unside];
        commit.jobs = vec![job_end(job, inline("second"))];
    })
    .await;
    assert_eq!(bench.job(far.place.shard, JobNumber::Event(job)).await, ended, "the first end stays");
}

/// Contract 3.6: a lane stays ahead until the floor is there, or what it ran would run again.
pub async fn a_lane_stays_ahead_until_the_floor_is_there(bench: &Bench) {
    let mut far = far(bench).await;
    let (first, job) = (far.first, far.job);
    far.side_both(bench).await;
    let unside = LaneChange { unside: vec![first, job], ..lane_change(ahead(job)) };
    far.accept(bench, |commit| commit.lanes = vec![unside]).await;
    let plain = || LaneChange { lane: lane("a"), record: None, side: Vec::new(), unside: Vec::new() };
    far.refuse(bench, |commit| commit.lanes = vec![plain()]).await;
    far.refuse(bench, |commit| commit.lanes = vec![lane_change(LaneRecord::new(lane("a")))]).await;
    far.refuse(bench, |commit| commit.lanes = vec![lane_change(ahead(first))]).await;
    far.accept(bench, |commit| commit.lanes = vec![lane_change(ahead(job.next()))]).await;
    let ids: Vec<EventId> = (1..=far.other.0).map(EventId).collect();
    let (near, rest) = ids.split_at(usize::try_from(limits::WINDOW_IDS).expect("small"));
    far.accept(bench, |commit| commit.passed = passed(near)).await;
    // With the commit that brings the floor there it is still to be kept.
    far.refuse(bench, |commit| {
        commit.passed = passed(rest);
        commit.lanes = vec![plain()];
    })
    .await;
    far.accept(bench, |commit| commit.passed = passed(rest)).await;
    far.accept(bench, |commit| commit.lanes = vec![plain()]).await;
    assert!(bench.snapshot(far.place.shard).await.seats[0].lanes.is_empty());
}
