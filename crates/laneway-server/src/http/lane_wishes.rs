//! What an operator asks of lanes: pause, resume, retry, skip. Everything is a request to the owner (contract 1.7).

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use laneway::core::store::{RequestOp, SeatStatus};
use laneway::core::{LaneName, Seat, Shard, StreamInfo};
use laneway::engine::lane::Answer;
use laneway::engine::observe::{ProcessorStanding, Why};
use laneway::{EventId, Ref};
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::lanes::processor_of;
use super::processors::APPLIED_WITHIN;
use super::under_way;
use super::{body, lane_filter, wire as convert};
use crate::node::Node;

/// What an operator asks of a lane.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wish {
    Pause,
    Resume,
    Retry,
    Skip,
}

/// Stops lanes; what runs goes on.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/lanes/pause", tag = "lanes",
    params(("stream" = String, Path, description = "the stream's name")),
    request_body = wire::LaneRequest,
    responses((status = 200, body = wire::LaneAnswer), (status = 202, body = wire::LaneAnswer, description = "it has its effect once the processor runs")),
)]
pub(super) async fn pause(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::LaneAnswer>)> {
    ask(&node, &stream, Wish::Pause, body::object(&headers, body).await?).await
}

/// Lets paused, parked or diverting lanes go on.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/lanes/resume", tag = "lanes",
    params(("stream" = String, Path, description = "the stream's name")),
    request_body = wire::LaneRequest,
    responses((status = 200, body = wire::LaneAnswer), (status = 202, body = wire::LaneAnswer, description = "it has its effect once the processor runs")),
)]
pub(super) async fn resume(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::LaneAnswer>)> {
    ask(&node, &stream, Wish::Resume, body::object(&headers, body).await?).await
}

/// Tries the heads of lanes again now; a parked one gets all its attempts again.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/lanes/retry", tag = "lanes",
    params(("stream" = String, Path, description = "the stream's name")),
    request_body = wire::LaneRequest,
    responses((status = 200, body = wire::LaneAnswer), (status = 202, body = wire::LaneAnswer, description = "it has its effect once the processor runs")),
)]
pub(super) async fn retry(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::LaneAnswer>)> {
    ask(&node, &stream, Wish::Retry, body::object(&headers, body).await?).await
}

/// Passes the heads of lanes over: they end skipped, and the lanes go on behind them.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/lanes/skip", tag = "lanes",
    params(("stream" = String, Path, description = "the stream's name")),
    request_body = wire::LaneRequest,
    responses((status = 200, body = wire::LaneAnswer), (status = 202, body = wire::LaneAnswer, description = "it has its effect once the processor runs")),
)]
pub(super) async fn skip(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::LaneAnswer>)> {
    ask(&node, &stream, Wish::Skip, body::object(&headers, body).await?).await
}

async fn ask(
    node: &Node,
    stream: &str,
    wish: Wish,
    asked: wire::LaneRequest,
) -> Result<(StatusCode, Json<wire::LaneAnswer>)> {
    node.engine().catalogue().refresh().await?;
    let info = node.engine().catalogue().stream(stream).await?;
    if asked.filter.is_some() {
        return lane_filter::ask(node, &info, wish, &asked).await;
    }
    if asked.cursor.is_some() {
        return Err(Failure::value("cursor", "set", "absent unless filter is set"));
    }
    let meant = meant(node, &info, &asked).await?;
    let processor = processor_of(&info, asked.processor.as_deref())?;
    let op = op(node, stream, &processor, &meant, wish).await?;
    if asked.dry_run {
        return Ok((StatusCode::OK, Json(answer(1, false))));
    }
    let (_, id) = node.engine().catalogue().processor(&processor).await?;
    let (seat, token) = (Seat { shard: meant.shard, processor: id }, node.engine().env().token());
    let operator = node.engine().operator();
    let filed = operator.file(seat, token, op).await?;
    let applied = match operator.answer(filed, under_way::patience(APPLIED_WITHIN)).await? {
        Some(Answer::Refused(why)) => return Err(why.into()),
        Some(Answer::Applied | Answer::Already) => true,
        None => false,
    };
    let status = if applied { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(answer(1, applied))))
}

fn answer(count: u64, applied: bool) -> wire::LaneAnswer {
    wire::LaneAnswer { count, applied, refused: 0, next: None }
}

