//! Why something waits: one structured reason, from one enum, decided by one function.
//!
//! Pure. The facts are gathered in `facts`; the order of the arms below is the order of strength: what would have to
//! change first comes first.

use std::fmt;

use bytes::Bytes;
use laneway_core::store::SeatStatus;
use laneway_core::{Block, ClockReport, Due, EventId, Status, Steady, Terminal, Timestamp};

use crate::dispatch::Paused;

/// The one reason why an event, a job or a lane does not go on now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It does not wait: it has ended, or nothing is in its lane.
    Ended(Terminal),
    /// It does not wait: nothing is in the lane.
    Idle,
    /// It is not due yet and not in its lane.
    Delayed {
        /// Until when.
        until: Due,
        /// The wall clock jumped and is not believed yet.
        clock: Option<ClockReport>,
    },
    /// Nobody processes the stream, or not this processor.
    NoProcessor,
    /// The processor is registered, but nobody runs it on this partition.
    NoOwner,
    /// The whole processor was paused on this partition.
    ProcessorPaused {
        /// By whom; empty if nobody said.
        by: Bytes,
        /// When.
        at: Timestamp,
    },
    /// A failure stopped the processor on this partition (`on_failure = "halt"`).
    Halted,
    /// The lane was paused.
    LanePaused {
        /// By whom.
        by: Bytes,
        /// When.
        at: Timestamp,
    },
    /// The head of the lane gave up; somebody must decide.
    Parked {
        /// The head.
        head: EventId,
        /// Why it gave up.
        cause: Bytes,
    },
    /// The lane's events go to the dead letters.
    Diverting {
        /// Since this event.
        since: EventId,
    },
    /// The head failed and is tried again.
    Retrying {
        /// The head.
        head: EventId,
        /// When.
        at: Due,
        /// Failed attempts so far.
        attempts: u32,
        /// Why the last one failed.
        cause: Bytes,
    },
    /// The head asked to hold the lane up.
    Held {
        /// The head.
        head: EventId,
        /// Until when.
        until: Due,
        /// The wall clock jumped and is not believed yet.
        clock: Option<ClockReport>,
    },
    /// A remote worker has the head.
    Claimed {
        /// The head.
        head: EventId,
        /// Who.
        worker: Bytes,
        /// Until when, unless it is extended.
        expires: Steady,
    },
    /// The event itself runs.
    Running {
        /// Since when, if it has taken long enough to be told.
        since: Option<Timestamp>,
    },
    /// An earlier event of the lane comes first.
    Behind {
        /// The first event of the lane that has not ended.
        head: EventId,
        /// Since when that one runs, if it has taken long enough to be told.
        since: Option<Timestamp>,
    },
    /// It is its lane's first, and a limit of its processor holds it back.
    LimitReached {
        /// Which.
        limit: Limit,
    },
    /// It is its lane's first, and its batch waits to be full.
    BatchNotFull {
        /// Until then at most.
        until: Steady,
    },
    /// It is its lane's first, and no remote worker asks for a lane of its processor.
    NoWorker,
    /// It is its lane's first, and waits for the owner to come to it.
    Waiting {
        /// Events of the partition that are not passed and come before it.
        before: u64,
    },
}

/// A limit of a processor that holds heads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// It runs so many at once on its node.
    Concurrency(usize),
    /// So many may start per second, over all partitions.
    Rate {
        /// How many.
        per_second: u32,
        /// When the next one of the partition may start.
        until: Steady,
    },
    /// So many of one key may start per second.
    RatePerKey {
        /// How many.
        per_second: u32,
        /// When the next one of the key may start.
        until: Steady,
    },
}

/// Where an event stands in its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is not in its lane yet.
    Scheduled(Due),
    /// It has ended.
    Ended(Terminal),
    /// It is the first of its lane that has not ended.
    Head(EventId),
    /// Another is.
    Behind {
        /// The first of the lane that has not ended.
        head: EventId,
    },
    /// Nothing of the lane waits.
    Nothing,
}

/// What a head that could start is short of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Short {
    /// Room within a limit.
    Limit(Limit),
    /// Others to run with: its batch is not full.
    Batch {
        /// Until then at most.
        until: Steady,
    },
    /// A worker: none asks.
    Workers,
}

