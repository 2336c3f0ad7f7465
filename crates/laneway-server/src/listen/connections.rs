//! All connections: how many there may be, and which of them are closed.
//!
//! Invariant: no more than `count_max` connections are kept. One more takes the place of the one that has kept us waiting
//! longest; one that waits for us is never closed for another. So whoever opens connections and does not use them pushes
//! out only his own kind: a caller that sends its requests as a whole always finds a place.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::line::{Line, Phase, steady_ms};
use crate::seam;

/// How many connections there may be, and how long each may keep us waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Most connections at a time.
    pub(crate) count_max: usize,
    /// Longest time for a handshake and the head of a request.
    pub(crate) head: Duration,
    /// Longest time between two pieces of a body.
    pub(crate) body: Duration,
    /// Longest time between an answer and the next request.
    pub(crate) idle: Duration,
}

/// Longest time in which a caller takes nothing of its answer. A follower is let go before, with a reason it may still read.
const UNREAD_MAX: Duration = Duration::from_secs(60);
/// How often connections are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// All connections there are. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    patience: Patience,
    lines: Arc<Mutex<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    next: u64,
    open: HashMap<u64, Arc<Line>>,
}

/// A place among the connections, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    pub(super) line: Arc<Line>,
    connections: Connections,
}

impl Connections {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, lines: Arc::default() }
    }

    pub(super) fn patience(&self) -> Patience {
        self.patience
    }

    /// A place for one more; nothing if all places are taken by callers who wait for us.
    pub(super) fn enter(&self) -> Option<Place> {
        let mut lines = self.lines.lock();
        if lines.open.len() >= self.patience.count_max {
            let waiting = lines.open.iter().filter(|(_, line)| !line.is_ours());
            let (_, longest) = waiting.map(|(number, line)| (line.look().1, *number)).min()?;
            // It leaves its place at once; its task ends soon.
            if let Some(line) = lines.open.remove(&longest) {
                line.cut();
            }
        }
        let number = lines.next;
        lines.next += 1;
        let line = Arc::new(Line::new());
        lines.open.insert(number, Arc::clone(&line));
        drop(lines);
        Some(Place { number, line, connections: self.clone() })
    }

    /// Closes connections that keep us waiting too long, until it is dropped.
    pub(super) async fn watch(&self) {
        loop {
            seam::pass(LOOK_EVERY).await;
            self.cut_late(steady_ms());
        }
    }

    fn cut_late(&self, now: u64) {
        let late = |line: &Line| {
            let unread = line.unread_since().map(|since| now.saturating_sub(since));
            if unread.is_some_and(|unread| Duration::from_millis(unread) > UNREAD_MAX) {
                return true;
            }
            let (phase, since) = line.look();
            let waited = Duration::from_millis(now.saturating_sub(since));
            match phase {
                Phase::Head => waited > self.patience.head,
                Phase::Idle => waited > self.patience.idle,
                // Whoever reads the body tells the caller that it is late.
                Phase::Body | Phase::Working | Phase::Answering => false,
            }
        };
        self.lines.lock().open.values().filter(|line| late(line)).for_each(|line| line.cut());
    }

    /// Closes all that have not sent a whole request. An idle one ends by itself, once its last answer is sent.
    pub(super) fn cut_unheard(&self) {
        let unheard = |line: &Line| matches!(line.phase(), Phase::Head | Phase::Body);
        self.lines.lock().open.values().filter(|line| unheard(line)).for_each(|line| line.cut());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lines.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(count_max: usize) -> Connections {
        let second = Duration::from_secs(1);
        Connections::new(Patience { count_max, head: second, body: second, idle: 2 * second })
    }

    async fn is_cut(place: &Place) -> bool {
        futures::future::FutureExt::now_or_never(place.line.is_cut()).is_some()
    }

    #[tokio::test]
    async fn one_too_many_takes_the_place_of_who_keeps_us_waiting_and_never_of_who_waits() {
        let connections = connections(2);
        let working = connections.enter().unwrap();
        working.line.enter(Phase::Working);
        let waiting = connections.enter().unwrap();
        let third = connections.enter().unwrap();
        assert!(is_cut(&waiting).await && !is_cut(&working).await);
        third.line.enter(Phase::Working);
        assert!(connections.enter().is_none(), "both wait for us");
        drop(working);
        assert!(connections.enter().is_some());
    }

    #[tokio::test]
    async fn who_takes_nothing_of_its_answer_is_closed() {
        let connections = connections(9);
        let place = connections.enter().unwrap();
        place.line.enter(Phase::Answering);
        let at = |later: u64| connections.cut_late(steady_ms() + later);
        place.line.unread();
        at(59_000);
        assert!(!is_cut(&place).await);
        place.line.told();
        at(70_000);
        assert!(!is_cut(&place).await, "it took something");
        place.line.unread();
        at(70_000);
        assert!(is_cut(&place).await);
    }

    #[tokio::test]
    async fn each_phase_has_its_own_time() {
        let connections = connections(9);
        let places = [Phase::Head, Phase::Idle, Phase::Body, Phase::Working, Phase::Answering].map(|phase| {
            let place = connections.enter().unwrap();
            place.line.enter(phase);
            place
        });
        let now = steady_ms();
        let cut_at = async |later: u64| {
            connections.cut_late(now + later);
            let mut cut = Vec::new();
            for place in &places {
                cut.push(is_cut(place).await);
            }
            cut
        };
        assert_eq!(cut_at(500).await, [false; 5]);
        assert_eq!(cut_at(1_900).await, [true, false, false, false, false]);
        assert_eq!(cut_at(2_900).await, [true, true, false, false, false]);
        // A body that comes while its answer goes, as lines do, is no reason to close.
        places[4].line.enter_with_body(Phase::Body);
        connections.cut_unheard();
        assert!(is_cut(&places[2]).await && !is_cut(&places[3]).await && !is_cut(&places[4]).await);
    }
}
