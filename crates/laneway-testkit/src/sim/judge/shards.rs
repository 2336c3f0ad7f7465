//! Events and appends: D1 acknowledged is kept, D2 nothing is invented, D4 one event per name, A2 emits arrive once,
//! L2 nothing joins before its time, and the chain.

use laneway_core::store::{Append, Appended, Receipt, Source};
use laneway_core::{DelayMode, Draft, Event, EventId, JobId, Shard, StartAfter, Steady};

use super::Judge;
use crate::sim::life::TrueNow;
use crate::sim::record::{By, Refused};

/// A draft that waits outside its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheduled {
    due: Steady,
}

/// Whether data of this kind tells its event from all others; firings of a schedule and reports do not.
pub(super) fn is_unique(draft_kind: &str) -> bool {
    draft_kind.is_empty()
}

impl Judge {
    pub(super) fn append(
        &mut self,
        now: TrueNow,
        by: By,
        append: &Append,
        answer: &Result<Appended, Refused>,
    ) {
        for draft in append.drafts.iter().filter(|draft| is_unique(draft.kind.as_str())) {
            self.tried.entry(draft.data.clone()).or_default();
        }
        let appended = match answer {
            Ok(appended) => appended,
            Err(Refused::Input(_)) => return self.hit("append refused"),
            Err(_) => return,
        };
        if by.late && self.is_dead(by.life) {
            self.hit("append of a dead process arrived");
        }
        for (draft, receipt) in append.drafts.iter().zip(&appended.receipts) {
            match receipt {
                Receipt::New { .. } => self.taken_as_new(append, draft),
                Receipt::Duplicate { .. } => {
                    self.hit("duplicate append caught");
                    if matches!(
                        append.origin.as_ref().map(|origin| &origin.source),
                        Some(Source::Outbox { .. })
                    ) {
                        self.hit("emit forwarded again and caught");
                    }
                }
                Receipt::Stale { .. } => self.hit("stale generation refused"),
                Receipt::Scheduled { ticket, .. } => {
                    self.tickets.insert((append.shard, *ticket), draft.data.clone());
                    self.taken_as_new(append, draft);
                    if let Some(delay) = draft.delay.filter(|delay| delay.mode == DelayMode::Join)
                        && let StartAfter::Delay(length) = delay.until
                    {
                        let due = now.steady.after(length);
                        self.scheduled.entry(draft.data.clone()).or_insert(Scheduled { due });
                    }
                }
            }
        }
    }

    /// The draft left the schedule without an event.
    pub(super) fn cancel_scheduled(&mut self, shard: Shard, ticket: u64) {
        self.hit("scheduled job cancelled");
        if let Some(data) = self.tickets.get(&(shard, ticket)) {
            self.scheduled.remove(data);
        }
    }

    fn taken_as_new(&mut self, append: &Append, draft: &Draft) {
        let (Some(origin), Some(number)) = (&append.origin, draft.origin_seq) else { return };
        let name = format!("{} {:?} {number}", append.shard, origin.source);
        if !self.origins.insert(name.clone()) {
            self.report("D4", format!("number {name} of an origin was taken twice"));
        }
    }

    pub(super) fn acknowledge(&mut self, append: &Append, receipts: &[Receipt]) {
        for (draft, receipt) in append.drafts.iter().zip(receipts) {
            let receipt = match receipt {
                Receipt::Duplicate { first: Some(first) } => first,
                receipt => receipt,
            };
            // An answer that was on its way while the store lost what it speaks of.
            if let Receipt::New { id, .. } = receipt
                && !self.lost.contains(&(append.shard, *id))
            {
                self.acked.push((append.shard, *id, draft.data.clone()));
            }
        }
    }

    /// The jobs that these events are.
    pub(crate) fn jobs_of(&self, shard: Shard, ids: impl Iterator<Item = EventId>) -> Vec<JobId> {
        let events = self.events.get(&shard);
        ids.filter_map(|id| events?.get(&id)?.job.map(|job| job.id)).collect()
    }

    pub(super) fn join(&mut self, now: TrueNow, shard: Shard, events: &[Event]) {
        for event in events {
            self.join_one(now, shard, event);
        }
    }

    fn join_one(&mut self, now: TrueNow, shard: Shard, event: &Event) {
        self.hit("event");
        let place = format!("event {shard}/{} ({})", event.id, String::from_utf8_lossy(&event.data));
        if self.lost.contains(&(shard, event.id)) {
            self.report("1.4", format!("{place} has an id that was given before"));
        }
        if is_unique(event.kind.as_str()) && event.headers.get("laneway-redriven-from").is_none() {
            match self.tried.get_mut(&event.data) {
                None => self.report("D2", format!("nobody appended {place}")),
                Some(found @ None) => *found = Some((shard, event.id)),
                Some(Some(_)) if self.may_double.contains(&event.data) => {
                    self.hit("emit doubled by a failover")
                }
                Some(Some((other, id))) => {
                    let detail = format!("{place} is there twice, also as {other}/{id}");
                    self.report("D4", detail);
                }
            }
        }
        if let Some(Scheduled { due }) = self.scheduled.remove(&event.data) {
            self.hit("delayed event joined");
            if now.steady < due {
                let early = due.since(now.steady);
                self.report("L2", format!("{place} joined its lane {early:?} before its time"));
            }
        }
        if let Some(key) = &event.key {
            let lane = self.lanes.entry((shard, key.clone())).or_default();
            let (prev, seq) = (lane.last().copied(), lane.len() as u64 + 1);
            lane.push(event.id);
            if event.prev != prev || event.seq.is_none_or(|found| found.0 != seq) {
                let found = (event.prev, event.seq);
                self.report("chain", format!("{place} has {found:?}, expected {prev:?} and {seq}"));
            }
        }
        self.events.entry(shard).or_default().insert(event.id, event.clone());
    }
}
