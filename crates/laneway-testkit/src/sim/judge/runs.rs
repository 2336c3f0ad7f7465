//! Handlers. O1: the head runs, and nothing that is settled. O3: one run of a lane at a time. R1: attempts are bounded
//! and back-off is kept. R2: what kills the process is not started for ever.

use laneway_core::{Block, Due, EventId, LaneName, Mode, Seat, Term};
use laneway_engine::Batch;
use laneway_engine::handler::{ClaimError, Settlement};

use super::Judge;
use crate::sim::life::TrueNow;
use crate::sim::options::{PROCESSORS, STREAMS};
use crate::sim::record::LaneStart;

/// A run that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Going {
    pub(super) life: u32,
    pub(super) remote: bool,
    seat: Seat,
    /// Its lanes, with the terms they began under.
    lanes: Vec<(LaneName, Term)>,
}

impl Judge {
    pub(super) fn start(
        &mut self,
        now: TrueNow,
        life: u32,
        run: u64,
        seat: Seat,
        lanes: &[LaneStart],
        remote: bool,
    ) {
        self.hit(if remote { "remote run" } else { "run" });
        if !remote {
            self.check_leased("starts a run", life, seat, now.steady);
        }
        // Whoever starts goes by its own clocks.
        let now = now.read_with(self.lives.get(&life).map(|lived| lived.skew).unwrap_or_default());
        for start in lanes {
            self.check_alone(life, run, seat, start, remote);
            self.check_grant(seat, start);
            self.check_head(now, seat, start);
            self.check_attempts(now, seat, start, remote);
        }
        let lanes = lanes.iter().map(|start| (start.lane.clone(), start.fence.term)).collect();
        self.runs.insert(run, Going { life, remote, seat, lanes });
    }

    /// Whether the seat is still granted to whoever starts this; if not, what it does can never count.
    fn is_current(&self, seat: Seat, start: &LaneStart) -> bool {
        let granted = self.seats.get(&seat).filter(|model| !model.outlived).and_then(|model| model.fence);
        granted.is_some_and(|fence| fence.term == start.fence.term)
    }

    /// Two runs of a lane may overlap only when the older one has lost its grant.
    fn check_alone(&mut self, life: u32, run: u64, seat: Seat, start: &LaneStart, remote: bool) {
        let same = |(lane, term): &(LaneName, Term)| *lane == start.lane && *term == start.fence.term;
        let beside = self.runs.iter().find(|(_, going)| {
            going.life == life && !going.remote && going.seat == seat && going.lanes.iter().any(same)
        });
        if let (Some((other, _)), false) = (beside, remote) {
            let lane = &start.lane;
            let detail = format!("seat {seat}: run {run} of lane {lane} began beside run {other}");
            self.report("O3", detail);
        }
    }

    fn check_grant(&mut self, seat: Seat, start: &LaneStart) {
        let granted = self.seats.get(&seat).is_some_and(|model| model.terms.contains_key(&start.fence.term));
        if !granted {
            self.report("S2", format!("seat {seat}: a run began under term {} of nobody", start.fence.term));
        } else if !self.is_current(seat, start) {
            self.hit("run under a lost grant");
        }
    }

    fn check_head(&mut self, now: TrueNow, seat: Seat, start: &LaneStart) {
        if !self.is_current(seat, start) {
            return;
        }
        let Some(model) = self.seats.get(&seat) else { return };
        let Some(events) = self.events.get(&seat.shard) else { return };
        let mut faults = Vec::new();
        for id in &start.ids {
            if let Some(end) = model.settled.get(id) {
                faults.push(("O1", format!("seat {seat}: event {id} runs again, it was settled {end}")));
            }
            let Some(event) = events.get(id) else {
                faults.push(("D2", format!("seat {seat}: event {id} runs and never was")));
                continue;
            };
            if event.hold_until.is_some_and(|due| is_early(now, due)) {
                faults.push(("R1", format!("seat {seat}: event {id} runs before its hold is over")));
            }
        }
        let settings = self.settings_of(seat);
        if let (LaneName::Key(key), Some(first)) = (&start.lane, start.ids.first())
            // In latest mode what is not the newest ends when the newest does, or before.
            && settings.is_some_and(|(run_ahead, mode, _)| run_ahead == 0 && mode == Mode::Queue)
        {
            let lane = self.lanes.get(&(seat.shard, key.clone())).map(Vec::as_slice).unwrap_or_default();
            let before = lane.iter().rev().filter(|before| **before < *first && **before > model.start);
            // What expired or was cancelled has nothing to run, and ends with the next commit.
            let expired = |id: &EventId| {
                events.get(id).and_then(|event| event.expires_at).is_some_and(|at| at <= now.calendar)
            };
            let open = |before: &&EventId| {
                let unwanted = self.unwanted.contains(&(seat, **before));
                !model.settled.contains_key(before) && !expired(before) && !unwanted
            };
            if let Some(waits) = before.take(64).find(open) {
                faults.push(("O1", format!("seat {seat}: event {first} of {key} runs before {waits}")));
            }
            let state = model.states.get(key).cloned();
            if state != start.state {
                let given = &start.state;
                faults.push((
                    "A1",
                    format!("seat {seat}: event {first} of {key} runs on state {given:?}, it is {state:?}"),
                ));
            }
        }
        faults.into_iter().for_each(|(invariant, detail)| self.report(invariant, detail));
    }

