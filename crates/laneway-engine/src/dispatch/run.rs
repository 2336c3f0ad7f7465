//! The loop of a seat: one task that owns it, reads, starts runs, commits, and looks again. `calls` is what it asks of the
//! store, `news` what wakes it, `places` how its runs start.
//!
//! Decides nothing: it hands what happened to the seat and does what the seat asks for. Ends when the seat is lost,
//! drained, or must be seized again.

mod calls;
mod news;
mod places;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use laneway_core::store::{Committed, Page, Promoted};
use laneway_core::{Due, Fence, Incarnation, LaneName, Result, Steady, StoreError};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::carry::{Finisher, Ground};
use super::dormant::Dormant;
use super::fetch::{Loaded, Wish};
use super::intake::Views;
use super::seat::{Finished, RunNo, Seat};
use super::urgent::Found;
use super::workers::Workers;
use crate::cluster::{NodeToken, Standing};
use crate::log::Forwarded;
use crate::observe::Question;
use crate::service::{Alarm, Inbox, Now, inbox};

use news::Arrived;
pub(crate) use news::{Begin, News};

/// How often a seat that has work looks for news without being woken, and shows its levels.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a seat without work looks for news without being woken, at the least. Wake-ups inside a process are not lost.
const LOOK_MAX: Duration = Duration::from_secs(60);
/// The same on a store that other processes change: wake-ups over a network can be lost.
const LOOK_MAX_SHARED: Duration = Duration::from_secs(5);
/// How long a seat has had no work when it becomes dormant.
const DORMANT_AFTER: Duration = Duration::from_secs(60);
/// So many times longer a seat without work waits before each look, until the longest wait is reached.
const REST_LONGER: u32 = 8;
/// Wait before a failed read is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// Longest wait before emits that could not be forwarded are forwarded again.
const FORWARD_AGAIN_MAX: Duration = Duration::from_secs(5);
/// Wait before lanes that were due and just changing are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// What a turn of the loop takes of the time that a task may keep its thread, in the runtime's units (128 in all).
const TURN_COST: u32 = 8;
/// The same of a turn that took long.
const LONG_TURN_COST: u32 = 128;
/// How long runs may take to stop when their seat is to move.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether the seat is still ours, where others could take it.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// How often dead letters are counted while there are any; the store looks at all of them.
const COUNT_EVERY: Duration = Duration::from_secs(600);
/// How often it is looked whether the calendar was put forward to where something is due.
const CALENDAR_LOOK: Duration = Duration::from_secs(60);

/// Why a seat's loop ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Nothing was running any more.
    Drained,
    /// Somebody else owns it now, or the store refuses it.
    Lost(StoreError),
    /// It is to move, and a run did not stop when it was asked to.
    HeldUp,
    /// Others may believe this node dead: nothing of it may start or commit.
    Unleased,
    /// The store lives another life: what is known here may be lost there.
    Outlived,
    /// It is ours and must be seized anew.
    Restart,
    /// By a fault of its own: what was in memory cannot be trusted, so it is seized anew.
    Faulty(String),
    /// It had no work for long. It is still ours.
    Dormant(Box<Dormant>),
}

/// What was asked of the loop from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Run,
    /// Another node is to have it, or nobody knows yet who: hand it over and wait.
    Rest,
    /// End for good once nothing runs.
    Drain,
    /// End at once.
    Stop,
}

/// Whom a seat was granted to: which node, in which life of the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder {
    pub(crate) node: NodeToken,
    pub(crate) life: Incarnation,
}

