//! Counts of what must happen sometimes: a run in which nobody was ever fenced shows nothing about fences.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// How often each interesting thing happened.
#[derive(Debug, Default)]
pub struct Sometimes {
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Sometimes {
    /// It happened once more.
    pub fn hit(&self, what: &'static str) {
        *self.counts.lock().entry(what).or_default() += 1;
    }

    /// How often it happened.
    pub fn count(&self, what: &str) -> u64 {
        self.counts.lock().get(what).copied().unwrap_or(0)
    }

    /// Those that never happened.
    pub fn missing<'a>(&self, expected: &[&'a str]) -> Vec<&'a str> {
        expected.iter().copied().filter(|what| self.count(what) == 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Sometimes;

    #[test]
    fn what_never_happened_is_missing() {
        let sometimes = Sometimes::default();
        sometimes.hit("fenced");
        assert_eq!(sometimes.missing(&["fenced", "repeated"]), ["repeated"]);
    }
}
