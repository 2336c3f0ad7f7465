//! Whom a connection waits for, and since when.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::seam;

/// What happens on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A request or a handshake has begun, or none has come yet: the caller is to send the rest.
    Head,
    /// The answer before was given, and nothing has come since.
    Idle,
    /// The caller is to send more of a body.
    Body,
    /// The caller waits for us.
    Working,
    /// The answer is on its way, maybe while the body still comes: lines are answered one by one.
    Answering,
}

const PHASE_BITS: u32 = 3;

/// One connection, as whoever must choose between them sees it.
///
/// Phase and time are one number, so that no reader sees the phase of one moment with the time of another.
#[derive(Debug)]
pub(super) struct Line {
    /// Milliseconds of the steady clock, and the phase in the three lowest bits.
    now: AtomicU64,
    /// Since when the other side takes nothing of what we send, in the same milliseconds; 0 while it does.
    unread_since: AtomicU64,
    cut: Notify,
}

impl Line {
    /// A connection that has just come.
    pub(super) fn new() -> Self {
        let line = Self { now: AtomicU64::new(0), unread_since: AtomicU64::new(0), cut: Notify::new() };
        line.enter(Phase::Head);
        line
    }

    /// From now on this happens.
    pub(super) fn enter(&self, phase: Phase) {
        self.now.store(steady_ms() << PHASE_BITS | phase as u64, Ordering::Relaxed);
    }

    /// From now on a body is awaited, or it has come; that changes nothing while the answer is on its way.
    pub(super) fn enter_with_body(&self, phase: Phase) {
        if self.phase() != Phase::Answering {
            self.enter(phase);
        }
    }

    /// Whether the caller waits for us.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.phase(), Phase::Working | Phase::Answering)
    }

    /// Bytes came.
    pub(super) fn heard(&self) {
        match self.phase() {
            Phase::Idle => self.enter(Phase::Head),
            Phase::Body => self.enter(Phase::Body),
            // A head must be whole in its time, however many bytes come one by one.
            Phase::Head | Phase::Working | Phase::Answering => {}
        }
    }

    /// Bytes were taken by the other side: an answer is on its way although nothing more is to be added to it.
    pub(super) fn told(&self) {
        self.unread_since.store(0, Ordering::Relaxed);
        if self.phase() == Phase::Idle {
            self.enter(Phase::Idle);
        }
    }

    /// The other side has no room for more.
    pub(super) fn unread(&self) {
        if self.unread_since().is_none() {
            self.unread_since.store(steady_ms().max(1), Ordering::Relaxed);
        }
    }

    /// Since when the other side takes nothing of what we send, if it does not.
    pub(super) fn unread_since(&self) -> Option<u64> {
        Some(self.unread_since.load(Ordering::Relaxed)).filter(|since| *since > 0)
    }

    /// What happens, and since when.
    pub(super) fn look(&self) -> (Phase, u64) {
        let now = self.now.load(Ordering::Relaxed);
        let phase = match now & ((1 << PHASE_BITS) - 1) {
            0 => Phase::Head,
            1 => Phase::Idle,
            2 => Phase::Body,
            3 => Phase::Working,
            _ => Phase::Answering,
        };
        (phase, now >> PHASE_BITS)
    }

    /// What happens.
    pub(super) fn phase(&self) -> Phase {
        self.look().0
    }

    /// Ends the connection.
    pub(super) fn cut(&self) {
        self.cut.notify_one();
    }

    /// Resolves when it is to end.
    pub(super) async fn is_cut(&self) {
        self.cut.notified().await;
    }
}

/// Milliseconds of a clock that never goes back.
pub(super) fn steady_ms() -> u64 {
    seam::steady().0 / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_comes_byte_by_byte_gains_no_time_and_a_body_does() {
        let line = Line::new();
        let at = |phase: Phase| line.now.store(7 << PHASE_BITS | phase as u64, Ordering::Relaxed);
        for (phase, after, keeps_its_time) in [
            (Phase::Head, Phase::Head, true),
            (Phase::Working, Phase::Working, true),
            (Phase::Answering, Phase::Answering, true),
            (Phase::Idle, Phase::Head, false),
            (Phase::Body, Phase::Body, false),
        ] {
            at(phase);
            assert_eq!(line.look(), (phase, 7));
            line.heard();
            let (found, since) = line.look();
            assert!(found == after && (since == 7) == keeps_its_time, "{phase:?}: {found:?} since {since}");
        }
    }
}
