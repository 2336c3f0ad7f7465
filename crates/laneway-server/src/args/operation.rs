//! Commands that ask a server, work for it, or look at this machine.

use clap::{Args as ClapArgs, Subcommand};

use super::cluster::{ClusterArgs, LeaseArgs, NodeArgs};
use super::common::Common;
use super::dead::DeadArgs;
use super::job::{JobArgs, WhyArgs};
use super::lane::LaneArgs;
use super::local::{BenchArgs, CompletionsArgs, DoctorArgs, EventArgs, StoreArgs};
use super::processor::ProcessorArgs;
use super::schedule::ScheduleArgs;
use super::stream::{SendArgs, StreamArgs, TailArgs, VerifyArgs};
use super::work::WorkArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum Operation {
    /// Streams: create, change, send to, follow.
    Stream(StreamArgs),
    /// Lanes: all events of one key in one stream.
    Lane(LaneArgs),
    /// Jobs: events whose submitter wants their end.
    Job(JobArgs),
    /// Events by their name.
    Event(EventArgs),
    /// Processors: handlers with their policy.
    Processor(ProcessorArgs),
    /// Dead letters: events that were given up and are kept aside.
    Dead(DeadArgs),
    /// Schedules: events by the clock.
    Schedule(ScheduleArgs),
    /// Say in one sentence why a job or a lane waits.
    Why(WhyArgs),
    /// Run a command for the events of a processor, from any machine.
    Work(WorkArgs),
    /// Nodes that work on the store.
    Node(NodeArgs),
    /// Leases that nodes hold.
    Lease(LeaseArgs),
    /// The cluster as a whole.
    Cluster(ClusterArgs),
    /// Stores on this machine: check, copy, back up.
    Store(StoreArgs),
    /// Look whether everything here is fit to run a server.
    Doctor(DoctorArgs),
    /// Measure a store or a server: a short run, with the durability it had.
    Bench(BenchArgs),
    /// Print completions for a shell.
    Completions(CompletionsArgs),
    /// Short for `stream send`.
    Send(Short<SendArgs>),
    /// Short for `stream tail`.
    Tail(Short<TailArgs>),
    /// Check the chains of all lanes of a stream: ids grow, `prev` and `seq` are right.
    Verify(Short<VerifyArgs>),
}

/// A command of one word.
#[derive(Debug, ClapArgs)]
pub(crate) struct Short<A: ClapArgs> {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) args: A,
}
