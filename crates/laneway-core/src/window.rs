//! The window of a seat: which ids are passed (contract 1.9).
//!
//! Every id up to `floor` is passed; above it a bitmap says which are. The floor is never sent by anybody: it
//! follows from the bits, so a mistaken owner cannot move it past an event that has not ended.

use std::collections::VecDeque;

use crate::adoption::Gap;
use crate::ids::EventId;
use crate::limits::WINDOW_IDS;

/// Ids to mark as passed: words of 64 ids each, `word n` holding ids `64n .. 64n+63`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    words: Vec<(u64, u64)>,
}

impl Passed {
    /// Marks one id. Ids that come nearly in order cost nothing to find their word.
    pub fn insert(&mut self, id: EventId) {
        let (word, bit) = (id.0 / 64, 1u64 << (id.0 % 64));
        if let Some(last) = self.words.last_mut()
            && last.0 == word
        {
            last.1 |= bit;
            return;
        }
        match self.words.binary_search_by_key(&word, |(found, _)| *found) {
            Ok(at) => self.words[at].1 |= bit,
            Err(at) => self.words.insert(at, (word, bit)),
        }
    }

    /// Marks with a whole word, as read back from a store.
    pub fn insert_word(&mut self, word: u64, bits: u64) {
        match self.words.binary_search_by_key(&word, |(found, _)| *found) {
            Ok(at) => self.words[at].1 |= bits,
            Err(at) => self.words.insert(at, (word, bits)),
        }
    }

    /// The words, ascending.
    pub fn words(&self) -> &[(u64, u64)] {
        &self.words
    }

    /// Whether nothing is marked.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether this id is marked.
    pub fn contains(&self, id: EventId) -> bool {
        let found = self.words.binary_search_by_key(&(id.0 / 64), |(word, _)| *word);
        found.is_ok_and(|at| self.words[at].1 >> (id.0 % 64) & 1 == 1)
    }

    /// The ids, ascending.
    pub fn ids(&self) -> impl Iterator<Item = EventId> {
        self.words.iter().flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| EventId(word * 64 + bit))
        })
    }

    /// The highest id.
    pub fn last(&self) -> Option<EventId> {
        self.words.last().map(|(word, bits)| EventId(word * 64 + 63 - u64::from(bits.leading_zeros())))
    }
}

impl FromIterator<EventId> for Passed {
    fn from_iter<I: IntoIterator<Item = EventId>>(ids: I) -> Self {
        let mut passed = Self::default();
        ids.into_iter().for_each(|id| passed.insert(id));
        passed
    }
}

/// Which ids of a shard a seat has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    floor: EventId,
    /// Words that have a bit, ascending by number, none below `floor / 64`: a jump of ids takes no room. Bits at or below
    /// the floor are not kept up.
    words: VecDeque<(u64, u64)>,
}

impl Window {
    /// A window in which everything up to `floor` is passed, and nothing above.
    pub fn at(floor: EventId) -> Self {
        Self { floor, words: VecDeque::new() }
    }

    /// Every id up to this is passed.
    pub fn floor(&self) -> EventId {
        self.floor
    }

    /// The highest id that may be marked now.
    pub fn ceiling(&self) -> EventId {
        EventId(self.floor.0 + WINDOW_IDS)
    }

    /// Whether this id is passed.
    pub fn contains(&self, id: EventId) -> bool {
        id <= self.floor || self.word(id.0 / 64) >> (id.0 % 64) & 1 == 1
    }

    /// Marks ids and lets the floor rise over every passed id and every gap (ids that were never given).
    /// Bits at or below the floor are ignored. The caller has checked the ceiling.
    pub fn pass(&mut self, passed: &Passed, gaps: &[Gap]) {
        let first = self.floor.0 / 64;
        for (word, bits) in passed.words().iter().filter(|(word, bits)| *word >= first && *bits != 0) {
            match self.find(*word) {
                Ok(at) => self.words[at].1 |= bits,
                Err(at) => self.words.insert(at, (*word, *bits)),
            }
        }
        self.rise(gaps);
    }