struct Loop<'n> {
    ground: Arc<Ground>,
    seat: Box<Seat>,
    holder: Holder,
    /// What wakes the seat.
    news: &'n mut News,
    finished: Inbox<(RunNo, Finished)>,
    finisher: Finisher,
    commit: Option<BoxFuture<'static, Result<Committed>>>,
    reading: Option<BoxFuture<'static, Result<Page>>>,
    /// The read under way may bring events; otherwise it only looks for other news.
    reads_events: bool,
    /// A page whose lanes are not all known yet, and what was looked up for it.
    page: Option<(Page, Views)>,
    looking_up: Option<BoxFuture<'static, Result<Views>>>,
    loading: Option<BoxFuture<'static, Result<Loaded>>>,
    /// Lanes that the load under way was asked for by name: they are asked for again when it fails.
    loading_named: Vec<LaneName>,
    /// The last load was by name.
    loaded_by_name: bool,
    wishing: Option<BoxFuture<'static, Result<Vec<Wish>>>>,
    urging: Option<BoxFuture<'static, Result<Found>>>,
    forwarding: Option<BoxFuture<'static, Result<Forwarded>>>,
    /// Forwarding failed: not before then, and how long it waits the next time. Reading does not wait with it.
    forward_after: Option<Steady>,
    forward_wait: Duration,
    promoting: Option<BoxFuture<'static, Result<Promoted>>>,
    counting: Option<BoxFuture<'static, Result<u64>>>,
    /// When dead letters are counted next.
    count_at: Steady,
    checking: Option<BoxFuture<'static, Result<Fence>>>,
    /// When it is looked next whether the seat is still ours.
    check_at: Steady,
    /// Look at the log, whether or not anything is known to be there.
    look: bool,
    look_at: Steady,
    /// How long to wait before the next look, and at most.
    look_wait: Duration,
    look_max: Duration,
    /// When the meters are next told how the seat stands.
    show_at: Steady,
    /// The meters know that the seat has no work.
    shown_at_rest: bool,
    /// It is on a store that no other process changes: nobody could take it unnoticed.
    may_be_dormant: bool,
    /// When the seat becomes dormant if it has no work until then.
    dormant_at: Steady,
    alarm: Alarm,
    promote_at: Option<Steady>,
    lanes_due_at: Option<Steady>,
    /// A read failed: not before then.
    read_after: Steady,
    /// Places for the next runs. Seats that wait for one are served in turn: one that let its place go again would only
    /// hand it round.
    places: usize,
    asking_place: Option<BoxFuture<'static, OwnedSemaphorePermit>>,
    /// An accused lane runs, or is about to.
    alone: Option<OwnedSemaphorePermit>,
    asking_alone: Option<BoxFuture<'static, OwnedSemaphorePermit>>,
    /// When its runs are asked to stop, because it is to move.
    rest_by: Option<Steady>,
    /// It was just taken and is one of few, until then at the latest. The next one is taken when this one is dormant, has
    /// something to run, or waits for nothing any more.
    starting: Option<(OwnedSemaphorePermit, Steady)>,
}

/// Runs a seat until it ends or becomes dormant.
pub(crate) async fn run(
    ground: Arc<Ground>,
    seat: Box<Seat>,
    holder: Holder,
    begin: Begin,
    news: &mut News,
    mut order: watch::Receiver<Order>,
) -> Ended {
    let now = ground.env.now();
    let (finisher, finished) = inbox();
    let is_shared = ground.store.about().capabilities.shared;
    let look_max = if is_shared { LOOK_MAX_SHARED } else { LOOK_MAX };
    let may_be_dormant = !is_shared && matches!(ground.standing, Standing::Alone);
    let Start { look_wait, dormant_at, lanes_due_at, starting } =
        start(begin, now.steady, look_max, may_be_dormant);
    let mut this = Box::new(Loop {
        ground,
        seat,
        holder,
        news,
        finished,
        finisher,
        commit: None,
        reading: None,
        reads_events: false,
        page: None,
        looking_up: None,
        loading: None,
        loading_named: Vec::new(),
        loaded_by_name: false,
        wishing: None,
        urging: None,
        forwarding: None,
        forward_after: None,
        forward_wait: TRY_AGAIN,
        promoting: None,
        counting: None,
        count_at: now.steady,
        checking: None,
        check_at: now.steady.after(CHECK_EVERY),
        look: true,
        look_at: now.steady.after(look_wait),
        look_wait,
        look_max,
        may_be_dormant,
        show_at: now.steady,
        shown_at_rest: false,
        dormant_at,
        alarm: Alarm::default(),
        promote_at: None,
        lanes_due_at,
        read_after: now.steady,
        places: 0,
        asking_place: None,
        alone: None,
        asking_alone: None,
        rest_by: None,
        starting,
    });
    this.turn_until_ended(&mut order).await
}

/// How a loop begins.
struct Start {
    look_wait: Duration,
    dormant_at: Steady,
    lanes_due_at: Option<Steady>,
    starting: Option<(OwnedSemaphorePermit, Steady)>,
}

