//! Lanes by how they stand.
//!
//! What holds a lane up is indexed. Lanes that wait or run are not (contract 3.22): they are found in the log between the
//! floor and the head of each partition, a bounded piece per page. One that was held up and goes on has a record as long as
//! something of it is set aside, and its head may lie below the floor: those are looked through before the log.

use std::collections::HashMap;

use axum::extract::{Path, State};
use axum::http::Uri;
use laneway::core::store::SeatStatus;
use laneway::core::{Block, BlockKind, Key, LaneName, StoreError, StreamInfo};
use laneway::engine::observe::{EventView, HeldLane, LookError, PartitionStanding, StreamStanding};
use laneway::{EventId, Partition, Ref, Status};
use laneway_client::wire::{self, LaneStatus, ListedLane};
use serde::{Deserialize, Serialize};

use super::error::{Failure, Result};
use super::lanes::processor_of;
use super::paging::{Page, Paging};
use super::wire as convert;
use crate::node::Node;

/// Most events that are looked at for one page of lanes that wait or run.
const LOOKED_AT_MAX: usize = 10_000;
/// Events or records that are looked at together.
const LOOKED_AT: usize = 500;
/// What a head below the floor counts for: it is looked up alone.
const LOOKED_UP: usize = 20;

/// How far pages of lanes that wait or run have come.
#[derive(Debug, Serialize, Deserialize)]
enum Reached {
    /// Lanes with a record up to this one.
    Records(Place),
    /// The log of a partition up to this event.
    Log(u32, u64),
}

/// A lane in a cursor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Place {
    partition: u32,
    key: Option<Vec<u8>>,
    event: Option<u64>,
}

impl Place {
    pub(super) fn new(partition: Partition, lane: &LaneName) -> Self {
        let (key, event) = match lane {
            LaneName::Key(key) => (Some(key.bytes().to_vec()), None),
            LaneName::Event(id) => (None, Some(id.0)),
        };
        Self { partition: partition.0, key, event }
    }

    pub(super) fn lane(self) -> Result<(Partition, LaneName)> {
        let lane = match (self.key, self.event) {
            (Some(key), _) => LaneName::Key(Key::new(key)?),
            (None, event) => LaneName::Event(EventId(event.unwrap_or_default())),
        };
        Ok((Partition(self.partition), lane))
    }
}

/// The way of being held up that a status stands for; nothing for those that are not indexed.
pub(super) fn indexed(status: LaneStatus) -> Option<BlockKind> {
    match status {
        LaneStatus::Waiting | LaneStatus::Running => None,
        LaneStatus::Retrying => Some(BlockKind::Retry),
        LaneStatus::Parked => Some(BlockKind::Parked),
        LaneStatus::Paused => Some(BlockKind::Paused),
        LaneStatus::Diverting => Some(BlockKind::Diverting),
    }
}

/// A status in one word.
pub(super) fn word(status: LaneStatus) -> &'static str {
    match status {
        LaneStatus::Waiting => "waiting",
        LaneStatus::Running => "running",
        LaneStatus::Retrying => "retrying",
        LaneStatus::Parked => "parked",
        LaneStatus::Paused => "paused",
        LaneStatus::Diverting => "diverting",
    }
}

const STATUSES: [LaneStatus; 6] = [
    LaneStatus::Waiting,
    LaneStatus::Running,
    LaneStatus::Retrying,
    LaneStatus::Parked,
    LaneStatus::Paused,
    LaneStatus::Diverting,
];

