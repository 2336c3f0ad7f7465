//! The write thread: takes the open group whenever the disk is free, makes it durable, publishes and answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Done;
use crate::file::log::{LogError, LogWriter, Position, Space, Stamp};
use crate::file::state::{FileState, Group};
use crate::file::store::Shared;

/// Writes groups.
pub(crate) struct WriteThread {
    shared: Arc<Shared>,
    writer: LogWriter,
    /// The group to be opened next, with the memory of one that is over.
    spare: Group,
}

/// A group on its way to the disk.
struct Taken {
    answer: Answer,
    group: Group,
    /// It must be synced whatever the mode.
    synced: bool,
}

/// Those who wait for a group. They are told in any case: also when this thread comes to a bad end.
struct Answer(Arc<Done>);

impl Drop for Answer {
    fn drop(&mut self) {
        // Unless it was told before.
        self.0.set(Err("the store stopped before it answered; see its message, then restart".into()));
    }
}

impl WriteThread {
    pub(crate) fn new(shared: Arc<Shared>, writer: LogWriter) -> Self {
        Self { shared, writer, spare: Group::default() }
    }

    /// Serves groups until there are no more, then ends the log in order.
    pub(crate) fn run(self) {
        let shared = Arc::clone(&self.shared);
        let mut failed = catch_unwind(AssertUnwindSafe(|| self.serve())).unwrap_or_else(|_| {
            Err("the write thread of the store panicked; see its message, then restart".into())
        });
        if failed.is_ok() && shared.pipeline.has_failed() {
            failed = Err(shared.failure().into());
        }
        // Only now nothing is on its way to the disk any more.
        if let Err(cause) = failed {
            shared.go_back(&cause);
        }
    }

    fn serve(mut self) -> Result<(), Arc<str>> {
        while self.shared.pipeline.wait_for_group() {
            let mut taken = take(&self.shared, &mut self.shared.state.write(), &mut self.spare);
            while let Some(next) = taken {
                taken = self.commit(next)?;
            }
        }
        if !self.shared.pipeline.has_failed()
            && let Err(error) = self.writer.close()
        {
            tracing::warn!(%error, "log was not closed in order; the next start checks its end as after a crash");
        }
        Ok(())
    }

    /// Makes a group durable and lets its calls answer. Answers the group that was gathered meanwhile: the lock of the state
    /// is had already, and this thread may wait long for it when the cores are busy. An error means that the store must stop.
    fn commit(&mut self, Taken { answer, mut group, synced }: Taken) -> Result<Option<Taken>, Arc<str>> {
        let written = self.write(&mut group).and_then(|position| {
            if synced {
                self.writer.sync()?;
            }
            Ok(position)
        });
        match written {
            Ok(position) => {
                let next = self.publish(position, &mut group);
                answer.0.set(Ok(()));
                self.spare = group.emptied();
                Ok(next)
            }
            Err(error) => {
                let cause: Arc<str> = error.to_string().into();
                answer.0.set(Err(Arc::clone(&cause)));
                Err(cause)
            }
        }
    }

    /// Writes the group's frame; a group that changed nothing needs none.
    fn write(&mut self, group: &mut Group) -> Result<Option<Position>, LogError> {
        if group.frame.body_len() == 0 {
            return Ok(None);
        }
        let stamp = Stamp { calendar: group.now.calendar.0, steady: group.now.steady.0 };
        loop {
            // Every call was checked for space before it was applied, so its class does not matter any more.
            match self.writer.write(&mut group.frame, stamp, Space::Reserve) {
                // Nothing of the frame was taken: it waits for room, and its calls with it.
                Err(LogError::Full { .. }) if !self.shared.is_closing() => self.shared.wait_for_space(),
                result => return result.map(Some),
            }
        }
    }

    fn publish(&mut self, position: Option<Position>, group: &mut Group) -> Option<Taken> {
        let (bytes, number) = (group.frame.body_len() as u64, group.number);
        for space in [Space::Ordinary, Space::Reserve] {
            self.shared.pipeline.set_room(space, self.writer.room(space));
        }
        let next = {
            let mut state = self.shared.state.write();
            state.end = self.writer.end();
            if position.is_some() {
                state.clock_mark = self.shared.clock.mark(group.now);
            }
            state.publish(position, group);
            take(&self.shared, &mut state, &mut self.spare)
        };
        let tell = || self.shared.durable.send_modify(|durable| durable.groups = number);
        self.shared.pipeline.written(number, tell);
        self.shared.wakeups.announce_all(&group.topics);
        let since = self.shared.log_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if since >= self.shared.options.checkpoint_bytes {
            self.shared.checkpoint_due();
        }
        next
    }
}

/// Takes the open group, and has the spare one opened next. None, if there is none or a call has failed the store: its group
/// must not be written.
fn take(shared: &Shared, state: &mut FileState, spare: &mut Group) -> Option<Taken> {
    let synced = shared.pipeline.take()?;
    let group = state.take_group(std::mem::take(spare));
    Some(Taken { answer: Answer(Arc::clone(&group.done)), group, synced })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_for_a_group_is_told_also_when_nobody_answers() {
        let done = Arc::<Done>::default();
        drop(Answer(Arc::clone(&done)));
        assert!(done.wait().await.unwrap_err().contains("stopped before it answered"));
        let done = Arc::<Done>::default();
        let answer = Answer(Arc::clone(&done));
        answer.0.set(Ok(()));
        drop(answer);
        assert_eq!(done.wait().await, Ok(()), "the first word counts");
    }
}
