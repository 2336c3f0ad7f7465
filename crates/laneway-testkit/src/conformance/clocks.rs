//! Cases about a wall clock that is wrong: what may happen, what must not, and what holds again once it is right.
//!
//! | jump | until the clock has settled | once the clock is right again | if it stays, after the settling time |
//! | --- | --- | --- | --- |
//! | forward, by an hour or a year | nothing is deleted by age, no date comes early | as if nothing had happened | it is believed |
//! | back, by an hour or a year | the same, and dates keep coming | as if nothing had happened | it is believed |
//! | forward for two seconds, then back | nothing is deleted by age, dates and `ttl` are right | - | - |
//! | slewed by a time server | nothing waits: it is not a jump | - | - |
//! | at a start, same boot | as while running | as if nothing had happened | it is believed |
//! | at a start, after a reboot | as while running; up to a day forward, dates follow at once | dates follow at once | it is believed |
//!
//! Delays keep their length in every row. Deletion by number and of what is passed and not kept needs no clock and
//! goes on.

use std::time::Duration;

use laneway_core::store::{
    DeadLetter, JobEnd, JobState, Jobs, Promote, Promoted, Query, Receipt, Request, RequestOp,
};
use laneway_core::{
    CLOCK_SETTLE, Delay, DelayMode, Draft, EventId, JobNumber, StartAfter, StreamSettings, Terminal,
    Timestamp,
};

use super::expect::rows;
use crate::bench::{Bench, DraftExt, Place, delayed, draft, ending, inline, job_draft, job_end, key, passed};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Sets the wall clock ahead or back.
#[derive(Clone, Copy, Debug)]
enum Jump {
    Ahead(Duration),
    Back(Duration),
}

const JUMPS: [Jump; 4] = [Jump::Ahead(YEAR), Jump::Back(YEAR), Jump::Ahead(HOUR), Jump::Back(HOUR)];

impl Jump {
    fn apply(self, bench: &Bench) {
        bench.jump_to(match self {
            Self::Ahead(by) => bench.now().after(by),
            Self::Back(by) => bench.now().before(by),
        });
    }

    fn undo(self, bench: &Bench) {
        let opposite = match self {
            Self::Ahead(by) => Self::Back(by),
            Self::Back(by) => Self::Ahead(by),
        };
        opposite.apply(bench);
    }
}

fn at(lane: &str, time: Timestamp) -> Draft {
    Draft { delay: Some(Delay { until: StartAfter::At(time), mode: DelayMode::Join }), ..draft(lane, "date") }
}

/// A place with one of everything that has a life: an event, a result, a dead letter, a dedup id, the token of a
/// request that was answered, an idle lane. All of it lives for half an hour at least.
struct Mortal {
    place: Place,
    result: EventId,
    named: Draft,
    first: Receipt,
    request: Request,
}

impl Mortal {
    async fn new(bench: &Bench) -> Self {
        let (keep, lanes) = (HOUR / 2, Some(HOUR / 2));
        let settings =
            StreamSettings { keep, dead_keep: keep, forget_lanes_after: lanes, ..Bench::settings() };
        let place = bench.place_with(settings).await;
        let dead = bench.send_one(&place, draft("dead", "x")).await;
        let result = bench.send_one(&place, job_draft("job", "x", place.seat.processor)).await;
        let named = draft("named", "x").dedup("d", 1);
        let first = bench.send(&place, vec![named.clone()]).await.remove(0);
        let op = RequestOp::Resume { lane: None };
        let request = Request { seat: place.seat, token: bench.token(), op };
        bench.store().request(request.clone()).await.expect("a seat that exists");
        let fence = bench.seize(place.seat).await.progress.fence;
        let mut commit = bench.commit_of(place.seat, fence);
        commit.passed = passed(&[dead, result, EventId(3)]);
        commit.endings = vec![ending(dead, Terminal::Failed)];
        let event = bench.event(place.shard, dead).await;
        commit.dead = vec![DeadLetter { event, cause: "boom".into(), attempts: 5, at: Timestamp(0) }];
        commit.jobs = vec![job_end(result, inline("paid"))];
        commit.requests_applied = Some(1);
        bench.commit(commit).await;
        bench.trim(place.shard).await;
        Self { place, result, named, first, request }
    }

