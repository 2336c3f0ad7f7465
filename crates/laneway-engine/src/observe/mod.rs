//! What the engine tells of itself: why something waits and how lanes stand (read from the store, by any node), meters,
//! and reports on the system stream. Nothing here changes what the engine does.

mod events;
mod facts;
mod jobs;
mod lanes;
mod lists;
mod metered;
mod meters;
mod names;
mod nearby;
mod report;
mod trace;
mod why;

pub use events::{EventStatus, EventView, EventsPage, PartitionStanding, SeatStanding, StreamStanding};
pub use facts::{LookError, Looker};
pub use jobs::{JobStanding, StandingJobs};
pub use lanes::{DeadLetter, HeldLane, LaneStanding, OwnedSeat, ProcessorStanding, StoppedSeat};
pub use lists::DeadLetters;
pub(crate) use metered::Metered;
pub(crate) use meters::{Levels, Meters, Tally, between};
pub use names::{METRICS, Metric, MetricKind};
pub(crate) use names::{
    count_adoption, count_evicted, count_fault, count_lost_lease, count_rebalance, introduce, show_clock,
    show_cluster, show_held_bytes,
};
pub(crate) use nearby::{Asked, LaneRuns, Nearby, Places, Question, UnderWay};
pub use report::SYSTEM_STREAM;
pub(crate) use report::{Report, report, send_report};
pub use trace::{TraceContext, Tracer, continue_trace, install_tracer};
pub(crate) use trace::{carried_on, caused_by, note_failures, of_run, processing, sending, stamp};
pub use why::{Facts, Limit, Place, Runs, Short, Why, status, why};
