//! Why something waits, and the one word for a lane.

use laneway::core::store::SeatStatus;
use laneway::core::{Block, Due};
use laneway::engine::observe::{Limit, ProcessorStanding, Why};
use laneway_client::wire;

use super::time::{date_of, due};

/// The one reason why something waits.
pub(crate) fn why(why: &Why) -> wire::Why {
    let (code, head, until) = match why {
        Why::Ended(_) => ("ended", None, None),
        Why::Idle => ("idle", None, None),
        Why::Delayed { until, .. } => ("delayed", None, Some(*until)),
        Why::NoProcessor => ("no_processor", None, None),
        Why::NoOwner => ("no_owner", None, None),
        Why::ProcessorPaused { .. } => ("processor_paused", None, None),
        Why::Halted => ("halted", None, None),
        Why::LanePaused { .. } => ("lane_paused", None, None),
        Why::Parked { head, .. } => ("parked", Some(*head), None),
        Why::Diverting { since } => ("diverting", Some(*since), None),
        Why::Retrying { head, at, .. } => ("retrying", Some(*head), Some(*at)),
        Why::Held { head, until, .. } => ("held", Some(*head), Some(*until)),
        Why::Claimed { head, expires, .. } => ("claimed", Some(*head), Some(Due::Steady(*expires))),
        Why::Running { .. } => ("running", None, None),
        Why::Behind { head, .. } => ("behind", Some(*head), None),
        Why::Waiting { .. } => ("waiting", None, None),
        Why::LimitReached { limit: Limit::Concurrency(_) } => ("limit_reached", None, None),
        Why::LimitReached { limit: Limit::Rate { until, .. } | Limit::RatePerKey { until, .. } } => {
            ("limit_reached", None, Some(Due::Steady(*until)))
        }
        Why::BatchNotFull { until } => ("batch_not_full", None, Some(Due::Steady(*until))),
        Why::NoWorker => ("no_worker", None, None),
    };
    let paused = match why {
        Why::ProcessorPaused { by, at } | Why::LanePaused { by, at } if !by.is_empty() => Some((by, *at)),
        _ => None,
    };
    wire::Why {
        code: code.to_owned(),
        detail: why.to_string(),
        head: head.map(|head| head.0),
        until: until.map(|until| date_of(due(until))),
        by: paused.map(|(by, _)| String::from_utf8_lossy(by).into_owned()),
        since: paused.map(|(_, at)| date_of(at)),
    }
}

/// The one word for a lane of one processor.
pub(crate) fn status_of(standing: &ProcessorStanding) -> &'static str {
    // A record says running of every lane that may start: whether one does is in the reason.
    if matches!(standing.why, Why::Running { .. } | Why::Claimed { .. }) {
        return "running";
    }
    match standing.record.as_ref().and_then(|record| record.block.as_ref()) {
        Some(Block::Paused { .. }) => "paused",
        Some(Block::Parked { .. }) => "parked",
        Some(Block::Retry { .. }) => "retrying",
        Some(Block::Diverting { .. }) => "diverting",
        _ if standing.status != SeatStatus::Run => "paused",
        _ if standing.head.is_none() => "idle",
        _ => "waiting",
    }
}