/// Whether the first event of a lane runs, as far as this node knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runs {
    /// The owner of its partition is not here: what the store has must do.
    Untold,
    /// It does not, although its record may say so: that is also written of a lane that may start.
    Not,
    /// It does.
    Here {
        /// Since when; 0 if it has ended and that is not durable.
        since: Timestamp,
    },
    /// A remote worker has it.
    With {
        /// Who.
        worker: Bytes,
        /// Until when, unless it is extended.
        expires: Steady,
    },
}

/// What is known when the reason is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Where it stands.
    pub place: Place,
    /// Whether the processor is registered on the stream.
    pub registered: bool,
    /// Whether somebody owns the seat, as far as this node can know.
    pub owned: bool,
    /// Whether the seat runs.
    pub status: SeatStatus,
    /// Who paused it, while it is paused.
    pub paused: Option<Paused>,
    /// What holds the lane up, by its record.
    pub block: Option<Block>,
    /// Failed attempts at the head.
    pub attempts: u32,
    /// Whether the head runs.
    pub runs: Runs,
    /// What the head is short of, where this node knows.
    pub short_of: Option<Short>,
    /// Events of the partition that come before it and are not passed.
    pub before: u64,
    /// How the store's clock stands, where it says so.
    pub clock: Option<ClockReport>,
}

/// Decides.
pub fn why(facts: &Facts) -> Why {
    let head = match facts.place {
        Place::Ended(end) => return Why::Ended(end),
        Place::Scheduled(until) => return Why::Delayed { until, clock: facts.clock_for(until) },
        Place::Nothing => None,
        Place::Head(id) | Place::Behind { head: id } => Some(id),
    };
    if !facts.registered {
        return Why::NoProcessor;
    }
    match (&facts.block, head) {
        (Some(Block::Paused { by, at }), _) => return Why::LanePaused { by: by.clone(), at: *at },
        (Some(Block::Diverting { since }), _) => return Why::Diverting { since: *since },
        (Some(Block::Parked { cause, .. }), Some(head)) if facts.status != SeatStatus::Halted => {
            return Why::Parked { head, cause: cause.clone() };
        }
        _ => {}
    }
    let Some(head) = head else { return Why::Idle };
    match facts.status {
        SeatStatus::Halted => return Why::Halted,
        SeatStatus::Paused => {
            // One that was paused before that was written down was paused by nobody knows whom.
            let (by, at) = facts.paused.clone().map(|paused| (paused.by, paused.at)).unwrap_or_default();
            return Why::ProcessorPaused { by, at };
        }
        SeatStatus::Run => {}
    }
    if !facts.owned {
        return Why::NoOwner;
    }
    let is_head = matches!(facts.place, Place::Head(_));
    let running = |since: Timestamp| {
        let since = (since.0 > 0).then_some(since);
        if is_head { Why::Running { since } } else { Why::Behind { head, since } }
    };
    match &facts.runs {
        Runs::With { worker, expires } => {
            return Why::Claimed { head, worker: worker.clone(), expires: *expires };
        }
        Runs::Here { since } => return running(*since),
        Runs::Untold | Runs::Not => {}
    }
    match &facts.block {
        Some(Block::Retry { due, cause }) => {
            Why::Retrying { head, at: *due, attempts: facts.attempts, cause: cause.clone() }
        }
        Some(Block::Hold { due }) => Why::Held { head, until: *due, clock: facts.clock_for(*due) },
        Some(Block::Claimed(claim)) => {
            Why::Claimed { head, worker: claim.worker.clone(), expires: claim.expires }
        }
        Some(Block::Running { since, .. }) if facts.runs == Runs::Untold => running(*since),
        _ if is_head => match facts.short_of {
            Some(Short::Limit(limit)) => Why::LimitReached { limit },
            Some(Short::Batch { until }) => Why::BatchNotFull { until },
            Some(Short::Workers) => Why::NoWorker,
            None => Why::Waiting { before: facts.before },
        },
        _ => Why::Behind { head, since: None },
    }
}

