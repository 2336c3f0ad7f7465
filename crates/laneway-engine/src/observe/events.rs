//! Events read back, each with how it stands for every processor; and streams as a whole.
//!
//! `done` is written nowhere: an event that a processor has passed, that is in no siding and has no other end, is done.

use std::collections::BTreeMap;

use bytes::Bytes;
use hashbrown::{HashMap, HashSet};
use laneway_core::adoption::{given_between, last_given, next_given};
use laneway_core::limits::PAGE_MAX;
use laneway_core::store::{LaneSelect, Lanes, Query, Rows, SeatStatus, SeatView};
use laneway_core::{
    Block, Event, EventId, LaneName, LaneRecord, Partition, Ref, Refusal, Seat, Shard, ShardInfo, Status,
    StoreError, StreamInfo, Terminal,
};

use super::facts::{LookError, Looker, other_list, runs_of};
use super::nearby::UnderWay;
use super::why::{Runs, head_status};

/// Most events of one page.
const EVENTS_MAX: usize = 1_000;

/// A page of events of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsPage {
    /// The events, by id.
    pub events: Vec<EventView>,
    /// Last id of the partition that was given.
    pub head: EventId,
    /// Where the next page begins: after this id.
    pub after: EventId,
}

/// An event and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventView {
    /// Its one name.
    pub reference: Ref,
    /// The event.
    pub event: Event,
    /// How it stands for each processor of its stream.
    pub statuses: Vec<EventStatus>,
}

/// How an event stands for one processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventStatus {
    /// The processor's name.
    pub processor: String,
    /// How it stands.
    pub status: Status,
    /// Why it ended otherwise than done, why it is parked, or why its last attempt failed.
    pub reason: Bytes,
    /// The event that took its place, if one did.
    pub winner: Option<EventId>,
}

/// A stream as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamStanding {
    /// As it is registered.
    pub info: StreamInfo,
    /// Its partitions, by number.
    pub partitions: Vec<PartitionStanding>,
}

/// A partition as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionStanding {
    /// Its number.
    pub partition: Partition,
    /// Last id given.
    pub head: EventId,
    /// Events that there ever were: ids that an adoption jumped over were never given.
    pub events: u64,
    /// Ids up to this went by retention.
    pub trimmed: EventId,
    /// Events that are not due.
    pub scheduled: u64,
    /// Events that went by age without any processor.
    pub expired: u64,
    /// Dedup ids that made room for others before their time was over.
    pub dedup_evicted: u64,
    /// How far each processor is.
    pub processors: Vec<SeatStanding>,
}

/// How far a processor is on one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatStanding {
    /// The processor's name.
    pub processor: String,
    /// Whether it runs.
    pub status: SeatStatus,
    /// The node that owned it last; empty if none ever did.
    pub node: Bytes,
    /// Every id up to this is passed.
    pub floor: EventId,
    /// Events that are not passed: they were not read, wait for their turn, or run. What is held up with its lane is
    /// passed, and counted in `held_lanes`.
    pub lag: u64,
    /// Lanes that are held up or drain what was.
    pub held_lanes: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Emits that have not reached their stream.
    pub emits: u64,
    /// Requests that had no effect yet.
    pub requests: u64,
}

impl StreamStanding {
    /// Events that a processor has not passed, over all partitions.
    pub fn lag(&self, processor: &str) -> u64 {
        let seats = self.partitions.iter().flat_map(|partition| &partition.processors);
        seats.filter(|seat| seat.processor == processor).map(|seat| seat.lag).sum()
    }
}

impl Looker {
    /// Events of a partition after an id, at most 1,000. After 0 begins with the first there is.
    ///
    /// # Errors
    /// `Trimmed`, which says where to go on, when the events after this id went by retention.
    pub async fn events(
        &self,
        stream: &str,
        partition: Partition,
        after: EventId,
        limit: usize,
    ) -> Result<EventsPage, LookError> {
        if limit == 0 || limit > EVENTS_MAX {
            let refusal = Refusal::new("limit", limit.to_string(), format!("1 to {EVENTS_MAX}"));
            return Err(StoreError::from(refusal).into());
        }
        let info = self.catalogue.stream(stream).await?;
        let shard = shard_of(&info, partition)?;
        let (about, seats) = self.seats_in(shard).await?;
        if after.0 > 0 && after < about.trimmed {
            return Err(StoreError::Trimmed { shard, first: next_given(&about.gaps, about.trimmed) }.into());
        }
        let from = after.max(about.trimmed);
        let Rows::Events(events) = self.store.query(Query::Events(shard, from, limit)).await? else {
            return Err(other_list("events").into());
        };
        let next = events.last().map_or(from.max(after), |event| event.id);
        let events = self.viewed(&info, shard, &seats, events).await?;
        Ok(EventsPage { events, head: last_given(&about.gaps, about.head), after: next })
    }