/// Lanes of one processor that stand so; without a status, all that something holds up.
#[utoipa::path(
    get, path = "/v1/streams/{stream}/lanes", tag = "lanes",
    params(
        ("stream" = String, Path, description = "the stream's name"),
        ("status" = Option<LaneStatus>, Query, description = "how they stand; default: all that are held up"),
        ("processor" = Option<String>, Query, description = "for which processor; default: the stream's only one"),
        ("limit" = Option<usize>, Query, description = "at most so many, 1 to 1,000; default 100"),
        ("cursor" = Option<String>, Query, description = "the `next` of the page before"),
    ),
    responses((status = 200, body = wire::Lanes)),
)]
pub(super) async fn list(
    State(node): State<Node>,
    Path(stream): Path<String>,
    uri: Uri,
) -> Result<Page<wire::Lanes>> {
    let paging = Paging::read(&uri, &["status", "processor"])?;
    let status = paging.filter.text("status").map(|text| status_of(&text)).transpose()?;
    node.engine().catalogue().refresh().await?;
    let info = node.engine().catalogue().stream(&stream).await?;
    let processor = processor_of(&info, paging.filter.text("processor").as_deref())?;
    match status {
        Some(status @ (LaneStatus::Waiting | LaneStatus::Running)) => {
            going_on(&node, &info, &processor, status, &paging).await
        }
        Some(status) => held(&node, &stream, &processor, indexed(status), &paging).await,
        None => held(&node, &stream, &processor, None, &paging).await,
    }
}

fn status_of(text: &str) -> Result<LaneStatus> {
    STATUSES.into_iter().find(|status| word(*status) == text).ok_or_else(|| {
        let known: Vec<&str> = STATUSES.into_iter().map(word).collect();
        Failure::value("query status", format!("{text:?}"), format!("one of {}", known.join(", ")))
    })
}

async fn held(
    node: &Node,
    stream: &str,
    processor: &str,
    kind: Option<BlockKind>,
    paging: &Paging,
) -> Result<Page<wire::Lanes>> {
    let after = paging.place::<Place>()?.map(Place::lane).transpose()?;
    // One more than is told, to know that there are more.
    let limit = paging.limit + 1;
    let mut lanes = node.engine().looker().held_lanes_after(processor, kind, after, limit).await?;
    let has_more = lanes.len() > paging.limit;
    lanes.truncate(paging.limit);
    let last = lanes.last().filter(|_| has_more);
    let next = last.map(|last| paging.cursor(&Place::new(last.partition, &last.record.lane)));
    let items = lanes.iter().map(|lane| told(stream, processor, lane)).collect();
    let link = next.clone();
    Ok(paging.answer(wire::Lanes { items, partial: false, next }, link.as_deref()))
}

fn told(stream: &str, processor: &str, lane: &HeldLane) -> ListedLane {
    let (key, head) = match &lane.record.lane {
        LaneName::Key(key) => (Some(key), lane.head),
        LaneName::Event(id) => (None, Some(*id)),
    };
    let mut listed = listed(stream, processor, lane.partition, key, head);
    listed.attempt = lane.record.attempts;
    let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
    let status = match &lane.record.block {
        Some(Block::Retry { due, cause }) => {
            listed.next_attempt_at = Some(convert::date_of(convert::due(*due)));
            listed.cause = text(cause);
            LaneStatus::Retrying
        }
        Some(Block::Parked { cause: said, at }) => {
            (listed.cause, listed.since) = (text(said), Some(convert::date_of(*at)));
            LaneStatus::Parked
        }
        Some(Block::Paused { by: said, at }) => {
            (listed.cause, listed.since) = (text(said), Some(convert::date_of(*at)));
            LaneStatus::Paused
        }
        Some(Block::Diverting { .. }) => LaneStatus::Diverting,
        Some(Block::Running { .. } | Block::Claimed(_)) => LaneStatus::Running,
        // One that drains what was held up, or whose head wants to start later.
        Some(Block::Hold { .. }) | None => LaneStatus::Waiting,
    };
    word(status).clone_into(&mut listed.status);
    listed
}