/// The one word for it, from the same facts.
pub fn status(facts: &Facts) -> Status {
    match facts.place {
        Place::Ended(end) => Status::Ended(end),
        Place::Scheduled(_) => Status::Scheduled,
        Place::Nothing | Place::Behind { .. } => Status::Waiting,
        Place::Head(_) => head_status(&facts.runs, facts.block.as_ref()),
    }
}

/// The one word for the first event of a lane.
pub(super) fn head_status(runs: &Runs, block: Option<&Block>) -> Status {
    if matches!(runs, Runs::Here { .. } | Runs::With { .. }) {
        return Status::Running;
    }
    match block {
        Some(Block::Retry { .. }) => Status::Retrying,
        Some(Block::Parked { .. }) => Status::Parked,
        // An owner before has written it, and its worker still has its lease.
        Some(Block::Claimed(_)) => Status::Running,
        Some(Block::Running { .. }) if *runs == Runs::Untold => Status::Running,
        _ => Status::Waiting,
    }
}

impl Facts {
    /// What keeps a date from being due beside the date itself.
    fn clock_for(&self, until: Due) -> Option<ClockReport> {
        doubt(until, self.clock)
    }
}

/// How the clock stands, if something waits for a date while a jump of the wall clock is not believed.
pub(super) fn doubt(until: Due, clock: Option<ClockReport>) -> Option<ClockReport> {
    clock.filter(|clock| matches!(until, Due::Calendar(_)) && !clock.is_settled() && clock.offset != 0)
}