    fn rise(&mut self, gaps: &[Gap]) {
        let mut floor = self.floor.0;
        loop {
            let next = floor + 1;
            if let Some(gap) = gaps.iter().find(|(from, to)| (from.0..=to.0).contains(&next)) {
                floor = gap.1.0;
                continue;
            }
            // Whole runs of ones at a time: a full word is one step.
            let open = !(self.word(next / 64) >> (next % 64));
            let run = u64::from(open.trailing_zeros()).min(64 - next % 64);
            if run == 0 {
                break;
            }
            let stop =
                gaps.iter().map(|(from, _)| from.0).filter(|from| *from > next).min().unwrap_or(u64::MAX);
            floor = (floor + run).min(stop - 1);
        }
        while self.words.front().is_some_and(|(word, _)| *word < floor / 64) {
            self.words.pop_front();
        }
        self.floor = EventId(floor);
    }

    /// The words above the floor that have a bit, as `(word, bits)`.
    pub fn words(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.words.iter().copied()
    }

    fn word(&self, word: u64) -> u64 {
        self.find(word).map_or(0, |at| self.words[at].1)
    }

    /// Where a word is, or would be. Mostly words follow each other without a hole, and then its place is known.
    fn find(&self, word: u64) -> Result<usize, usize> {
        let first = self.words.front().map_or(0, |(first, _)| *first);
        let guess = word.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        match guess {
            Some(at) if self.words.get(at).is_some_and(|(found, _)| *found == word) => Ok(at),
            _ => self.words.binary_search_by_key(&word, |(found, _)| *found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(floor: u64, pass: &[u64], gaps: &[(u64, u64)], expected: u64) -> Window {
        let gaps: Vec<_> = gaps.iter().map(|(from, to)| (EventId(*from), EventId(*to))).collect();
        let mut window = Window::at(EventId(floor));
        for id in pass {
            window.pass(&Passed::from_iter([EventId(*id)]), &gaps);
        }
        assert_eq!(window.floor(), EventId(expected), "floor {floor}, passed {pass:?}, gaps {gaps:?}");
        window
    }

    #[test]
    fn the_floor_rises_over_what_is_passed_and_stops_at_the_first_hole() {
        check(0, &[2, 3], &[], 0);
        check(0, &[2, 3, 1], &[], 3);
        check(61, &[62, 63, 64, 66, 67], &[], 64);
        check(0, &(1..=200).collect::<Vec<_>>(), &[], 200);
        check(0, &(1..=200).rev().collect::<Vec<_>>(), &[], 200);
    }

    #[test]
    fn the_floor_rises_over_ids_that_were_never_given() {
        check(0, &[1, 2], &[(3, 1_000_000)], 1_000_000);
        check(0, &[1_000_001, 2, 1], &[(3, 1_000_000)], 1_000_001);
        check(5, &[7, 6], &[(6, 6)], 7);
        // A jump by the clock takes no room.
        let far = 1 << 47;
        let window = check(0, &[2, far + 1, far + 2], &[(4, far)], 0);
        assert_eq!(window.words().count(), 2);
        check(0, &[2, far + 1, far + 2, 3, 1], &[(4, far)], far + 2);
    }

    #[test]
    fn ids_above_the_floor_are_found_one_by_one() {
        let window = check(10, &[12, 80, 200], &[], 10);
        let found: Vec<u64> = (0..300).filter(|id| window.contains(EventId(*id))).collect();
        assert_eq!(found, (0..=10).chain([12, 80, 200]).collect::<Vec<_>>());
    }

    #[test]
    fn words_read_back_give_the_same_window() {
        let mut window = Window::at(EventId(70));
        window.pass(&[72, 73, 140, 4000].map(EventId).into_iter().collect(), &[]);
        let mut copy = Window::at(window.floor());
        let mut passed = Passed::default();
        window.words().for_each(|(word, bits)| passed.insert_word(word, bits));
        copy.pass(&passed, &[]);
        assert_eq!(copy.words().collect::<Vec<_>>(), window.words().collect::<Vec<_>>());
    }
}