    /// Everything is there, and retention takes nothing of it.
    async fn lives(&self, bench: &Bench, when: &str) {
        for _ in 0..2 {
            let trimmed = bench.trim(self.place.shard).await;
            assert_eq!((trimmed.events, trimmed.rows), (0, 0), "{when}");
            assert_eq!(self.counts(bench).await, (3, 1, true), "{when}: events, dead letters, the result");
            assert!(bench.tail(self.place.shard, &key("job")).await.is_some(), "{when}");
        }
        let again = bench.send(&self.place, vec![self.named.clone()]).await;
        assert_eq!(again, [Receipt::Duplicate { first: Some(Box::new(self.first.clone())) }], "{when}");
        let request = bench.store().request(self.request.clone()).await.expect("a seat that exists");
        assert!(request.repeated, "{when}");
    }

    async fn counts(&self, bench: &Bench) -> (usize, usize, bool) {
        let dead = rows!(bench, Query::Dead(self.place.seat, EventId(0), 10), Dead).len();
        let job = bench.job(self.place.shard, JobNumber::Event(self.result)).await;
        (bench.events(self.place.shard).await.len(), dead, matches!(job, JobState::Ended { .. }))
    }

    /// Everything has gone.
    async fn is_gone(&self, bench: &Bench, when: &str) {
        bench.trim(self.place.shard).await;
        assert_eq!(self.counts(bench).await, (0, 0, false), "{when}: events, dead letters, the result");
    }
}

async fn promote(bench: &Bench, place: &Place) -> Promoted {
    let promote = Promote { shard: place.shard, limit: 10 };
    bench.store().promote(promote).await.expect("a shard that exists")
}

/// A store on which the clock has been right for long.
async fn settled(bench: &Bench) {
    let place = bench.place().await;
    for _ in 0..2 {
        bench.advance(CLOCK_SETTLE);
        bench.trim(place.shard).await;
    }
}

/// Contract 3.17: what a jump of the wall clock makes look old is not deleted, and a jump that is corrected leaves no
/// trace.
pub async fn a_clock_that_is_wrong_for_a_moment_deletes_nothing(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    for jump in JUMPS {
        let mortal = Mortal::new(bench).await;
        jump.apply(bench);
        mortal.lives(bench, &format!("{jump:?}")).await;
        bench.advance(2 * SECOND);
        mortal.lives(bench, &format!("{jump:?}, two seconds later")).await;
        jump.undo(bench);
        mortal.lives(bench, &format!("{jump:?}, corrected")).await;
        bench.advance(CLOCK_SETTLE);
        mortal.lives(bench, &format!("{jump:?}, corrected and settled")).await;
        bench.advance(HOUR + CLOCK_SETTLE);
        mortal.is_gone(bench, &format!("{jump:?}, everything is old")).await;
    }
}

/// Contract 3.17: a jump that lasts is believed after the settling time, and not before.
pub async fn a_jump_that_lasts_is_believed_once_it_has_settled(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    let mortal = Mortal::new(bench).await;
    Jump::Ahead(YEAR).apply(bench);
    mortal.lives(bench, "at once").await;
    bench.advance(CLOCK_SETTLE - SECOND);
    mortal.lives(bench, "a second too early").await;
    bench.advance(SECOND);
    mortal.is_gone(bench, "settled").await;
}

