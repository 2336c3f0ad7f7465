//! How lanes stand with their owner, for whoever asks: what runs in them, and what a head that could start waits for.
//!
//! Nothing is kept for it: it is read off what the seat has anyway.

use hashbrown::{HashMap, HashSet};
use laneway_core::{LaneName, Timestamp};

use super::seat::Seat;
use crate::observe::{LaneRuns, Limit, Short, UnderWay};
use crate::service::Now;

impl Seat {
    /// How these lanes stand.
    pub(crate) fn under_way(&self, lanes: &[LaneName], now: Now) -> UnderWay {
        let runs = self.running(lanes);
        let waits = lanes.iter().filter(|lane| !runs.contains_key(*lane) && self.book.len_of(lane) > 0);
        let short_of = waits.filter_map(|lane| Some((lane.clone(), self.short_of(lane, now)?))).collect();
        UnderWay { runs, short_of }
    }

    /// What runs in these lanes. What is offered to workers and nobody has taken does not run; what has ended runs until
    /// that is durable.
    fn running(&self, lanes: &[LaneName]) -> HashMap<LaneName, LaneRuns> {
        let asked: HashSet<&LaneName> = lanes.iter().collect();
        let mut under_way = HashMap::new();
        for active in self.runs.values() {
            for lane in active.lanes.iter().filter(|lane| asked.contains(&lane.turn.key)) {
                let claim = lane.progress.claim().map(|(claim, _)| claim);
                if self.remote && claim.is_none() && lane.progress.settled().is_none() {
                    continue;
                }
                let events = lane.events().map(|waiting| waiting.event.id);
                let claimed = claim.as_ref().map(|claim| claim.through);
                let runs = LaneRuns {
                    first: lane.turn.payload.event.id,
                    last: claimed.or(events.last()).unwrap_or(lane.turn.payload.event.id),
                    attempt: lane.attempt,
                    since: active.since.calendar,
                    claim,
                };
                under_way.insert(lane.turn.key.clone(), runs);
            }
        }
        for lane in lanes {
            let ended = self.book.running_of(lane).filter(|running| running.has_ended());
            let Some(id) = ended.map(|ended| ended.event.id).filter(|_| !under_way.contains_key(lane)) else {
                continue;
            };
            let attempt = self.record_with_head(lane, id).attempts + 1;
            let runs = LaneRuns { first: id, last: id, attempt, since: Timestamp(0), claim: None };
            under_way.insert(lane.clone(), runs);
        }
        under_way
    }

    /// What the head of a lane in memory is short of: what is its lane's own comes first, then what it shares.
    fn short_of(&self, lane: &LaneName, now: Now) -> Option<Short> {
        if let (Some(per_second), Some(until)) =
            (self.settings.rate_per_key, self.rates.key_waits_until(lane, now.steady))
        {
            return Some(Short::Limit(Limit::RatePerKey { per_second, until }));
        }
        if let Some(until) = self.batch_put_off_until(lane, now) {
            return Some(Short::Batch { until });
        }
        if let (Some(per_second), Some(until)) = (self.settings.rate, self.rates.wait_until(now.steady)) {
            return Some(Short::Limit(Limit::Rate { per_second, until }));
        }
        self.lanes_wait_until(now).map(|until| Short::Batch { until })
    }
}