    /// One event by its name.
    ///
    /// # Errors
    /// `NotFound` when there never was such an event, `Trimmed` when it went by retention.
    pub async fn event(&self, reference: &Ref) -> Result<EventView, LookError> {
        let info = self.catalogue.stream(&reference.stream).await?;
        let shard = shard_of(&info, reference.partition)?;
        let (about, seats) = self.seats_in(shard).await?;
        let unknown = || StoreError::NotFound { what: format!("event {reference}") };
        if reference.id.0 == 0 || reference.id > about.head {
            return Err(unknown().into());
        }
        if reference.id <= about.trimmed {
            return Err(StoreError::Trimmed { shard, first: next_given(&about.gaps, about.trimmed) }.into());
        }
        let before = EventId(reference.id.0 - 1);
        let Rows::Events(events) = self.store.query(Query::Events(shard, before, 1)).await? else {
            return Err(other_list("events").into());
        };
        let event = events.into_iter().find(|event| event.id == reference.id).ok_or_else(unknown)?;
        let viewed = self.viewed(&info, shard, &seats, vec![event]).await?;
        viewed.into_iter().next().ok_or_else(|| unknown().into())
    }

    async fn seats_in(&self, shard: Shard) -> Result<(ShardInfo, Vec<SeatView>), LookError> {
        match self.store.query(Query::Seats(shard)).await? {
            Rows::Seats(about, seats) => Ok((about, seats)),
            _ => Err(other_list("seats").into()),
        }
    }

    async fn viewed(
        &self,
        info: &StreamInfo,
        shard: Shard,
        seats: &[SeatView],
        events: Vec<Event>,
    ) -> Result<Vec<EventView>, LookError> {
        let mut views: Vec<EventView> = events
            .into_iter()
            .map(|event| EventView {
                reference: Ref { stream: info.name.clone(), partition: shard.partition, id: event.id },
                event,
                statuses: Vec::new(),
            })
            .collect();
        for processor in &info.processors {
            let Some(seat) = seats.iter().find(|seat| seat.processor == processor.id) else { continue };
            let id = Seat { shard, processor: processor.id };
            let known = self.known(id, seat, &views).await?;
            for view in &mut views {
                view.statuses.push(known.status(&processor.name, seat, &view.event));
            }
        }
        Ok(views)
    }

    /// What the store has of these events besides the window.
    async fn known(&self, seat: Seat, progress: &SeatView, views: &[EventView]) -> Result<Known, LookError> {
        let (Some(first), Some(last)) = (views.first(), views.last()) else { return Ok(Known::default()) };
        let mut known = Known::default();
        let mut after = EventId(first.event.id.0 - 1);
        loop {
            let Rows::Endings(rows) = self.store.query(Query::Endings(seat, after, PAGE_MAX)).await? else {
                return Err(other_list("ends").into());
            };
            let Some(end) = rows.last().map(|ending| ending.id) else { break };
            known.ends.extend(
                rows.into_iter().map(|ending| (ending.id, (ending.end, ending.reason, ending.winner))),
            );
            after = end;
            if end >= last.event.id {
                break;
            }
        }
        let mut after = EventId(first.event.id.0 - 1);
        loop {
            let Rows::Sided(rows) = self.store.query(Query::Sided(seat, after, PAGE_MAX)).await? else {
                return Err(other_list("sidings").into());
            };
            let Some(end) = rows.last().map(|(id, _)| *id) else { break };
            known.sided.extend(rows.into_iter().map(|(id, _)| id));
            after = end;
            if end >= last.event.id {
                break;
            }
        }
        let open = views
            .iter()
            .map(|view| &view.event)
            .filter(|event| known.sided.contains(&event.id) || !progress.progress.window.contains(event.id));
        let mut lanes: Vec<LaneName> = open.map(lane_of).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let select = LaneSelect::Names(lanes.clone());
        let views = self.store.lanes(Lanes { seat, select, siding: 0, states: false }).await?;
        known.under_way = self.nearby.under_way(seat, lanes).await;
        known.lanes = views.into_iter().map(|view| (view.record.lane.clone(), view.record)).collect();
        Ok(known)
    }

    /// A stream with its partitions and how far its processors are.
    pub async fn stream(&self, name: &str) -> Result<StreamStanding, LookError> {
        self.catalogue.refresh().await?;
        let info = self.catalogue.stream(name).await?;
        let mut partitions = Vec::new();
        for partition in (0..info.settings.partitions).map(Partition) {
            let shard = info.shard(partition);
            let (about, seats) = self.seats_in(shard).await?;
            let Rows::Counts(counts) = self.store.query(Query::Counts(shard)).await? else {
                return Err(other_list("counts").into());
            };
            let standing = |(name, seat): (String, &SeatView)| {
                let rows = counts.seats.iter().find(|(processor, _)| *processor == seat.processor);
                let [held_lanes, dead_letters, emits, requests] = rows.map_or([0; 4], |(_, rows)| *rows);
                SeatStanding {
                    processor: name,
                    status: seat.progress.status,
                    node: seat.progress.node.clone(),
                    floor: seat.progress.window.floor(),
                    lag: lag(&about, seat),
                    held_lanes,
                    dead_letters,
                    emits,
                    requests,
                }
            };
            let named = info.processors.iter().filter_map(|processor| {
                let seat = seats.iter().find(|seat| seat.processor == processor.id)?;
                Some((processor.name.clone(), seat))
            });
            partitions.push(PartitionStanding {
                partition,
                head: about.head,
                events: given_between(&about.gaps, EventId(0), about.head),
                trimmed: about.trimmed,
                scheduled: counts.scheduled,
                expired: counts.expired,
                dedup_evicted: counts.dedup_evicted,
                processors: named.map(standing).collect(),
            });
        }
        Ok(StreamStanding { info: (*info).clone(), partitions })
    }
}

