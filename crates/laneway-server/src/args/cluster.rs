//! `laneway node …`, `laneway lease …` and `laneway cluster …`.

use clap::{Args as ClapArgs, Subcommand};

use super::common::{Common, Consent, WatchArgs};

/// Arguments of `laneway node`.
#[derive(Debug, ClapArgs)]
pub(crate) struct NodeArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: NodeVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeVerb {
    /// List nodes.
    #[command(visible_alias = "list")]
    Ls(WatchArgs),
    /// Hand the work of a node to the others, which keep it until `--undo`; refused while a node works alone.
    Drain(NodeDrain),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct NodeDrain {
    /// Name or token of the node, as `laneway node ls` has it.
    pub(crate) node: String,
    /// Let it have work again.
    #[arg(long)]
    pub(crate) undo: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Arguments of `laneway lease`.
#[derive(Debug, ClapArgs)]
pub(crate) struct LeaseArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: LeaseVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LeaseVerb {
    /// List leases.
    #[command(visible_alias = "list")]
    Ls(WatchArgs),
    /// Take a lease from its holder; refused while a node works alone.
    Break(LeaseBreak),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LeaseBreak {
    /// Name of the lease, as `laneway lease ls` has it, or `node/NAME` for all that a node has.
    pub(crate) lease: String,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Arguments of `laneway cluster`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: ClusterVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// Show nodes, streams and processors in a few lines, and what needs attention.
    Status(WatchArgs),
}
