//! What an owner puts into its next commit: events in lane order, some parked in a siding, with states, emits and
//! ends of jobs.

use std::collections::BTreeMap;

use bytes::Bytes;
use laneway_core::store::{Commit, Emit, Entry, LaneChange, StateWrite};
use laneway_core::{CommitId, Event, EventId, LaneName, LaneRecord, StoreError, Terminal};

use super::owner::{Owner, Plan};
use crate::bench::{draft, ending, inline, job_end, parked, read_of};
use crate::check::Settled;

impl Owner {
    /// A commit of some of what waits; `None` when the owner learned that it is not the owner any more.
    pub(super) async fn plan(&mut self) -> Option<Plan> {
        let floor = self.held.as_ref()?.window.floor();
        let page = match self.world.look(self.seat.shard, floor).await {
            Ok(page) => page,
            Err(StoreError::Trimmed { .. }) => {
                self.held = None;
                return None;
            }
            Err(error) => panic!("an owner cannot read: {error}"),
        };
        let mut lanes: BTreeMap<LaneName, Vec<Event>> = BTreeMap::new();
        let held = self.held.as_ref()?;
        for entry in page.entries {
            let Entry::Event(event) = entry else { continue };
            if !held.window.contains(event.id) {
                let name = event.key.clone().map_or(LaneName::Event(event.id), LaneName::Key);
                lanes.entry(name).or_default().push(event);
            }
        }
        for name in held.sidings.keys() {
            lanes.entry(name.clone()).or_default();
        }
        let commit = Commit::new(self.seat, held.fence, CommitId(self.world.unique()));
        let mut plan = Plan { commit, settled: Vec::new(), sidings: held.sidings.clone() };
        plan.commit.forwarded = Some(held.forwarded);
        plan.commit.requests_applied = Some(held.request_no);
        let chosen: Vec<_> = lanes.into_iter().filter(|_| self.random.u8(0..3) > 0).take(6).collect();
        for (name, waiting) in chosen {
            if plan.sidings.contains_key(&name) {
                self.drain_siding(&mut plan, name, waiting).await;
            } else {
                self.advance(&mut plan, name, waiting);
            }
        }
        Some(plan)
    }

    /// Settles the first events of a plain lane, or parks it with its first event.
    fn advance(&mut self, plan: &mut Plan, name: LaneName, waiting: Vec<Event>) {
        if self.random.u8(0..8) == 0 {
            let head = waiting[0].id;
            plan.commit.passed.insert(head);
            let record = Some(parked(name.clone(), head));
            plan.commit.lanes.push(LaneChange {
                lane: name.clone(),
                record,
                side: vec![head],
                unside: Vec::new(),
            });
            plan.sidings.insert(name, vec![head]);
            self.world.sometimes.hit("a lane was parked");
            return;
        }
        let count = self.random.usize(1..4).min(waiting.len());
        for event in &waiting[..count] {
            plan.commit.passed.insert(event.id);
            self.end(plan, event);
        }
    }

    /// Settles the first sided event of a lane, and lets a newer one join the siding's end.
    async fn drain_siding(&mut self, plan: &mut Plan, name: LaneName, waiting: Vec<Event>) {
        let mut sided = plan.sidings.remove(&name).expect("the caller saw it");
        let first = sided.remove(0);
        let from = laneway_core::store::ReadFrom::Ids(vec![first]);
        let page = self.world.store.read(read_of(self.seat.shard, from)).await;
        let Some(Entry::Event(event)) = page.ok().and_then(|page| page.entries.into_iter().next()) else {
            // Only an owner that lost its seat can miss a sided event: it will be fenced.
            sided.insert(0, first);
            plan.sidings.insert(name, sided);
            self.world.sometimes.hit("a former owner missed its siding");
            return;
        };
        self.end(plan, &event);
        let joining: Vec<EventId> =
            waiting.iter().take(self.random.usize(0..3)).map(|event| event.id).collect();
        joining.iter().for_each(|id| plan.commit.passed.insert(*id));
        sided.extend(&joining);
        let record =
            sided.first().map(|head| LaneRecord { head: Some(*head), ..LaneRecord::new(name.clone()) });
        let change = LaneChange { lane: name.clone(), record, side: joining, unside: vec![first] };
        plan.commit.lanes.push(change);
        if sided.is_empty() {
            self.world.sometimes.hit("a siding was emptied");
        } else {
            plan.sidings.insert(name, sided);
        }
    }

    /// Ends one event: its job, its lane's state, sometimes an end other than done, sometimes emits.
    fn end(&mut self, plan: &mut Plan, event: &Event) {
        let place = event.key.clone().zip(event.seq);
        plan.settled.push(Settled { id: event.id, place: place.clone() });
        if let Some((key, seq)) = place {
            plan.commit.states.retain(|write| write.key != key);
            plan.commit.states.push(StateWrite { key, value: Some(Bytes::from(seq.to_string())) });
        }
        if self.random.u8(0..6) == 0 {
            plan.commit.endings.push(ending(event.id, Terminal::Failed));
        }
        if event.job.is_some_and(|job| job.responder == self.seat.processor) {
            // The term makes ends of different owners differ, so that a second end would be seen.
            let term = plan.commit.fence.term;
            plan.commit.jobs.push(job_end(event.id, inline(&format!("result of {} by {term}", event.id))));
        }
        for index in 0..self.random.u8(0..3) {
            let data = format!("emit {} {} {index} {}", self.seat.processor, event.id, plan.commit.id);
            let lane = format!("out-{}", self.random.u8(0..3));
            plan.commit.emits.push(Emit { stream: self.world.target.stream.id, draft: draft(&lane, &data) });
        }
    }
}
