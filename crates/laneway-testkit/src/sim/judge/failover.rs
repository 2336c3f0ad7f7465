//! A store that lost its end. What it lost may be gone or come again, and nothing else; no id is given twice; whoever
//! owned a seat before owns it no more.

use std::collections::BTreeMap;

use laneway_core::{EventId, Shard};

use super::Judge;
use crate::sim::life::TrueNow;

impl Judge {
    /// The store is as it was when this judge knew all of it. What was learned elsewhere than from the store stays known.
    pub(crate) fn fail_over(&mut self, now: TrueNow, kept: Self) {
        self.hit("store lost its end");
        self.disturb(now);
        let Self {
            events, lanes, origins, scheduled, tickets, ends, emits, mut seats, tried, cluster, ..
        } = kept;
        self.lose_events(&events);
        (self.lanes, self.origins, self.emits) = (lanes, origins, emits);
        (self.scheduled, self.tickets, self.ends) = (scheduled, tickets, ends);
        for (data, found) in &mut self.tried {
            *found = tried.get(data).copied().flatten();
        }
        let known = std::mem::take(&mut self.seats);
        for (seat, before) in known {
            let mut model = seats.remove(&seat).unwrap_or_default();
            // What waits in the outbox may have arrived: that is noted there, and the note is lost.
            self.may_double.extend(model.outbox.iter().cloned());
            (model.terms, model.outlived) = (before.terms, true);
            self.seats.insert(seat, model);
        }
        self.cluster.fail_over(now, &cluster);
    }

    fn lose_events(&mut self, kept: &BTreeMap<Shard, BTreeMap<EventId, laneway_core::Event>>) {
        for (shard, events) in std::mem::replace(&mut self.events, kept.clone()) {
            let left = kept.get(&shard);
            let gone = events.into_keys().filter(|id| left.is_none_or(|left| !left.contains_key(id)));
            self.lost.extend(gone.map(|id| (shard, id)));
        }
        let lost = &self.lost;
        let before = self.acked.len();
        self.acked.retain(|(shard, id, _)| !lost.contains(&(*shard, *id)));
        if self.acked.len() < before {
            self.hit("acknowledged event lost with the store");
        }
    }
}
