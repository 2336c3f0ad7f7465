//! The commit thread: gather, apply, write, sync, publish, answer.
//!
//! There is no timer: a group is whatever has come while the group before was being synced. Nothing is applied
//! before there is room for it in the log, because what was applied is never taken back; after an error of the
//! disk the thread stops for good, and the state is read back from what is durable.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laneway_core::{FullReason, Refusal, StoreError, Timestamp};

use super::op::{Cost, Op};
use crate::file::log::{FrameBuffer, LogError, LogWriter, Position, Space, Stamp};
use crate::file::store::Shared;
use crate::machine::Now;

/// Most bytes of a group: what a crash may have to cut, and how long a call may wait for others.
const GROUP_BYTES: usize = 4 << 20;

/// How far the store got, for those who wait for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durable {
    /// Groups that are durable.
    pub(crate) groups: u64,
    /// Why there will be no more.
    pub(crate) failed: Option<Arc<str>>,
}

/// The one thread that changes the state.
pub(crate) struct CommitThread {
    shared: Arc<Shared>,
    writer: LogWriter,
}

impl CommitThread {
    pub(crate) fn new(shared: Arc<Shared>, writer: LogWriter) -> Self {
        Self { shared, writer }
    }

    /// Serves calls until the store is closed, then ends the log in order.
    pub(crate) fn run(self) {
        let shared = Arc::clone(&self.shared);
        // A rule that panics may have left half a group behind: the state goes back to what is durable.
        if catch_unwind(AssertUnwindSafe(|| self.serve())).is_err() {
            shared.fail(&"the commit thread panicked; see its message, then restart".into());
        }
    }

    fn serve(mut self) {
        let mut waiting = VecDeque::new();
        while self.shared.queue.take(&mut waiting) {
            let group = self.gather(&mut waiting);
            if !group.is_empty()
                && let Err(cause) = self.commit(group)
            {
                return self.shared.fail(&cause);
            }
        }
        if let Err(error) = self.writer.close() {
            tracing::warn!(%error, "log was not closed in order; the next start checks its end as after a crash");
        }
    }

    /// Takes the calls of the next group from the front, as many as there is room for.
    fn gather(&mut self, waiting: &mut VecDeque<Box<dyn Op>>) -> Vec<Box<dyn Op>> {
        let limit = self.writer.body_len_max();
        let (mut group, mut bytes): (Vec<Box<dyn Op>>, usize) = (Vec::new(), 0);
        while let Some(op) = waiting.front() {
            let Cost { bytes: cost, space, first, .. } = op.cost();
            let full = bytes + cost > GROUP_BYTES.min(limit);
            if !group.is_empty() && (first || full) {
                break;
            }
            let Some(op) = waiting.pop_front() else { break };
            if cost > limit {
                op.refuse(too_large(cost, limit));
                continue;
            }
            match self.writer.prepare(bytes + cost, space) {
                Ok(()) => {
                    bytes += cost;
                    group.push(op);
                }
                Err(error) => op.refuse(refusal(&error)),
            }
        }
        group
    }

    /// Applies a group and makes it durable. An error means that the store must stop.
    fn commit(&mut self, mut group: Vec<Box<dyn Op>>) -> Result<(), Arc<str>> {
        if group.iter().any(|op| op.cost().synced)
            && let Err(error) = self.writer.sync()
        {
            return Err(give_up(group, &error));
        }
        let now = self.shared.clock.now();
        let mut frame = {
            let mut state = self.shared.state.write();
            group.iter_mut().for_each(|op| op.apply(&mut state, now));
            state.take_frame()
        };
        let written = self.write(&mut frame, now);
        let position = match written {
            Ok(position) => position,
            Err(error) => return Err(give_up(group, &error)),
        };
        self.publish(position, now, frame);
        group.into_iter().for_each(Op::finish);
        Ok(())
    }

    /// Writes the frame; a group that changed nothing needs none.
    fn write(&mut self, frame: &mut FrameBuffer, now: Now) -> Result<Option<Position>, LogError> {
        if frame.body_len() == 0 {
            return Ok(None);
        }
        let stamp = Stamp { calendar: now.calendar.0, steady: now.steady.0 };
        loop {
            // Room was made for every call before it was applied, so its class does not matter any more.
            match self.writer.write(frame, stamp, Space::Reserve) {
                // Only a file that still grows can be refused here, and nothing of the frame was taken.
                Err(LogError::Full { .. }) => self.shared.wait_for_space(),
                result => return result.map(Some),
            }
        }
    }

    fn publish(&mut self, position: Option<Position>, now: Now, frame: FrameBuffer) {
        let bytes = frame.body_len() as u64;
        let (topics, groups) = {
            let mut state = self.shared.state.write();
            state.end = self.writer.end();
            if position.is_some() {
                state.clock_mark = self.shared.clock.mark(now);
            }
            (state.publish(position, Timestamp(now.calendar.0), frame), state.groups)
        };
        self.shared.durable.send_modify(|durable| durable.groups = groups);
        self.shared.wakeups.announce_all(&topics);
        let since = self.shared.log_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if since >= self.shared.options.checkpoint_bytes {
            self.shared.checkpoint_due();
        }
    }
}

/// Tells the calls of a group that nobody knows whether they happened.
fn give_up(group: Vec<Box<dyn Op>>, error: &LogError) -> Arc<str> {
    let cause: Arc<str> = error.to_string().into();
    group.into_iter().for_each(|op| op.unknown(&cause));
    cause
}

fn too_large(bytes: usize, limit: usize) -> StoreError {
    Refusal::new("bytes of the call", bytes.to_string(), format!("at most {limit} (segment_bytes)")).into()
}

/// What a log that cannot take a call means for the caller.
fn refusal(error: &LogError) -> StoreError {
    match error {
        LogError::Full { .. } => StoreError::Full(FullReason::Store { reason: error.to_string() }),
        other => StoreError::Down { reason: other.to_string() },
    }
}
