//! A line per start and end of a run. An end is told when it is durable, together with what becomes of the event.
//!
//! The task that is told so and the next start of the lane race each other for the terminal, so whichever comes first
//! writes the line of the end: in a lane a start never stands before the end before it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use laneway::core::store::{LaneSelect, Lanes};
use laneway::core::{Block, Due, Event, LaneName, Seat};
use laneway::engine::Engine;
use laneway::engine::handler::{Handler, Run, Running, WhenDurable};
use laneway::{Partition, Ref};
use parking_lot::Mutex;

use crate::seam;
use crate::terminal::{Terminal, Tone, plain, say};

/// Letters of a line of an error that are shown.
const LINE_CHARS_MAX: usize = 200;

/// A handler, and a line for each of its runs.
pub(crate) struct RunLines {
    inner: Arc<dyn Handler>,
    lines: Arc<Lines>,
}

struct Lines {
    engine: Engine,
    terminal: Terminal,
    /// Ends that nobody has told yet, by lane.
    untold: Mutex<HashMap<(Partition, LaneName), End>>,
}

/// How a run ended.
struct End {
    named: Named,
    error: Option<String>,
    took: Duration,
}

/// One run of one event, as the lines name it.
#[derive(Clone)]
struct Named {
    stream: Arc<str>,
    processor: Arc<str>,
    partition: Partition,
    event: Event,
    attempt: u32,
}

impl RunLines {
    pub(crate) fn around(inner: Arc<dyn Handler>, engine: Engine, terminal: Terminal) -> Self {
        Self { inner, lines: Arc::new(Lines { engine, terminal, untold: Mutex::default() }) }
    }
}

impl Handler for RunLines {
    fn grace(&self) -> Duration {
        self.inner.grace()
    }

    fn call(&self, run: Run) -> Running {
        let named: Vec<Named> = run
            .lanes
            .iter()
            .map(|lane| Named {
                stream: Arc::clone(&run.stream),
                processor: Arc::clone(&run.processor),
                partition: run.partition,
                event: lane.events[0].clone(),
                attempt: lane.attempt,
            })
            .collect();
        named.iter().for_each(|named| self.lines.start(named));
        let (lines, begun, running) = (Arc::clone(&self.lines), seam::steady(), self.inner.call(run));
        Box::pin(async move {
            let mut answers = running.await;
            let took = seam::steady().since(begun);
            for (named, answer) in named.into_iter().zip(&mut answers) {
                let (when_durable, durable) = WhenDurable::new();
                answer.when_durable = when_durable;
                let lane = named.lane();
                let error = answer.failure.as_ref().map(|failure| failure.error.clone());
                lines.untold.lock().insert(lane.clone(), End { named, error, took });
                let lines = Arc::clone(&lines);
                seam::spawn(async move {
                    let is_durable = durable.await.is_ok();
                    if let Some(failed) = lines.durable(&lane, is_durable) {
                        lines.end(&failed).await;
                    }
                });
            }
            answers
        })
    }
}

impl Named {
    fn lane(&self) -> (Partition, LaneName) {
        (self.partition, self.event.key.clone().map_or(LaneName::Event(self.event.id), LaneName::Key))
    }
}

impl Lines {
    fn start(&self, named: &Named) {
        let before = self.untold.lock().remove(&named.lane());
        if let Some(before) = before {
            self.line(&before.named, &self.ended(&before, None));
        }
        let attempt = if named.attempt > 1 { format!("  attempt {}", named.attempt) } else { String::new() };
        self.line(named, &format!("{}{attempt}", self.terminal.toned(Tone::Faint, "start")));
    }

    /// Tells an end that is durable, unless the next start has done so. What became of a failure has to be looked up first.
    ///
    /// The line is written under the lock, or the next start, which finds nothing left to tell, could come before it.
    fn durable(&self, lane: &(Partition, LaneName), is_durable: bool) -> Option<End> {
        let mut untold = self.untold.lock();
        // Lost with its seat: it runs again and has other lines then.
        let end = untold.remove(lane).filter(|_| is_durable)?;
        if end.error.is_some() {
            return Some(end);
        }
        self.line(&end.named, &self.ended(&end, None));
        None
    }

    async fn end(&self, end: &End) {
        let block = if end.error.is_some() { self.block_of(&end.named).await } else { None };
        self.line(&end.named, &self.ended(end, block));
    }

    fn ended(&self, end: &End, block: Option<Block>) -> String {
        let Some(error) = end.error.as_deref().map(brief) else {
            return format!("{}  {} ms", self.terminal.toned(Tone::Good, "done"), end.took.as_millis());
        };
        match block {
            Some(Block::Retry { due, .. }) => {
                let wait = match due {
                    Due::Steady(at) => at.since(seam::steady()),
                    Due::Calendar(at) => Duration::from_micros(at.0.saturating_sub(seam::now().0)),
                };
                format!("{} {} ms: {error}", self.terminal.toned(Tone::Odd, "retry in"), wait.as_millis())
            }
            Some(Block::Parked { .. }) => format!("{} {error}", self.terminal.toned(Tone::Bad, "parked:")),
            _ => format!("{} {error}", self.terminal.toned(Tone::Odd, "failed:")),
        }
    }

    /// What holds the lane up now. Nothing if the store cannot say: the line is for people, and says less then.
    async fn block_of(&self, named: &Named) -> Option<Block> {
        let (info, processor) = self.engine.catalogue().processor(&named.processor).await.ok()?;
        let seat = Seat { shard: info.shard(named.partition), processor };
        let select = LaneSelect::Names(vec![named.lane().1]);
        let lanes =
            self.engine.stores().store.lanes(Lanes { seat, select, siding: 0, states: false }).await.ok()?;
        lanes.into_iter().next()?.record.block
    }

    fn line(&self, named: &Named, what: &str) {
        let reference =
            Ref { stream: named.stream.to_string(), partition: named.partition, id: named.event.id };
        let key = named
            .event
            .key
            .as_ref()
            .map_or_else(|| "-".to_owned(), |key| plain(&String::from_utf8_lossy(key.bytes())));
        let seq = named.event.seq.map(|seq| format!(" #{seq}")).unwrap_or_default();
        let time = self.terminal.toned(Tone::Faint, time_of_day());
        say(format_args!("{time}  {reference}  {key}{seq}  {what}"));
    }
}

/// An error in one short line: of a long one its first and last line, since all of it went to stderr.
fn brief(error: &str) -> String {
    let shortened = |line: &str| {
        let end = line.char_indices().nth(LINE_CHARS_MAX).map_or(line.len(), |(at, _)| at);
        format!("{}{}", plain(&line[..end]), if end < line.len() { "…" } else { "" })
    };
    let mut lines = error.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().map(shortened).unwrap_or_default();
    match lines.next_back() {
        None => first,
        Some(last) => format!("{first} … {}", shortened(last.trim())),
    }
}

/// The time on the wall, to the millisecond.
fn time_of_day() -> String {
    let micros = i64::try_from(seam::now().0).unwrap_or(i64::MAX);
    let now = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    now.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S%.3f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_becomes_one_short_line() {
        assert_eq!(brief("exit 65: poison!"), "exit 65: poison!");
        let traceback = "exit 1: Traceback (most recent call last):\n  File \"h.py\"\nKeyError: 'k'\n";
        assert_eq!(brief(traceback), "exit 1: Traceback (most recent call last): … KeyError: 'k'");
        assert_eq!(brief(&"ä".repeat(300)), format!("{}…", "ä".repeat(200)));
        assert_eq!(brief("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
    }
}