/// Contract 1.10, 3.17: a date comes neither early while the clock is wrong nor late when it is right again.
pub async fn dates_wait_for_a_clock_that_has_settled(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    for jump in JUMPS {
        let place = bench.place().await;
        let tomorrow = bench.now().after(DAY);
        bench.send(&place, vec![at("a", tomorrow), delayed("b", "delay", DAY)]).await;
        jump.apply(bench);
        assert_eq!(promote(bench, &place).await, Promoted { moved: 0, next: Some(DAY) }, "{jump:?}");
        // What is given while the clock is wrong is not lost on it either.
        let soon = bench.place().await;
        bench.send(&soon, vec![delayed("a", "delay", MINUTE)]).await;
        bench.advance(MINUTE);
        assert_eq!(promote(bench, &soon).await.moved, 1, "{jump:?}");
        jump.undo(bench);
        let left = DAY - MINUTE;
        assert_eq!(promote(bench, &place).await, Promoted { moved: 0, next: Some(left) }, "{jump:?}");
        let again = bench.place().await;
        bench.send(&again, vec![at("a", bench.now().after(DAY))]).await;
        assert_eq!(promote(bench, &again).await.moved, 0, "{jump:?}: tomorrow is not today");
        bench.advance(left);
        assert_eq!(promote(bench, &place).await, Promoted { moved: 2, next: None }, "{jump:?}");
    }
}

/// Contract 1.10, 3.17: dates follow a jump that lasts; one that is an hour away is due when an hour is skipped.
pub async fn dates_follow_a_jump_that_lasts(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    let place = bench.place().await;
    bench.send(&place, vec![at("a", bench.now().after(HOUR))]).await;
    Jump::Ahead(HOUR).apply(bench);
    assert_eq!(promote(bench, &place).await, Promoted { moved: 0, next: Some(HOUR) });
    bench.advance(CLOCK_SETTLE);
    assert_eq!(promote(bench, &place).await, Promoted { moved: 1, next: None });
}

/// Design 3, time: a time to live counts from a right clock again as soon as the clock is right.
pub async fn a_time_to_live_ends_in_time_after_a_jump(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    for jump in JUMPS {
        let place = bench.place().await;
        let right = bench.now();
        jump.apply(bench);
        let during = bench.send_one(&place, Draft { ttl: Some(MINUTE), ..draft("a", "x") }).await;
        bench.advance(2 * SECOND);
        jump.undo(bench);
        let after = bench.send_one(&place, Draft { ttl: Some(MINUTE), ..draft("a", "x") }).await;
        let expiries = [during, after].map(|id| bench.event(place.shard, id));
        let [during, after] = futures::future::join_all(expiries).await.try_into().expect("two events");
        assert_eq!(during.expires_at, Some(right.after(MINUTE)), "{jump:?}");
        assert_eq!(after.expires_at, Some(right.after(MINUTE + 2 * SECOND)), "{jump:?}");
        assert!(after.time >= during.time, "{jump:?}: log time never goes back");
        assert_eq!(
            after.time,
            right.after(2 * SECOND),
            "{jump:?}: a jump that was not believed is not in the log"
        );
    }
}

/// Contract 3.17: log time never goes back, whatever is believed, and new events still grow old and go.
pub async fn events_grow_old_while_log_time_is_ahead(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    let settings = StreamSettings { keep: HOUR, ..Bench::settings() };
    let place = bench.place_with(settings).await;
    Jump::Ahead(YEAR).apply(bench);
    bench.trim(place.shard).await;
    bench.advance(CLOCK_SETTLE);
    let wrong = bench.send_one(&place, draft("a", "x")).await;
    Jump::Back(YEAR).apply(bench);
    bench.trim(place.shard).await;
    bench.advance(CLOCK_SETTLE);
    let right = bench.send_one(&place, draft("a", "x")).await;
    assert!(bench.event(place.shard, right).await.time >= bench.event(place.shard, wrong).await.time);
    bench.pass(place.seat, &[wrong, right]).await;
    bench.trim(place.shard).await;
    bench.advance(HOUR / 2);
    let last = bench.send_one(&place, draft("a", "x")).await;
    bench.pass(place.seat, &[last]).await;
    assert_eq!(bench.trim(place.shard).await.events, 0, "half an hour is left");
    bench.advance(HOUR / 2);
    assert_eq!(bench.trim(place.shard).await.first, last, "kept for an hour");
    for _ in 0..2 {
        bench.advance(HOUR);
        bench.trim(place.shard).await;
    }
    assert!(bench.events(place.shard).await.is_empty(), "nothing stays for a year");
}