/// A seat that was only just taken, or looks by itself, is dormant at once if it finds nothing: thousands are taken when a
/// node starts. One that was dormant has no lanes that are held up.
fn start(begin: Begin, now: Steady, look_max: Duration, may_be_dormant: bool) -> Start {
    let woken = Start {
        look_wait: LOOK_EVERY,
        dormant_at: now.after(DORMANT_AFTER),
        lanes_due_at: None,
        starting: None,
    };
    match begin {
        // Where a seat is never dormant, it need not wait for that: the permit goes at once.
        Begin::Taken(one_of_few) => {
            let starting = may_be_dormant.then(|| (one_of_few, now.after(LOOK_EVERY)));
            Start { dormant_at: now, lanes_due_at: Some(now), starting, ..woken }
        }
        Begin::Woken => woken,
        Begin::Look => Start { look_wait: look_max, dormant_at: now, ..woken },
    }
}

impl Drop for Loop<'_> {
    /// However the loop ends, also by a fault of its own: its runs cannot settle any more.
    fn drop(&mut self) {
        self.give_places_back();
        self.seat.stop_all();
        self.ground.meters.leave();
    }
}

/// The answer of a call under way; waits for ever without one.
async fn answer<A>(call: &mut Option<BoxFuture<'static, A>>) -> A {
    match call {
        Some(under_way) => {
            let answer = under_way.await;
            *call = None;
            answer
        }
        None => std::future::pending().await,
    }
}

