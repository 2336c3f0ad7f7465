//! Stretches of keys in which no row lives.
//!
//! Only a memory of what scans found: forgetting all of it costs time and nothing else.

use std::collections::BTreeMap;
use std::ops::Bound;

/// More stretches than this are not worth remembering.
const RANGES_MAX: usize = 10_000;

/// From the first key of a stretch to the first key behind it. Stretches do not overlap.
#[derive(Debug, Default)]
pub(super) struct EmptyRanges(BTreeMap<Vec<u8>, Vec<u8>>);

impl EmptyRanges {
    /// The first key behind the stretch that has this key.
    pub(super) fn end_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.around(key).map(|(_, to)| to.clone())
    }

    /// Whether this key lies in a stretch.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.around(key).is_some()
    }

    fn around(&self, key: &[u8]) -> Option<(&Vec<u8>, &Vec<u8>)> {
        let mut before = self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        before.next_back().filter(|(_, to)| &to[..] > key)
    }

    /// No row lives from `from` to before `to`.
    pub(super) fn add(&mut self, from: &[u8], to: &[u8]) {
        if self.0.len() >= RANGES_MAX {
            self.0.clear();
        }
        let from = self.around(from).map_or_else(|| from.to_vec(), |(start, _)| start.clone());
        let inside: Vec<Vec<u8>> = self
            .0
            .range(from.clone()..)
            .map(|(start, _)| start.clone())
            .take_while(|start| &start[..] <= to)
            .collect();
        let mut to = to.to_vec();
        for start in inside {
            if let Some(end) = self.0.remove(&start) {
                to = to.max(end);
            }
        }
        self.0.insert(from, to);
    }

    /// A row with this key lives.
    pub(super) fn fill(&mut self, key: &[u8]) {
        let Some((from, to)) = self.around(key).map(|(from, to)| (from.clone(), to.clone())) else { return };
        self.0.remove(&from);
        let behind = [key, &[0]].concat();
        if behind < to && self.0.len() < RANGES_MAX {
            self.0.insert(behind, to);
        }
        if &from[..] < key {
            self.0.insert(from, key.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_join_and_part() {
        let mut ranges = EmptyRanges::default();
        let end = |ranges: &EmptyRanges, key: &str| {
            ranges.end_of(key.as_bytes()).map(|end| String::from_utf8(end).unwrap())
        };
        ranges.add(b"b", b"d");
        ranges.add(b"f", b"h");
        assert_eq!([end(&ranges, "a"), end(&ranges, "d")], [None, None]);
        assert_eq!(end(&ranges, "c").as_deref(), Some("d"));
        ranges.add(b"c", b"f");
        assert_eq!(end(&ranges, "b").as_deref(), Some("h"), "they are one now");
        ranges.fill(b"e");
        assert_eq!(end(&ranges, "b").as_deref(), Some("e"));
        assert_eq!(end(&ranges, "e"), None);
        assert_eq!(end(&ranges, "e1").as_deref(), Some("h"));
        ranges.fill(b"b");
        assert_eq!(end(&ranges, "b"), None);
        assert_eq!(end(&ranges, "c").as_deref(), Some("e"));
    }
}