fn listed(
    stream: &str,
    processor: &str,
    partition: Partition,
    key: Option<&Key>,
    head: Option<EventId>,
) -> ListedLane {
    let convert::Named { key, key_b64 } = convert::named(key);
    ListedLane {
        processor: processor.to_owned(),
        status: String::new(),
        key,
        key_b64,
        partition: partition.0,
        head: head.map(|head| convert::reference(stream, partition, head)),
        attempt: 0,
        next_attempt_at: None,
        cause: None,
        since: None,
    }
}

/// Lanes that wait or run: first those whose head lies below the floor, then those in the log.
async fn going_on(
    node: &Node,
    info: &StreamInfo,
    processor: &str,
    status: LaneStatus,
    paging: &Paging,
) -> Result<Page<wire::Lanes>> {
    let standing = node.engine().looker().stream(&info.name).await?;
    let mut search = Search { node, standing: &standing, processor, status, items: Vec::new(), looked_at: 0 };
    let limit = paging.limit;
    let (after, log) = match paging.place::<Reached>()? {
        None => (None, (0, None)),
        Some(Reached::Records(place)) => (Some(place.lane()?), (0, None)),
        Some(Reached::Log(partition, id)) => (None, (partition, Some(id))),
    };
    let mut next = None;
    if log.1.is_none() {
        next = search.below_the_floors(after, limit).await?.map(Reached::Records);
    }
    if next.is_none() {
        next = search.in_the_log(log.0, log.1, limit).await?;
    }
    let next = next.map(|reached| paging.cursor(&reached));
    let link = next.clone();
    Ok(paging.answer(wire::Lanes { items: search.items, partial: true, next }, link.as_deref()))
}

/// A search for lanes of a processor that stand so.
struct Search<'a> {
    node: &'a Node,
    standing: &'a StreamStanding,
    processor: &'a str,
    status: LaneStatus,
    items: Vec<ListedLane>,
    looked_at: usize,
}

impl Search<'_> {
    fn wanted(&self) -> Status {
        if self.status == LaneStatus::Waiting { Status::Waiting } else { Status::Running }
    }

    fn is_enough(&self, limit: usize) -> bool {
        self.items.len() >= limit || self.looked_at >= LOOKED_AT_MAX
    }

    fn found(&mut self, partition: Partition, key: Option<&Key>, head: EventId) {
        let mut lane = listed(&self.standing.info.name, self.processor, partition, key, Some(head));
        word(self.status).clone_into(&mut lane.status);
        self.items.push(lane);
    }

    /// The floor of the processor in a partition, unless all of it stands there.
    fn floor(&self, partition: &PartitionStanding) -> Option<EventId> {
        let seat = partition.processors.iter().find(|seat| seat.processor == self.processor)?;
        (seat.status == SeatStatus::Run).then_some(seat.floor)
    }

    /// Lanes with a record that go on, and whose head the log does not show any more. Answers where to go on, if it was
    /// enough before the last one.
    async fn below_the_floors(
        &mut self,
        mut after: Option<(Partition, LaneName)>,
        limit: usize,
    ) -> Result<Option<Place>> {
        loop {
            let looker = self.node.engine().looker();
            let lanes = looker.held_lanes_after(self.processor, None, after, LOOKED_AT).await?;
            let Some(last) = lanes.last() else { return Ok(None) };
            after = Some((last.partition, last.record.lane.clone()));
            for lane in &lanes {
                self.look_at(lane).await?;
                if self.is_enough(limit) {
                    return Ok(Some(Place::new(lane.partition, &lane.record.lane)));
                }
            }
        }
    }

    async fn look_at(&mut self, lane: &HeldLane) -> Result<()> {
        self.looked_at += 1;
        let is_held_up = matches!(
            lane.record.block,
            Some(Block::Retry { .. } | Block::Parked { .. } | Block::Paused { .. } | Block::Diverting { .. })
        );
        let partitions = &self.standing.partitions;
        let partition = partitions.iter().find(|partition| partition.partition == lane.partition);
        let floor = partition.and_then(|partition| self.floor(partition));
        let Some(head) = lane.head.filter(|head| !is_held_up && floor.is_some_and(|floor| *head <= floor))
        else {
            return Ok(());
        };
        self.looked_at += LOOKED_UP;
        let stream = self.standing.info.name.clone();
        let reference = Ref { stream, partition: lane.partition, id: head };
        let event = match self.node.engine().looker().event(&reference).await {
            Ok(event) => event,
            // It has ended since its record was read, and went by retention.
            Err(LookError::Store(StoreError::Trimmed { .. } | StoreError::NotFound { .. })) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if status_for(&event, self.processor) == Some(self.wanted()) {
            self.found(lane.partition, event.event.key.as_ref(), head);
        }
        Ok(())
    }

    /// Heads of lanes in the log, from a partition and an id on. Answers where to go on, if it was enough before the end.
    async fn in_the_log(
        &mut self,
        from: u32,
        mut behind: Option<u64>,
        limit: usize,
    ) -> Result<Option<Reached>> {
        let standing = self.standing;
        for partition in standing.partitions.iter().filter(|partition| partition.partition.0 >= from) {
            // Nothing waits for its turn where the whole processor stands.
            let Some(floor) = self.floor(partition) else { continue };
            let shard = partition.partition;
            let mut after = EventId(behind.take().unwrap_or(0)).max(floor).max(partition.trimmed);
            while after < partition.head {
                if self.is_enough(limit) {
                    return Ok(Some(Reached::Log(shard.0, after.0)));
                }
                let page =
                    self.node.engine().looker().events(&standing.info.name, shard, after, LOOKED_AT).await?;
                self.looked_at += page.events.len().max(1);
                let room = limit - self.items.len();
                let (heads, read_to) =
                    heads(self.node, self.processor, self.wanted(), &page.events, room).await?;
                for event in heads {
                    self.found(shard, event.event.key.as_ref(), event.event.id);
                }
                after = read_to.unwrap_or(page.after);
                if page.events.is_empty() {
                    break;
                }
            }
        }
        Ok(None)
    }
}

