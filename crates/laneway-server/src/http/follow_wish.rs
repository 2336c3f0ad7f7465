//! What a follower asks for: which partitions, from where on, how often it wants to hear that nothing is new.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use laneway::core::adoption::next_given;
use laneway::core::store::{Query as StoreQuery, Rows};
use laneway::core::{ShardInfo, StoreError, StreamInfo};
use laneway::{EventId, Partition};

use super::error::{Failure, Result};
use super::events::partition_of;
use super::follow::Wish;
use super::follow_place::{PARTITIONS_MAX, Places};
use super::query::Query;
use super::wire as convert;
use crate::node::Node;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How often something is sent when nothing comes, unless it is said.
const HEARTBEAT: Duration = Duration::from_secs(15);
const HEARTBEAT_MIN: Duration = Duration::from_secs(1);
const HEARTBEAT_MAX: Duration = Duration::from_secs(60);

/// Reads the wish of a follower, and where it begins.
pub(super) async fn read(
    node: &Node,
    info: &StreamInfo,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Wish> {
    let query = Query::read(query, &["partition", "after", "key", "key_b64", "heartbeat"])?;
    let heartbeat =
        query.text("heartbeat").map_or(Ok(HEARTBEAT), |text| convert::length("query heartbeat", &text))?;
    if !(HEARTBEAT_MIN..=HEARTBEAT_MAX).contains(&heartbeat) {
        return Err(Failure::value("query heartbeat", convert::length_text(heartbeat), "1s to 1m"));
    }
    let key = convert::key(query.bytes("key"), query.bytes("key_b64"))?;
    let limits = format!("0 to {}", info.settings.partitions - 1);
    let partition = query.number("partition", &limits)?;
    let partition = partition.map(|number| partition_of(info, "query partition", number)).transpose()?;
    let followed = match (&key, partition) {
        (Some(key), None) => vec![key.partition(info.settings.partitions)],
        (Some(_), Some(_)) => {
            return Err(Failure::value("query partition", "set beside key", "the only one of the two"));
        }
        (None, Some(partition)) => vec![partition],
        (None, None) if info.settings.partitions > PARTITIONS_MAX => {
            let limit = format!("set: more than {PARTITIONS_MAX} partitions are not followed together");
            return Err(Failure::value("query partition", "absent", limit));
        }
        (None, None) => (0..info.settings.partitions).map(Partition).collect(),
    };
    let last = headers.get(LAST_EVENT_ID).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let begin = match (last.filter(|last| !last.is_empty()), query.text("after")) {
        (Some(last), _) => Begin::At(Places::read("Last-Event-ID", &last, info, &followed)?),
        (None, None) => Begin::Now,
        (None, Some(after)) => match (after.parse::<u64>(), &followed[..]) {
            (Ok(0), _) => Begin::First,
            (Ok(after), [only]) => Begin::At(Places::at([(*only, EventId(after))])),
            (Ok(_), _) => {
                let limit = "0 over several partitions, or the id of an event that was followed";
                return Err(Failure::value("query after", after, limit));
            }
            (Err(_), _) => Begin::At(Places::read("query after", &after, info, &followed)?),
        },
    };
    Ok(Wish { places: begin.places(node, info, &followed).await?, key, heartbeat })
}

/// Where a follower begins.
enum Begin {
    First,
    Now,
    At(Places),
}

impl Begin {
    async fn places(self, node: &Node, info: &StreamInfo, followed: &[Partition]) -> Result<Places> {
        let mut abouts = Vec::new();
        for partition in followed {
            abouts.push((*partition, about(node, info, *partition).await?));
        }
        let places = match self {
            Self::First => {
                return Ok(Places::at(abouts.iter().map(|(partition, about)| (*partition, about.trimmed))));
            }
            Self::Now => {
                return Ok(Places::at(abouts.iter().map(|(partition, about)| (*partition, about.head))));
            }
            Self::At(places) => places,
        };
        for (at, (partition, about)) in abouts.iter().enumerate() {
            if places.after(at) < about.trimmed {
                let (shard, first) = (info.shard(*partition), next_given(&about.gaps, about.trimmed));
                return Err(StoreError::Trimmed { shard, first }.into());
            }
        }
        Ok(places)
    }
}

async fn about(node: &Node, info: &StreamInfo, partition: Partition) -> Result<ShardInfo> {
    let rows = node.engine().stores().store.query(StoreQuery::Seats(info.shard(partition))).await?;
    match rows {
        Rows::Seats(about, _) => Ok(about),
        _ => {
            let what = "the store answered another list than seats".to_owned();
            Err(StoreError::Corrupt { what }.into())
        }
    }
}
