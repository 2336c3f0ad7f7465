//! S1: once faults have stopped, everything comes to its end, except what somebody must decide about.

use laneway_core::store::SeatStatus;
use laneway_core::{Block, EventId, LaneName, Mode, Seat};

use super::Judge;
use super::seats::SeatModel;

/// Most of what is stranded that is told.
const TOLD_MAX: usize = 5;

impl Judge {
    /// What has not come to its end and waits for nobody.
    pub(crate) fn stranded(&self) -> Vec<String> {
        let mut stranded: Vec<String> = Vec::new();
        for (seat, model) in &self.seats {
            self.stranded_at(*seat, model, &mut stranded);
            if stranded.len() >= TOLD_MAX {
                break;
            }
        }
        let scheduled = self.scheduled.keys().map(|data| format!("scheduled {:?} never joined", data));
        stranded.extend(scheduled.take(TOLD_MAX));
        stranded
    }

    fn stranded_at(&self, seat: Seat, model: &SeatModel, stranded: &mut Vec<String>) {
        // Whoever takes the seat over finds only those that were not answered yet, so that it cannot tell that all are.
        let open = (model.applied + 1..=model.filed).find(|number| !model.answered.contains(number));
        if let Some(number) = open {
            stranded.push(format!("seat {seat}: request {number} of {} has no effect", model.filed));
        }
        if model.forwarded < model.emitted {
            stranded.push(format!(
                "seat {seat}: {} of {} emits are on their way",
                model.forwarded, model.emitted
            ));
        }
        if model.status != SeatStatus::Run {
            return;
        }
        let Some(events) = self.events.get(&seat.shard) else { return };
        let waits = |id: &EventId| *id > model.start && !model.settled.contains_key(id);
        let latest = self.settings_of(seat).is_some_and(|(_, mode, _)| mode == Mode::Latest);
        for (id, event) in events.iter().filter(|(id, _)| waits(id)).take(TOLD_MAX * 20) {
            let lane = event.key.clone().map_or(LaneName::Event(*id), LaneName::Key);
            let record = model.records.get(&lane);
            match record.and_then(|record| record.block.as_ref()) {
                // A newer event would have freed it (contract 1.14).
                Some(Block::Parked { .. })
                    if latest && events.iter().any(|(newer, other)| newer > id && other.key == event.key) =>
                {
                    stranded.push(format!(
                        "seat {seat}: event {id} of lane {lane} is parked, and a newer one came"
                    ));
                }
                Some(Block::Parked { .. } | Block::Paused { .. }) => {}
                block => {
                    let sided = model.sided.contains_key(id);
                    stranded.push(format!(
                        "seat {seat}: event {id} of lane {lane} waits, sided {sided}, {block:?}"
                    ));
                    if stranded.len() >= TOLD_MAX {
                        return;
                    }
                }
            }
        }
    }

    /// The time for everything to come to its end is over.
    pub(crate) fn strand(&mut self, stranded: &[String]) {
        for what in stranded {
            self.report("S1", what.clone());
        }
    }
}