/// The events that stand so and are the first of their lane that has not ended, as many as there is room for; and where to
/// go on if there was not room for all.
async fn heads<'a>(
    node: &Node,
    processor: &str,
    wanted: Status,
    events: &'a [EventView],
    room: usize,
) -> Result<(Vec<&'a EventView>, Option<EventId>)> {
    let by_id: HashMap<EventId, &EventView> = events.iter().map(|event| (event.event.id, event)).collect();
    let mut heads = Vec::new();
    for (at, event) in events.iter().enumerate() {
        if status_for(event, processor) != Some(wanted) {
            continue;
        }
        let has_ended = match event.event.prev {
            None => true,
            Some(prev) => match by_id.get(&prev) {
                Some(prev) => has_ended(prev, processor),
                None => prev_has_ended(node, processor, event, prev).await?,
            },
        };
        if has_ended {
            if heads.len() == room {
                let read_to =
                    events.get(at.wrapping_sub(1)).map_or(EventId(event.event.id.0 - 1), |one| one.event.id);
                return Ok((heads, Some(read_to)));
            }
            heads.push(event);
        }
    }
    Ok((heads, None))
}

fn status_for(event: &EventView, processor: &str) -> Option<Status> {
    event.statuses.iter().find(|standing| standing.processor == processor).map(|standing| standing.status)
}

fn has_ended(event: &EventView, processor: &str) -> bool {
    matches!(status_for(event, processor), Some(Status::Ended(_)))
}

async fn prev_has_ended(node: &Node, processor: &str, event: &EventView, prev: EventId) -> Result<bool> {
    let reference = Ref { id: prev, ..event.reference.clone() };
    match node.engine().looker().event(&reference).await {
        Ok(prev) => Ok(has_ended(&prev, processor)),
        // What went by retention had ended.
        Err(LookError::Store(StoreError::Trimmed { .. } | StoreError::NotFound { .. })) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