    fn check_attempts(&mut self, now: TrueNow, seat: Seat, start: &LaneStart, remote: bool) {
        if !self.is_current(seat, start) {
            return;
        }
        let Some(first) = start.ids.first().copied() else { return };
        let started = self.starts.entry((seat, first)).or_default();
        *started += 1;
        let Some((_, _, (max_attempts, crashes_max))) = self.settings_of(seat) else { return };
        let Some(model) = self.seats.get(&seat) else { return };
        // A run may begin once the owner has read what was asked for, before that is durable.
        let helped =
            self.help_for_all.contains_key(&seat) || self.helped.contains(&(seat, start.lane.clone()));
        let record = model.records.get(&start.lane).filter(|record| record.head == Some(first));
        let mut faults = Vec::new();
        if !helped && start.attempt > max_attempts {
            faults.push((
                "R1",
                format!("seat {seat}: attempt {} of {max_attempts} at event {first}", start.attempt),
            ));
        }
        if let (false, Some(record)) = (helped, record) {
            if record.crashes > crashes_max {
                faults.push((
                    "R2",
                    format!("seat {seat}: event {first} runs after {} crashes", record.crashes),
                ));
            }
            match &record.block {
                Some(Block::Retry { due, .. }) if is_early(now, *due) => {
                    faults.push(("R1", format!("seat {seat}: event {first} is tried again before {due:?}")));
                }
                // A remote worker is given what was offered before: a pause lets what runs go on.
                Some(Block::Paused { .. }) if remote => {}
                // And so does one that was with the workers: a pause that was decided between the moment in which the owner
                // handed the run over and the one in which its handler is called lets it go on. No time passes between
                // them here, so that any later start is still one too many.
                Some(Block::Paused { at, .. }) if *at == now.calendar => {}
                Some(block @ (Block::Parked { .. } | Block::Paused { .. })) => {
                    faults.push(("1.7", format!("seat {seat}: event {first} runs, its lane is {block:?}")));
                }
                _ => {}
            }
        }
        if start.attempt > 1 {
            self.hit("another attempt");
        }
        faults.into_iter().for_each(|(invariant, detail)| self.report(invariant, detail));
    }

    /// Contract 1.16: whoever says again that an event is done is not told that it was not. What a reset or the store itself
    /// took back was not.
    pub(crate) fn settled_again(&mut self, claim: &str, said: &Result<Settlement, ClaimError>) {
        self.hit("claim settled again");
        let taken_back = self.options.resets || self.options.failover_every.is_some();
        if matches!(said, Err(ClaimError::Lost)) && !taken_back {
            self.report("1.16", format!("claim {claim} was settled, and then told to be lost"));
        }
    }

    /// What is known of a seat's processor: `run_ahead`, the stream's mode, and most attempts and crashes.
    pub(super) fn settings_of(&self, seat: Seat) -> Option<(u32, Mode, (u32, u32))> {
        // Numbers are given in the order in which a node registers them.
        let at = usize::try_from(seat.processor.0).ok()?.checked_sub(1)?;
        let (_, stream) = PROCESSORS.get(at)?;
        let settings = self.options.processors.get(at)?;
        let mode = self.options.stream(STREAMS.iter().position(|name| name == stream)?).mode;
        // What failed among others is tried once more, alone, before it is given up.
        let least = if settings.batch == Batch::One { 1 } else { 2 };
        let attempts = settings.policy.max_attempts.max(least);
        Some((settings.run_ahead, mode, (attempts, settings.policy.crashes_max)))
    }

    /// How often an event was started under a grant that stood.
    pub(super) fn most_starts(&self) -> Option<(&(Seat, EventId), &u32)> {
        self.starts.iter().max_by_key(|(_, count)| **count)
    }
}

fn is_early(now: TrueNow, due: Due) -> bool {
    match due {
        Due::Steady(at) => now.steady < at,
        Due::Calendar(at) => now.calendar < at,
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::{Steady, Timestamp};

    use super::*;

    #[test]
    fn moment_itself_is_not_early() {
        let now = TrueNow { steady: Steady(5), calendar: Timestamp(9) };
        assert!(!is_early(now, Due::Steady(Steady(5))) && is_early(now, Due::Steady(Steady(6))));
        assert!(!is_early(now, Due::Calendar(Timestamp(9))) && is_early(now, Due::Calendar(Timestamp(10))));
    }
}
