//! Finish: a run is over, its item ends or keeps its place, and its lane moves on.

use std::hash::Hash;

use super::lane::{Block, Place, Stop};
use super::start::Turn;
use super::state::{Ending, Join, Table};
use super::words::{Mode, Tick};

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Done: the item ends.
    Done,
    /// Failed for good: the item ends, the lane goes on.
    Failed,
    /// Run it again at this moment. It keeps its place: nothing of its lane starts before it.
    RetryAt(Tick),
    /// Keep it at the head until [`Table::resume`] or a cancel; the lane stops.
    Park,
    /// It was stopped on request ([`Table::cancel`], or by a newer push), or its runner went away.
    Stopped,
}

impl<K: Hash + Eq + Clone, T: Clone> Table<K, T> {
    /// Ends a run. Answers how the item ended, or nothing when it keeps its place and will run again.
    ///
    /// An item in latest mode that would keep its place while a newer one waits ends superseded instead.
    ///
    /// # Panics
    /// When the turn is not running here: finished twice, or given by another table.
    pub fn finish(&mut self, turn: &Turn<K, T>, verdict: Verdict) -> Option<Ending> {
        let place = self.place_of(turn);
        let lane = &mut self.shelf[place];
        let stop = lane.stop.take();
        self.running -= 1;
        let stopped = match stop {
            Some(Stop::Supersede(by)) => Some(Ending::Superseded { by }),
            Some(Stop::Cancel) => Some(Ending::Cancelled),
            None if self.settings.mode == Mode::Latest => {
                lane.head().map(|newer| Ending::Superseded { by: newer.id })
            }
            None => None,
        };
        let ending = match verdict {
            Verdict::Done => Some(Ending::Done),
            Verdict::Failed => Some(Ending::Failed),
            Verdict::Stopped => Some(stopped.unwrap_or(Ending::Cancelled)),
            Verdict::RetryAt(_) | Verdict::Park => stopped,
        };
        if ending == Some(Ending::Done) && self.settings.mode == Mode::Latest {
            self.remember_done(place, turn);
        }
        let lane = &mut self.shelf[place];
        if ending.is_some() {
            lane.end_running();
        } else {
            let id = lane.return_running().id;
            self.waiting += 1;
            match verdict {
                Verdict::RetryAt(at) => {
                    lane.block = Block::RetryAt(at);
                    self.retries.insert((at, id), place);
                }
                _ => {
                    lane.block = Block::Parked;
                    self.parked += 1;
                }
            }
        }
        let join = if lane.burst < self.settings.quantum { Join::Front } else { Join::Back };
        self.place(place, join);
        ending
    }

    /// Records what the lane did last, and ends a waiting item of that very version.
    fn remember_done(&mut self, place: Place, turn: &Turn<K, T>) {
        let kept = self.settings.keep_last.then(|| turn.payload.clone());
        let lane = &mut self.shelf[place];
        let memory = lane.memory.as_mut().expect("an accepted item left its version in the lane");
        if let Some((_, _, Some(payload))) = memory.done.replace((turn.id, turn.version, kept)) {
            self.outbox.forgotten.push(payload);
        }
        if lane.head().is_some_and(|newer| newer.version == turn.version)
            && let Some(repeated) = lane.leave_head()
        {
            self.end_waiting(repeated, Ending::Superseded { by: turn.id });
        }
    }
}