/// Contract 3.17: a time server that slews the clock holds nothing up.
pub async fn a_slewed_clock_is_a_right_one(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    let mortal = Mortal::new(bench).await;
    let place = bench.place().await;
    bench.send(&place, vec![at("a", bench.now().after(2 * HOUR))]).await;
    for _ in 0..119 {
        bench.advance(MINUTE);
        bench.jump_to(bench.now().after(Duration::from_millis(30)));
        assert_eq!(promote(bench, &place).await.moved, 0);
    }
    mortal.is_gone(bench, "slewed").await;
    bench.advance(MINUTE);
    assert_eq!(promote(bench, &place).await.moved, 1);
}

/// Contract 3.17: a clock that is wrong at a start deletes nothing and runs nothing early, and is forgotten when it is right.
pub async fn a_clock_that_is_wrong_at_a_start_deletes_nothing(bench: &Bench) {
    if !bench.clock_moves() || !bench.capabilities().persistent {
        return;
    }
    settled(bench).await;
    for jump in JUMPS {
        let mortal = Mortal::new(bench).await;
        let place = bench.place().await;
        bench.send(&place, vec![at("a", bench.now().after(HOUR))]).await;
        jump.apply(bench);
        bench.reopen().await;
        mortal.lives(bench, &format!("{jump:?} at a start")).await;
        assert_eq!(promote(bench, &place).await.moved, 0, "{jump:?} at a start");
        bench.advance(2 * SECOND);
        jump.undo(bench);
        mortal.lives(bench, &format!("{jump:?} at a start, corrected")).await;
        bench.reopen().await;
        mortal.lives(bench, &format!("{jump:?} at a start, corrected, started again")).await;
        let clock = bench.documents().clock().await.expect("readable");
        assert!(clock.is_none_or(|clock| clock == bench.now()), "{jump:?}: the store is not ahead");
        bench.advance(HOUR);
        assert_eq!(promote(bench, &place).await.moved, 1, "{jump:?}: in time");
        mortal.is_gone(bench, &format!("{jump:?}, everything is old")).await;
    }
}

/// Contract 3.17: after a reboot only the wall clock tells how long it took. It is believed up to a day at once, and beyond when
/// it has settled.
pub async fn a_wrong_clock_after_a_reboot_deletes_nothing(bench: &Bench) {
    if !bench.clock_moves() || !bench.capabilities().persistent {
        return;
    }
    settled(bench).await;
    for jump in [Jump::Ahead(YEAR), Jump::Back(YEAR)] {
        let mortal = Mortal::new(bench).await;
        let place = bench.place().await;
        bench.send(&place, vec![at("a", bench.now().after(HOUR)), delayed("b", "delay", HOUR)]).await;
        jump.apply(bench);
        bench.reboot().await;
        mortal.lives(bench, &format!("{jump:?} at boot")).await;
        assert_eq!(promote(bench, &place).await.moved, 0, "{jump:?} at boot");
        bench.advance(2 * SECOND);
        jump.undo(bench);
        mortal.lives(bench, &format!("{jump:?} at boot, corrected")).await;
        assert_eq!(promote(bench, &place).await.moved, 0, "{jump:?} at boot, corrected");
        bench.advance(HOUR);
        assert_eq!(promote(bench, &place).await.moved, 2, "{jump:?}: in time");
        bench.advance(CLOCK_SETTLE);
        mortal.is_gone(bench, &format!("{jump:?} at boot, everything is old")).await;
    }
    // An ordinary reboot: what came due meanwhile runs at once, and what grew old goes later.
    let mortal = Mortal::new(bench).await;
    let place = bench.place().await;
    bench.send(&place, vec![at("a", bench.now().after(HOUR))]).await;
    Jump::Ahead(2 * HOUR).apply(bench);
    bench.reboot().await;
    assert_eq!(promote(bench, &place).await.moved, 1);
    mortal.lives(bench, "not settled yet").await;
    bench.advance(CLOCK_SETTLE);
    mortal.is_gone(bench, "settled").await;
}

