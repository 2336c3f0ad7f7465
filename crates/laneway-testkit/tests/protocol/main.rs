//! The protocol of leases, commits, emits and claims, searched to its bounds (`docs/design/protocol.md`).
//!
//! Each model is the protocol written once more, in plain data, with everything that a network, a frozen process or a store
//! that fails over may do to it. It shows that the rules are right; that the code keeps them is for the conformance suite and
//! the simulation.

mod claims;
mod emits;
mod ownership;
mod report;
mod seam;

use claims::Claims;
use emits::Emits;
use ownership::{Ownership, Reads};
use report::Report;

#[test]
fn seats_have_one_owner_whatever_happens_to_leases_and_calls() {
    let mut report = Report::default();
    let bounds = |nodes, tokens, grants, events, renewals, repeats| {
        let reads = Reads::AtOnce;
        Ownership { nodes, tokens, grants, events, renewals, repeats, reads, bug: None }
    };
    report.holds("2 nodes, 2 grants, 2 events, a renewal, a repeat", bounds(2, 2, 2, 2, 1, 1));
    report.holds("2 nodes that may join again, 3 grants, 2 events", bounds(2, 3, 3, 2, 0, 0));
    report.holds("3 nodes, 2 grants, 1 event", bounds(3, 3, 2, 1, 0, 0));
    report.holds("two reads apart", Ownership { reads: Reads::Apart, ..bounds(2, 2, 2, 1, 0, 0) });
    let bugs = [
        (ownership::Bug::TokenPerNode, ownership::ZOMBIE),
        (ownership::Bug::FenceWithoutVersion, ownership::ORDER),
        (ownership::Bug::RescueById, ownership::ROBBED),
        (ownership::Bug::BuryWithoutVersion, ownership::BURIED_ALIVE),
        (ownership::Bug::RenewRevives, ownership::REVIVED),
        (ownership::Bug::SeizeFromTheLiving, ownership::ROBBED),
        (ownership::Bug::ListBeforeTheSeat, ownership::ROBBED),
        (ownership::Bug::JoinRepeated, ownership::REVIVED),
        (ownership::Bug::GoesOnAfterClean, ownership::ROBBED),
        (ownership::Bug::GivenUpSeizureForgotten, ownership::STRANDED),
    ];
    for (bug, property) in bugs {
        let reads = Reads::Apart;
        report.finds(bug, property, Ownership { reads, bug: Some(bug), ..bounds(2, 3, 3, 2, 1, 1) });
    }
    println!("{}", report.end("ownership", bugs.len()));
}

#[test]
fn emits_survive_failovers_of_either_shard() {
    let mut report = Report::default();
    let bounds = |grants, events, repeats, source_failovers, target_failovers| Emits {
        grants,
        events,
        repeats,
        source_failovers,
        target_failovers,
        bug: None,
    };
    report.holds("no failover, 3 grants, 2 events, a repeat", bounds(3, 2, 1, 0, 0));
    report.holds("failover of the emitting shard", bounds(2, 2, 0, 1, 0));
    report.holds("failover of the receiving shard", bounds(2, 2, 0, 0, 1));
    report.holds("failover of both, 1 event", bounds(2, 1, 0, 1, 1));
    report.holds("two failovers of the emitting shard, 1 event", bounds(2, 1, 0, 2, 0));
    report.holds("two failovers of the receiving shard, 1 event", bounds(2, 1, 0, 0, 2));
    let bugs = [
        (emits::Bug::FenceWithoutVersion, emits::ORDER, bounds(2, 2, 1, 0, 0)),
        (emits::Bug::FenceWithoutAdoptions, emits::REVENANT, bounds(2, 2, 0, 1, 0)),
        (emits::Bug::OriginWithoutAdoptions, emits::KEPT, bounds(2, 2, 0, 1, 0)),
        (emits::Bug::OriginOfTheForwarder, emits::ONCE, bounds(2, 1, 0, 1, 0)),
        (emits::Bug::ForwardsOfOtherLives, emits::OUTBOX, bounds(2, 2, 0, 1, 0)),
        (emits::Bug::AdoptionKeepsIds, emits::IDS, bounds(1, 2, 0, 0, 1)),
        (emits::Bug::AppendWithoutIncarnation, emits::IDS, bounds(1, 2, 0, 0, 1)),
        (emits::Bug::ForwardingGoesOn, emits::OUTBOX, bounds(1, 2, 0, 0, 1)),
        (emits::Bug::AdoptionsCountedUp, emits::KEPT, bounds(2, 1, 0, 2, 0)),
        (emits::Bug::IdsCountedUp, emits::IDS, bounds(1, 2, 0, 0, 2)),
    ];
    for (bug, property, bounds) in bugs {
        report.finds(bug, property, Emits { bug: Some(bug), ..bounds });
    }
    println!("{}", report.end("emits", bugs.len()));
}

#[test]
fn claims_have_one_end_through_any_node() {
    let mut report = Report::default();
    let bounds = |grants, claims, sends| Claims { nodes: 2, grants, claims, sends, bug: None };
    report.holds("3 grants, 2 claims, 1 call", bounds(3, 2, 1));
    report.holds("2 grants, 1 claim, 3 calls", bounds(2, 1, 3));
    let bugs = [
        (claims::Bug::ClaimNotAdopted, claims::EXCLUSIVE),
        (claims::Bug::RequestAppliedTwice, claims::ANSWER),
        (claims::Bug::SettleByNonOwner, claims::ONE_END),
        (claims::Bug::SettleWithoutNonce, claims::OPEN),
        (claims::Bug::AnsweredBeforeDurable, claims::TOLD),
        (claims::Bug::EndedIsToldLost, claims::LOST),
    ];
    for (bug, property) in bugs {
        report.finds(bug, property, Claims { bug: Some(bug), ..bounds(2, 2, 2) });
    }
    println!("{}", report.end("claims and requests", bugs.len()));
}