fn write_doubt(formatter: &mut fmt::Formatter<'_>, clock: Option<&ClockReport>) -> fmt::Result {
    let Some(clock) = clock else { return Ok(()) };
    let (seconds, side) =
        (clock.offset.unsigned_abs() / 1_000_000, if clock.offset > 0 { "ahead" } else { "back" });
    let settles_in = clock.settles_in.as_secs();
    write!(
        formatter,
        "; the wall clock jumped {seconds} s {side}, and dates follow it in {settles_in} s if it stays there"
    )
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(end) => write!(formatter, "it has ended: {end}"),
            Self::Idle => formatter.write_str("nothing waits in this lane"),
            Self::Delayed { clock, .. } => {
                formatter.write_str("it is not due yet")?;
                write_doubt(formatter, clock.as_ref())
            }
            Self::NoProcessor => formatter.write_str("no processor takes it"),
            Self::NoOwner => formatter.write_str("no node owns its partition"),
            Self::ProcessorPaused { by, .. } if by.is_empty() => {
                formatter.write_str("its processor is paused")
            }
            Self::ProcessorPaused { by, .. } => {
                write!(formatter, "its processor was paused by {}", String::from_utf8_lossy(by))
            }
            Self::Halted => formatter.write_str("its processor was halted by a failure on this partition"),
            Self::LanePaused { by, .. } => {
                write!(formatter, "its lane was paused by {}", String::from_utf8_lossy(by))
            }
            Self::Parked { head, cause } => {
                write!(formatter, "event {head} is parked: {}", String::from_utf8_lossy(cause))
            }
            Self::Diverting { since } => {
                write!(formatter, "its lane goes to the dead letters since event {since}")
            }
            Self::Retrying { head, attempts, cause, .. } => {
                let cause = String::from_utf8_lossy(cause);
                write!(formatter, "event {head} is tried again after {attempts} failed attempts: {cause}")
            }
            Self::Held { head, clock, .. } => {
                write!(formatter, "event {head} holds its lane until it is due")?;
                write_doubt(formatter, clock.as_ref())
            }
            Self::Claimed { head, worker, .. } => {
                write!(formatter, "worker {} has event {head}", worker.escape_ascii())
            }
            Self::Running { .. } => formatter.write_str("it runs"),
            Self::Behind { head, since: Some(_) } => write!(formatter, "event {head} of its lane runs"),
            Self::Behind { head, since: None } => write!(formatter, "event {head} of its lane comes first"),
            Self::LimitReached { limit } => write!(formatter, "limit reached: {limit}"),
            Self::BatchNotFull { .. } => formatter.write_str("its batch waits to be full"),
            Self::NoWorker => formatter.write_str("no worker claims lanes of its processor"),
            Self::Waiting { before } => write!(formatter, "it waits for its turn behind {before} events"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Concurrency(most) => write!(formatter, "its processor runs {most} at once"),
            Self::Rate { per_second, .. } => {
                write!(formatter, "rate, its processor starts {per_second} a second over all partitions")
            }
            Self::RatePerKey { per_second, .. } => {
                write!(formatter, "rate, its processor starts {per_second} a second of one key")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::{Claim, Nonce};

    use super::*;

    fn blocks() -> Vec<Option<Block>> {
        let (cause, at) = (Bytes::from_static(b"boom"), Timestamp(5));
        let claim = Claim {
            nonce: Nonce(1),
            worker: Bytes::from_static(b"w"),
            through: EventId(7),
            expires: Steady(9),
        };
        vec![
            None,
            Some(Block::Retry { due: Due::Steady(Steady(9)), cause: cause.clone() }),
            Some(Block::Hold { due: Due::Steady(Steady(9)) }),
            Some(Block::Paused { by: cause.clone(), at }),
            Some(Block::Parked { cause, at }),
            Some(Block::Diverting { since: EventId(3) }),
            Some(Block::Running { since: at, progress: Bytes::new() }),
            Some(Block::Claimed(claim)),
        ]
    }

    fn paused() -> Paused {
        Paused { by: Bytes::from_static(b"ann"), at: Timestamp(5) }
    }

    fn shorts() -> [Option<Short>; 6] {
        let until = Steady(9);
        let limits = [
            Limit::Concurrency(8),
            Limit::Rate { per_second: 5, until },
            Limit::RatePerKey { per_second: 5, until },
        ];
        let [places, rate, per_key] = limits.map(|limit| Some(Short::Limit(limit)));
        [None, places, rate, per_key, Some(Short::Batch { until }), Some(Short::Workers)]
    }

    fn runs() -> [Runs; 4] {
        let with = Runs::With { worker: Bytes::from_static(b"w"), expires: Steady(9) };
        [Runs::Untold, Runs::Not, Runs::Here { since: Timestamp(5) }, with]
    }

    fn every_state() -> Vec<Facts> {
        let places = [
            Place::Scheduled(Due::Calendar(Timestamp(9))),
            Place::Ended(Terminal::Done),
            Place::Head(EventId(7)),
            Place::Behind { head: EventId(7) },
            Place::Nothing,
        ];
        let mut all = Vec::new();
        for place in places {
            for registered in [true, false] {
                for owned in [true, false] {
                    for status in [SeatStatus::Run, SeatStatus::Paused, SeatStatus::Halted] {
                        let lanes = blocks()
                            .into_iter()
                            .flat_map(|block| shorts().map(|short| (block.clone(), short)))
                            .flat_map(|(block, short)| runs().map(|runs| (block.clone(), short, runs)));
                        all.extend(lanes.map(|(block, short_of, runs)| Facts {
                            place,
                            registered,
                            owned,
                            status,
                            paused: (status == SeatStatus::Paused).then(paused),
                            block,
                            attempts: 2,
                            runs,
                            short_of,
                            before: 4,
                            clock: None,
                        }));
                    }
                }
            }
        }
        all
    }

    /// The answer names something that is indeed so.
    fn is_true(facts: &Facts, why: &Why) -> bool {
        let block = facts.block.as_ref();
        match why {
            Why::Ended(end) => facts.place == Place::Ended(*end),
            Why::Idle => facts.place == Place::Nothing,
            Why::Delayed { until, .. } => facts.place == Place::Scheduled(*until),
            Why::NoProcessor => !facts.registered,
            Why::NoOwner => !facts.owned,
            Why::ProcessorPaused { by, at } => {
                let told = Paused { by: by.clone(), at: *at };
                facts.status == SeatStatus::Paused && facts.paused == Some(told)
            }
            Why::Halted => facts.status == SeatStatus::Halted,
            Why::LanePaused { .. } => matches!(block, Some(Block::Paused { .. })),
            Why::Parked { .. } => matches!(block, Some(Block::Parked { .. })),
            Why::Diverting { .. } => matches!(block, Some(Block::Diverting { .. })),
            Why::Retrying { .. } => matches!(block, Some(Block::Retry { .. })),
            Why::Held { .. } => matches!(block, Some(Block::Hold { .. })),
            Why::Claimed { .. } => match facts.runs {
                Runs::With { .. } => true,
                Runs::Here { .. } => false,
                Runs::Untold | Runs::Not => matches!(block, Some(Block::Claimed(_))),
            },
            Why::Running { .. } => {
                // A record that says so is believed only where the owner cannot be asked.
                let believed = facts.runs == Runs::Untold && matches!(block, Some(Block::Running { .. }));
                matches!(facts.place, Place::Head(_)) && (believed || matches!(facts.runs, Runs::Here { .. }))
            }
            Why::Behind { .. } => matches!(facts.place, Place::Behind { .. }),
            Why::LimitReached { limit } => could_start(facts) && facts.short_of == Some(Short::Limit(*limit)),
            Why::BatchNotFull { until } => {
                could_start(facts) && facts.short_of == Some(Short::Batch { until: *until })
            }
            Why::NoWorker => could_start(facts) && facts.short_of == Some(Short::Workers),
            Why::Waiting { .. } => could_start(facts) && facts.short_of.is_none(),
        }
    }

    fn could_start(facts: &Facts) -> bool {
        let runs = matches!(facts.runs, Runs::Here { .. } | Runs::With { .. });
        matches!(facts.place, Place::Head(_)) && facts.owned && facts.status == SeatStatus::Run && !runs
    }

    #[test]
    fn every_reachable_state_has_one_reason_and_it_is_true() {
        let states = every_state();
        assert_eq!(states.len(), 5 * 2 * 2 * 3 * 8 * 6 * 4);
        for facts in &states {
            let reason = why(facts);
            assert!(is_true(facts, &reason), "{facts:?} was explained by {reason:?}");
            assert_eq!(reason, why(facts), "the same facts have the same reason");
        }
    }

    #[test]
    fn date_that_waits_for_the_clock_says_so() {
        let base = every_state().remove(0);
        let report = ClockReport {
            settles_in: std::time::Duration::from_secs(400),
            offset: 3_600_000_000,
            ..ClockReport::default()
        };
        let words = |place, clock| why(&Facts { place, clock, ..base.clone() }).to_string();
        let date = Place::Scheduled(Due::Calendar(Timestamp(9)));
        let doubted = words(date, Some(report));
        assert!(doubted.contains("jumped 3600 s ahead") && doubted.contains("in 400 s"), "{doubted}");
        let plain = "it is not due yet";
        assert_eq!(words(date, None), plain);
        assert_eq!(words(date, Some(ClockReport { offset: 0, ..report })), plain);
        assert_eq!(words(Place::Scheduled(Due::Steady(Steady(9))), Some(report)), plain);
    }

    /// The word and the reason never contradict each other.
    #[test]
    fn the_status_is_running_exactly_where_the_reason_is_a_run_of_the_event() {
        let orderly = |facts: &&Facts| facts.registered && facts.owned && facts.status == SeatStatus::Run;
        let free = |facts: &&Facts| {
            !matches!(
                facts.block,
                Some(Block::Paused { .. } | Block::Parked { .. } | Block::Diverting { .. })
            )
        };
        let states = every_state();
        for facts in states.iter().filter(orderly).filter(free) {
            let reason = why(facts);
            let is_head = matches!(facts.place, Place::Head(_));
            let runs = is_head && matches!(reason, Why::Running { .. } | Why::Claimed { .. });
            assert_eq!(status(facts) == Status::Running, runs, "{facts:?} was explained by {reason:?}");
            let retries = is_head && matches!(reason, Why::Retrying { .. });
            assert_eq!(status(facts) == Status::Retrying, retries, "{facts:?} was explained by {reason:?}");
        }
    }

    #[test]
    fn every_reason_is_the_answer_to_some_state() {
        let reasons: Vec<Why> = every_state().iter().map(why).collect();
        let mut kinds: Vec<_> = reasons.iter().map(std::mem::discriminant).collect();
        kinds.dedup();
        let mut distinct = Vec::new();
        for kind in kinds {
            if !distinct.contains(&kind) {
                distinct.push(kind);
            }
        }
        assert_eq!(distinct.len(), 19, "a reason that explains nothing is none");
    }
}