/// What the store has of some events besides the window.
#[derive(Debug, Default)]
struct Known {
    ends: BTreeMap<EventId, (Terminal, Bytes, Option<EventId>)>,
    sided: HashSet<EventId>,
    lanes: HashMap<LaneName, LaneRecord>,
    /// What runs; nothing where the owner is not here.
    under_way: Option<UnderWay>,
}

impl Known {
    fn status(&self, processor: &str, seat: &SeatView, event: &Event) -> EventStatus {
        let told = |status| EventStatus {
            processor: processor.to_owned(),
            status,
            reason: Bytes::new(),
            winner: None,
        };
        if let Some((end, reason, winner)) = self.ends.get(&event.id) {
            return EventStatus { reason: reason.clone(), winner: *winner, ..told(Status::Ended(*end)) };
        }
        let record = self.lanes.get(&lane_of(event));
        let is_ahead = record.and_then(|record| record.ahead).is_some_and(|ahead| event.id <= ahead);
        let is_passed = seat.progress.window.contains(event.id) || is_ahead;
        if is_passed && !self.sided.contains(&event.id) {
            return told(Status::Ended(Terminal::Done));
        }
        let runs = match &self.under_way {
            None => Runs::Untold,
            Some(under_way) => {
                let found = under_way.runs.get(&lane_of(event));
                runs_of(found.filter(|found| (found.first..=found.last).contains(&event.id)))
            }
        };
        let block =
            record.filter(|record| record.head == Some(event.id)).and_then(|record| record.block.clone());
        let status = head_status(&runs, block.as_ref());
        let reason = match block {
            Some(Block::Retry { cause, .. } | Block::Parked { cause, .. }) if status != Status::Running => {
                cause
            }
            _ => Bytes::new(),
        };
        EventStatus { reason, ..told(status) }
    }
}

fn lane_of(event: &Event) -> LaneName {
    event.key.clone().map_or(LaneName::Event(event.id), LaneName::Key)
}

fn shard_of(info: &StreamInfo, partition: Partition) -> Result<Shard, StoreError> {
    let partitions = info.settings.partitions;
    if partition.0 < partitions {
        return Ok(info.shard(partition));
    }
    let limit = format!("0 to {}", partitions.saturating_sub(1));
    Err(Refusal::new("partition", partition.to_string(), limit).into())
}

/// Events that are not passed.
fn lag(about: &ShardInfo, seat: &SeatView) -> u64 {
    let window = &seat.progress.window;
    let floor = window.floor().max(about.trimmed);
    let marked = window.words().flat_map(|(word, bits)| {
        (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| EventId(word * 64 + bit))
    });
    let passed = marked.filter(|id| *id > floor && *id <= about.head).count() as u64;
    given_between(&about.gaps, floor, about.head).saturating_sub(passed)
}

#[cfg(test)]
mod tests {
    use laneway_core::store::Progress;
    use laneway_core::{Fence, Incarnation, ProcessorId, Term, Timestamp, Window};

    use super::*;

    fn check(floor: u64, passed: &[u64], gaps: &[(u64, u64)], head: u64, expected: u64) {
        let mut window = Window::at(EventId(floor));
        window.pass(&passed.iter().map(|id| EventId(*id)).collect(), &[]);
        let progress = Progress {
            fence: Fence::default(),
            node: Bytes::new(),
            window,
            clean: true,
            requests_applied: 0,
            emitted: 0,
            forwarded: 0,
            note: Bytes::new(),
            status: SeatStatus::Run,
            incarnation: 1,
        };
        let about = ShardInfo {
            incarnation: Incarnation(1),
            adoptions: 0,
            layout: 1,
            sealed: false,
            first_id: EventId(1),
            first_term: Term(0),
            head: EventId(head),
            scheduled: 0,
            trimmed: EventId(0),
            time: Timestamp(0),
            gaps: gaps.iter().map(|(from, to)| (EventId(*from), EventId(*to))).collect(),
        };
        let seat = SeatView { processor: ProcessorId(1), progress, request_no: 0 };
        assert_eq!(
            lag(&about, &seat),
            expected,
            "floor {floor}, passed {passed:?}, gaps {gaps:?}, head {head}"
        );
    }

    #[test]
    fn lag_counts_events_that_are_not_passed_and_no_ids_that_never_were() {
        check(0, &[], &[], 0, 0);
        check(0, &[], &[], 10, 10);
        check(4, &[6, 7, 70], &[], 80, 73);
        check(10, &[], &[], 10, 0);
        check(5, &[], &[(8, 1_000)], 1_005, 7);
        check(5, &[], &[(2, 4)], 7, 2);
        check(5, &[], &[(8, 1_000)], 7, 2);
    }
}