/// The lane that somebody means.
struct Meant {
    shard: Shard,
    lane: LaneName,
    /// The event by which it was named.
    event: Option<EventId>,
}

async fn meant(node: &Node, info: &StreamInfo, asked: &wire::LaneRequest) -> Result<Meant> {
    let key = convert::key(asked.key.as_ref().map(AsRef::as_ref), asked.key_b64.as_ref().map(AsRef::as_ref))?;
    match (key, &asked.reference) {
        (Some(_), Some(_)) => Err(Failure::value("ref", "set beside a key", "the only one of the two")),
        (Some(key), None) => {
            let shard = info.shard(key.partition(info.settings.partitions));
            Ok(Meant { shard, lane: LaneName::Key(key), event: None })
        }
        (None, Some(text)) => {
            let reference: Ref = text.parse()?;
            if reference.stream != info.name {
                return Err(Failure::value(
                    "ref",
                    format!("{text:?}"),
                    format!("an event of stream {:?}", info.name),
                ));
            }
            let event = super::events::found(node, &reference).await?.event;
            let lane = event.key.map_or(LaneName::Event(event.id), LaneName::Key);
            Ok(Meant { shard: info.shard(reference.partition), lane, event: Some(event.id) })
        }
        (None, None) => Err(Failure::value(
            "key",
            "absent",
            "the key of a lane; or set ref to the name of an event, which without a key is a lane of its own; or set filter",
        )),
    }
}

async fn op(node: &Node, stream: &str, processor: &str, meant: &Meant, wish: Wish) -> Result<RequestOp> {
    let lane = meant.lane.clone();
    Ok(match wish {
        Wish::Pause => RequestOp::Pause { lane: Some(lane), by: under_way::by().into() },
        Wish::Resume => {
            let is_paused = |standing: &ProcessorStanding| matches!(standing.why, Why::LanePaused { .. });
            let standing = standing(node, stream, processor, meant).await?;
            if !standing.as_ref().is_some_and(is_paused) {
                check_runs(standing.as_ref(), processor, meant)?;
            }
            RequestOp::Resume { lane: Some(lane) }
        }
        Wish::Retry => {
            let (standing, id) = head_of(node, stream, processor, meant).await?;
            check_runs(standing.as_ref(), processor, meant)?;
            RequestOp::Retry { lane, id }
        }
        Wish::Skip => RequestOp::Skip { lane, id: head_of(node, stream, processor, meant).await?.1 },
    })
}

/// Nothing that is let go moves while the whole processor stands.
fn check_runs(standing: Option<&ProcessorStanding>, processor: &str, meant: &Meant) -> Result<()> {
    let how = match standing.map(|standing| standing.status) {
        Some(SeatStatus::Halted) => "halted by a failure",
        Some(SeatStatus::Paused) => "paused",
        Some(SeatStatus::Run) | None => return Ok(()),
    };
    let partition = meant.shard.partition;
    let detail = format!(
        "processor {processor:?} is {how} on partition {partition}: POST /v1/processors/{processor}/resume lets it \
         go on, with the lanes that stood with it"
    );
    Err(Failure::new(Code::ProcessorStopped, detail))
}

async fn standing(
    node: &Node,
    stream: &str,
    processor: &str,
    meant: &Meant,
) -> Result<Option<ProcessorStanding>> {
    let lane = node.engine().looker().lane_of(stream, meant.shard.partition, &meant.lane).await?;
    Ok(lane.processors.into_iter().find(|standing| standing.processor == processor))
}

/// The event that is meant: if another comes first by then, nothing happens to it.
async fn head_of(
    node: &Node,
    stream: &str,
    processor: &str,
    meant: &Meant,
) -> Result<(Option<ProcessorStanding>, EventId)> {
    let standing = standing(node, stream, processor, meant).await?;
    let head = meant.event.or(standing.as_ref().and_then(|standing| standing.head));
    match head {
        Some(head) if standing.as_ref().is_some_and(|standing| standing.head.is_some()) => {
            Ok((standing, head))
        }
        _ => {
            let detail = format!("nothing waits in lane {} of processor {processor:?}", meant.lane);
            Err(Failure::new(Code::NothingWaits, detail))
        }
    }
}