/// Contract 3.7, 3.17: what goes by number, or because nobody needs it, needs no clock and goes while it is wrong.
pub async fn what_needs_no_clock_is_deleted_while_it_is_wrong(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    let settings = StreamSettings { keep: Duration::ZERO, dedup_max: 2, ..Bench::settings() };
    let place = bench.place_with(settings).await;
    Jump::Ahead(YEAR).apply(bench);
    let ids = bench.fill(&place, "a", 3).await;
    bench.pass(place.seat, &ids).await;
    assert_eq!(bench.trim(place.shard).await.events, 3);
    let named = ["1", "2", "3"].map(|id| draft("a", "x").dedup(id, 1));
    bench.send(&place, named.to_vec()).await;
    let again = bench.send(&place, named.to_vec()).await;
    assert!(matches!(again[0], Receipt::New { .. }), "the first went by number: {again:?}");
}

/// Contract 1.12, 3.17: what nobody could read any more does not come back because the clock is in doubt.
pub async fn what_was_over_stays_over_while_the_clock_is_wrong(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    // The events stay, so the ends of their jobs are still known.
    let place = bench.place_with(StreamSettings { keep: 30 * DAY, ..Bench::settings() }).await;
    let mut ids = Vec::new();
    for lane in ["forgotten", "old"] {
        ids.push(bench.send_one(&place, job_draft(lane, "x", place.seat.processor)).await);
    }
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    commit.jobs = ids.iter().map(|id| JobEnd { keep: MINUTE, ..job_end(*id, inline("paid")) }).collect();
    bench.commit(commit).await;
    let forget = Jobs::Forget { shard: place.shard, number: JobNumber::Event(ids[0]) };
    bench.store().jobs(forget).await.expect("it has ended");
    bench.advance(2 * MINUTE);
    bench.trim(place.shard).await;
    let are_gone = async |when: &str| {
        for id in &ids {
            let job = bench.job(place.shard, JobNumber::Event(*id)).await;
            assert!(matches!(job, JobState::Gone), "{when}: {id} is {job:?}");
        }
    };
    are_gone("settled").await;
    for jump in [Jump::Ahead(HOUR), Jump::Ahead(YEAR), Jump::Back(MINUTE / 2)] {
        jump.apply(bench);
        are_gone(&format!("{jump:?}")).await;
        bench.trim(place.shard).await;
        jump.undo(bench);
        are_gone(&format!("{jump:?}, corrected")).await;
        settled(bench).await;
    }
    if bench.capabilities().persistent {
        bench.reboot().await;
        are_gone("after a boot").await;
    }
}

/// Contract 3.17: a store says how its clock stands.
pub async fn jumps_are_reported(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    settled(bench).await;
    let place = bench.place().await;
    let report = || bench.store().clock_report().expect("a store of ours watches its clock");
    assert_eq!((report().jumps, report().is_settled(), report().offset), (0, true, 0));
    Jump::Ahead(HOUR).apply(bench);
    bench.trim(place.shard).await;
    let found = report();
    assert_eq!((found.jumps, found.offset, found.settles_in), (1, 3_600_000_000, CLOCK_SETTLE));
    bench.advance(MINUTE);
    Jump::Back(HOUR).apply(bench);
    bench.trim(place.shard).await;
    assert_eq!((report().jumps, report().is_settled(), report().offset), (2, false, 0));
    bench.advance(CLOCK_SETTLE);
    bench.trim(place.shard).await;
    let found = report();
    assert!(found.is_settled() && found.log_ahead.is_zero(), "{found:?}");
    assert_eq!((found.wall, found.dates), (bench.now(), bench.now()));
}
