//! Seize: a seat gets a new owner, and every older fence ends.

use laneway_core::limits::CAUSE_BYTES_MAX;
use laneway_core::store::{Owner, Progress, Resume, Seize};
use laneway_core::{Fence, Passed, Refusal, Result, StoreError, Term};

use super::{Now, SeatHead, SeatState, State, View, gate};

/// Makes the caller the owner of a seat.
pub(crate) fn seize<S: State>(state: &mut S, now: Now, seize: Seize) -> Result<Resume> {
    Refusal::check_max("node bytes", seize.node.len(), CAUSE_BYTES_MAX)?;
    let seat = seize.seat;
    let info = gate::shard(state, seat.shard)?;
    gate::learned(state, seat.shard, info, seize.incarnation)?;
    let stored = gate::seat(state, seat)?;
    let fence = stored.head.fence;
    let is_repeat = fence.term.0 > 0 && fence.nonce == seize.nonce && stored.head.last_commit.is_none();
    if is_repeat && fence.adoptions == info.adoptions {
        return Ok(resume(state, seize.seat, stored));
    }
    let owner = (fence.term.0 > 0).then_some(Owner { term: fence.term, nonce: fence.nonce });
    if owner != seize.expect {
        return Err(StoreError::Fenced { seat, current: fence.term });
    }
    let term = Term((fence.term.0 + 1).max(now.calendar.0).max(info.first_term.0));
    let head = SeatHead {
        fence: Fence { term, nonce: seize.nonce, version: fence.version, adoptions: info.adoptions },
        node: seize.node,
        was_clean: stored.head.clean,
        clean: false,
        last_commit: None,
        ..stored.head.clone()
    };
    state.advance_seat(seat, head, &Passed::default());
    Ok(resume(state, seat, gate::seat(state, seat)?))
}

fn resume<S: View>(state: &S, seat: laneway_core::Seat, stored: &SeatState) -> Resume {
    let (head, gaps) = state.shard(seat.shard).map(|info| (info.head, info.gaps.clone())).unwrap_or_default();
    Resume {
        progress: progress(stored, stored.head.was_clean),
        head,
        gaps,
        request_no: stored.head.request_no,
    }
}

/// A seat as others see it.
pub(super) fn progress(stored: &SeatState, clean: bool) -> Progress {
    let head = &stored.head;
    Progress {
        fence: head.fence,
        node: head.node.clone(),
        window: stored.window.clone(),
        clean,
        requests_applied: head.requests_applied,
        emitted: head.emitted,
        forwarded: head.forwarded,
        status: head.status,
        note: head.note.clone(),
        incarnation: head.incarnation,
    }
}