impl Loop<'_> {
    async fn turn_until_ended(&mut self, order: &mut watch::Receiver<Order>) -> Ended {
        loop {
            let now = self.ground.env.now();
            // Without an engine nobody could ever tell it to end.
            if order.has_changed().is_err() {
                return Ended::Drained;
            }
            // A process that was stopped finds its timers late: what it starts or commits is checked here, and nowhere later.
            // And one that lost its lease and has another by now is another node.
            if self.ground.standing.grant(now.steady).is_none_or(|grant| grant.node != self.holder.node) {
                return Ended::Unleased;
            }
            // What another life of the store says must not start under this term: it may come before what was lost, and
            // that runs again.
            if self.ground.catalogue.life() != self.holder.life {
                return Ended::Outlived;
            }
            let order_now = *order.borrow();
            match order_now {
                Order::Stop => return Ended::Drained,
                Order::Drain => {
                    // Whoever drains says how long runs may take.
                    self.rest_by = None;
                    self.seat.drain();
                }
                // One that has begun to hand over does so to the end, whoever is to have the seat by now.
                Order::Run if self.rest_by.is_none() => {}
                Order::Rest | Order::Run if self.rest(now.steady) => return Ended::HeldUp,
                Order::Rest | Order::Run => {}
            }
            self.act(now);
            // A seat that always has something to do answers too.
            if let Some(question) = self.news.question() {
                self.on_question(question);
            }
            if self.seat.is_drained() {
                return Ended::Drained;
            }
            if self.seat.wants_restart() {
                return Ended::Restart;
            }
            if let Some(dormant) = self.to_dormant(now.steady) {
                return Ended::Dormant(Box::new(dormant));
            }
            if self.commit.is_none() && self.waits_for_nothing() {
                self.starting = None;
            }
            // Answers of a store in this process are often there at once: without this a busy seat would keep its
            // thread, and the workers that carry out its runs would never get one.
            let took_long = self.ground.env.steady() >= Workers::until(now.steady);
            self.ground.env.let_others_run(if took_long { LONG_TURN_COST } else { TURN_COST }).await;
            if let Err(error) = self.wait(order).await {
                return Ended::Lost(error);
            }
        }
    }

    /// Hands the seat over: lets runs finish, and after a while asks them to stop. Answers whether one did not.
    fn rest(&mut self, now: Steady) -> bool {
        self.seat.drain();
        let by = *self.rest_by.get_or_insert(now.after(self.ground.grace));
        if by <= now {
            self.seat.take_back_runs();
        }
        by.after(STOP_WITHIN) <= now
    }

    /// Does everything that can be done now.
    fn act(&mut self, now: Now) {
        self.show_levels(now);
        // What was read may start in this very turn: nothing else would wake the loop for it.
        self.send_look_up(now);
        self.seat.settle(&self.ground.env, now);
        self.finished.hush();
        self.starting.take_if(|(_, until)| *until <= now.steady);
        while self.start_runs(now) {
            self.seat.settle(&self.ground.env, now);
        }
        // A place that is kept for nobody would be missed by another seat.
        self.give_places_back();
        self.ask_alone();
        self.send_commit(now);
        // After a failed call nothing is asked for a while.
        if now.steady < self.read_after {
            return;
        }
        self.send_read(now);
        self.send_load(now);
        self.send_wish();
        self.send_urgent();
        self.send_forward(now);
        self.send_promote(now);
        self.send_count(now);
        self.send_check(now);
    }

    /// Shows the levels of the seat now and then, and once more when it has no work left.
    fn show_levels(&mut self, now: Now) {
        let at_rest = self.is_at_rest();
        self.shown_at_rest &= at_rest;
        if !at_rest {
            self.dormant_at = now.steady.after(DORMANT_AFTER);
        }
        if self.show_at <= now.steady {
            self.ground.meters.show(&self.seat.levels(now));
            self.show_at = now.steady.after(LOOK_EVERY);
            // Until the first look without a find, what woke the seat may still change its levels.
            self.shown_at_rest = at_rest && self.look_wait > LOOK_EVERY;
        }
    }

    /// Whether the seat has nothing to do until it is woken. A draft that is not due may become due by a jump of the
    /// calendar, so a seat that waits for one looks often.
    fn is_at_rest(&self) -> bool {
        self.seat.is_at_rest() && self.promote_at.is_none() && self.promoting.is_none()
    }

    /// What to keep of the seat if it is to be dormant from now on.
    fn to_dormant(&self, now: Steady) -> Option<Dormant> {
        let is_due = self.dormant_at <= now && !self.look && self.read_after <= now;
        let may = self.may_be_dormant && is_due && self.waits_for_nothing() && self.is_at_rest();
        may.then(|| self.seat.to_dormant(now)).flatten()
    }

    /// Whether it reads nothing and asks for nothing: what it still sends was decided before.
    fn waits_for_nothing(&self) -> bool {
        self.page.is_none()
            && self.reading.is_none()
            && self.looking_up.is_none()
            && self.loading.is_none()
            && self.wishing.is_none()
            && self.urging.is_none()
            && self.forwarding.is_none()
            && self.counting.is_none()
            && self.alone.is_none()
            && self.asking_alone.is_none()
            && self.asking_place.is_none()
    }

    /// Something happened: the next look comes soon.
    fn look_soon(&mut self) {
        self.look = true;
        self.shown_at_rest = false;
        self.look_wait = LOOK_EVERY;
    }

    /// Waits until something happened and hands it to the seat.
    async fn wait(&mut self, order: &mut watch::Receiver<Order>) -> Result<()> {
        let wake_at = self.wake_at();
        let ground = Arc::clone(&self.ground);
        tokio::select! {
            biased;
            committed = answer(&mut self.commit) => self.on_committed(committed)?,
            finished = self.finished.recv() => self.on_finished(finished),
            page = answer(&mut self.reading) => self.on_page(page)?,
            views = answer(&mut self.looking_up) => self.on_views(views),
            loaded = answer(&mut self.loading) => self.on_loaded(loaded),
            requests = answer(&mut self.wishing) => self.on_requests(requests),
            found = answer(&mut self.urging) => self.on_urgent(found),
            forwarded = answer(&mut self.forwarding) => self.on_forwarded(forwarded)?,
            promoted = answer(&mut self.promoting) => self.on_promoted(promoted),
            counted = answer(&mut self.counting) => self.on_counted(counted),
            checked = answer(&mut self.checking) => self.on_checked(checked)?,
            places = answer(&mut self.asking_place) => {
                self.places += places.num_permits();
                places.forget();
            }
            permit = answer(&mut self.asking_alone) => {
                self.alone = Some(permit);
                self.seat.run_alone(self.ground.env.now());
            }
            arrived = self.news.next(&ground, self.seat.id()) => match arrived {
                Arrived::Hint => self.look_soon(),
                Arrived::Question(question) => self.on_question(question),
            },
            _ = order.changed() => {}
            () = self.alarm.ring(&ground.env, wake_at) => self.on_time(),
        }
        Ok(())
    }

    fn wake_at(&mut self) -> Steady {
        let now = self.ground.env.now();
        let expiry = self.seat.next_expiry();
        let read = (self.read_after > now.steady).then_some(self.read_after);
        let rate = self.seat.next_by_rate(now);
        // What cannot be done at its time must not keep the loop awake until it can.
        let loads = self.loading.is_none() && !self.seat.is_draining() && !self.seat.room().is_none();
        let due = self.lanes_due_at.filter(|_| loads).map(|at| at.max(self.read_after));
        let promote = self.promote_at.filter(|_| self.promoting.is_none()).map(|at| at.max(self.read_after));
        let long = self.seat.next_long_run().filter(|_| self.commit.is_none());
        let batch = self.seat.next_by_batch(now);
        let forward = self.forward_after.map(|at| at.max(self.read_after));
        let lease = self.ground.standing.grant(now.steady).map(|grant| grant.until);
        let rest = self.rest_by.map(|by| if by <= now.steady { by.after(STOP_WITHIN) } else { by });
        let list = self.seat.drop_unused_list(now.steady);
        let show = (!self.shown_at_rest || !self.is_at_rest()).then_some(self.show_at);
        let counts = self.counting.is_none() && self.seat.wants_dead_count();
        let count = counts.then_some(self.count_at.max(self.read_after));
        let checks = self.checking.is_none() && matches!(self.ground.standing, Standing::Member(_));
        let check = checks.then_some(self.check_at.max(self.read_after));
        let start = self.starting.as_ref().map(|(_, until)| *until);
        let times = [
            promote, due, expiry, read, long, rate, batch, forward, lease, rest, list, show, count, check,
            start,
        ];
        times.into_iter().flatten().fold(self.look_at, Steady::min)
    }

    fn on_time(&mut self) {
        let now = self.ground.env.now().steady;
        if self.look_at <= now {
            self.look = true;
            self.look_wait = if self.is_at_rest() {
                (self.look_wait * REST_LONGER).min(self.look_max)
            } else {
                LOOK_EVERY
            };
            self.look_at = now.after(self.look_wait);
        }
    }

    fn on_committed(&mut self, committed: Result<Committed>) -> Result<()> {
        let now = self.ground.env.now();
        self.seat.committed(committed?, now);
        // What changed is only of interest to those who wait for an answer.
        if self.page.is_none() {
            self.seat.look_up_sent();
        }
        if self.wishing.is_none() {
            self.seat.wish_sent();
        }
        self.ground.meters.count(self.seat.tally());
        if let Some(due) = self.seat.take_next_due() {
            let due = steady_of(due, now);
            self.lanes_due_at = Some(self.lanes_due_at.map_or(due, |known| known.min(due)));
        }
        Ok(())
    }

    fn on_finished(&mut self, first: (RunNo, Finished)) {
        let mut next = Some(first);
        while let Some((number, finished)) = next {
            self.seat.finished(number, finished);
            next = self.finished.try_recv();
        }
    }

    fn on_page(&mut self, page: Result<Page>) -> Result<()> {
        match page {
            Ok(page) => {
                let now = self.ground.env.now().steady;
                if self.reads_events && page.entries.is_empty() {
                    // Ids that were never given: a store that lost its end jumps over them.
                    self.seat.skip_to(page.head.next());
                }
                if let Some(due) = page.next_due {
                    let at = now.after(due);
                    self.promote_at = Some(self.promote_at.map_or(at, |known| known.min(at)));
                }
                self.page = Some((page, Views::new()));
                Ok(())
            }
            Err(StoreError::Trimmed { first, .. }) => {
                self.seat.skip_to(first);
                Ok(())
            }
            Err(error @ (StoreError::NotFound { .. } | StoreError::Corrupt { .. })) => Err(error),
            Err(error) => {
                self.try_again(&error);
                Ok(())
            }
        }
    }

    fn on_views(&mut self, views: Result<Views>) {
        match (views, &mut self.page) {
            (Ok(found), Some((_, views))) => views.extend(found),
            (Ok(_), None) => {}
            (Err(error), _) => self.try_again(&error),
        }
    }

    fn on_loaded(&mut self, loaded: Result<Loaded>) {
        let now = self.ground.env.now();
        let named = std::mem::take(&mut self.loading_named);
        match loaded {
            Ok(loaded) => {
                if let Some(due) = loaded.next_due {
                    let due = steady_of(due, now);
                    self.lanes_due_at = Some(self.lanes_due_at.map_or(due, |known| known.min(due)));
                }
                if self.seat.load(&self.ground.env, loaded, now) {
                    self.lanes_due_at = Some(now.steady.after(LOOK_AGAIN));
                }
            }
            Err(error) => {
                self.seat.want_again(named);
                self.try_again(&error);
                self.lanes_due_at = Some(now.steady.after(TRY_AGAIN));
            }
        }
    }

    fn on_requests(&mut self, requests: Result<Vec<Wish>>) {
        match requests {
            Ok(requests) => self.seat.grant_all(&self.ground.env, requests, self.ground.env.now()),
            Err(error) => self.try_again(&error),
        }
    }

    fn on_urgent(&mut self, found: Result<Found>) {
        match found {
            Ok(found) => self.seat.take_urgent(found, self.ground.env.now()),
            Err(error) => {
                self.seat.urgent_failed();
                self.try_again(&error);
            }
        }
    }

    fn on_question(&self, Question { lanes, answer }: Question) {
        // The caller may have gone away.
        drop(answer.send(self.seat.under_way(&lanes, self.ground.env.now())));
    }

    fn on_forwarded(&mut self, forwarded: Result<Forwarded>) -> Result<()> {
        match forwarded {
            Ok(forwarded) => {
                self.forward_wait = TRY_AGAIN;
                self.seat.emits_forwarded(forwarded);
            }
            // The store, or the seat in it, is not what was taken.
            Err(error @ (StoreError::Adopt { .. } | StoreError::Fenced { .. })) => return Err(error),
            Err(error) => {
                tracing::warn!(seat = %self.seat.id(), %error, "emits are forwarded again");
                self.forward_after = Some(self.ground.env.now().steady.after(self.forward_wait));
                self.forward_wait = (self.forward_wait * 2).min(FORWARD_AGAIN_MAX);
            }
        }
        Ok(())
    }

    fn on_promoted(&mut self, promoted: Result<Promoted>) {
        let now = self.ground.env.now().steady;
        match promoted {
            Ok(promoted) => {
                self.look |= promoted.moved > 0;
                self.promote_at = promoted.next.map(|next| now.after(next));
            }
            Err(error) => {
                self.try_again(&error);
                self.promote_at = Some(now.after(TRY_AGAIN));
            }
        }
    }

    /// Only the meters wait for it: a failure holds nothing up.
    fn on_counted(&mut self, counted: Result<u64>) {
        let is_known = match counted {
            Ok(count) => self.seat.dead_counted(count),
            Err(error) => {
                tracing::warn!(seat = %self.seat.id(), %error, "dead letters are counted again");
                false
            }
        };
        let wait = if is_known { COUNT_EVERY } else { LOOK_EVERY };
        self.shown_at_rest = false;
        self.count_at = self.ground.env.now().steady.after(wait);
    }

    /// An owner that has nothing to commit would never learn that it is none any more.
    fn on_checked(&mut self, checked: Result<Fence>) -> Result<()> {
        self.check_at = self.ground.env.steady().after(CHECK_EVERY);
        match checked {
            Ok(stored) if stored.nonce != self.seat.fence().nonce => {
                Err(StoreError::Fenced { seat: self.seat.id(), current: stored.term })
            }
            Ok(_ours) => Ok(()),
            Err(error) => {
                self.try_again(&error);
                Ok(())
            }
        }
    }

    fn try_again(&mut self, error: &StoreError) {
        tracing::warn!(seat = %self.seat.id(), %error, "a call to the store is tried again");
        self.starting = None;
        self.read_after = self.ground.env.now().steady.after(TRY_AGAIN);
        self.look = true;
    }
}

/// When to look for what is due then. A calendar may be put forward: what hangs on it is looked at from time to time.
fn steady_of(due: Due, now: Now) -> Steady {
    match due {
        Due::Steady(at) => at,
        Due::Calendar(at) => {
            let left = Duration::from_micros(at.0.saturating_sub(now.calendar.0));
            now.steady.after(left.min(CALENDAR_LOOK))
        }
    }
}
