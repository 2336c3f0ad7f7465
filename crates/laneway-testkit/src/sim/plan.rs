//! What the handler is to do with an event, written into its data: a handler needs no other source of chance, and
//! whoever reads the data knows what must have come of it.

use std::fmt;

/// How a handler treats one event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Tells the event from all others.
    pub(crate) name: String,
    /// Attempts that fail.
    pub(crate) fails: u32,
    /// How they fail.
    pub(crate) way: Way,
    /// How long each attempt takes.
    pub(crate) take_ms: u64,
    /// Events sent when it is done.
    pub(crate) emits: u32,
    /// Whether the lane's state changes when it is done.
    pub(crate) state: bool,
    /// Bytes of the result.
    pub(crate) result: usize,
}

/// The ways to fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// An error that may pass.
    #[default]
    Error,
    /// An error that says when to come again.
    Later,
    /// An error that will not pass.
    Broken,
    /// A panic.
    Panic,
    /// No answer until the time is up.
    Hang,
    /// The end of the whole process.
    Kill,
}

impl Way {
    const ALL: [(Self, char); 6] = [
        (Self::Error, 'e'),
        (Self::Later, 'l'),
        (Self::Broken, 'b'),
        (Self::Panic, 'p'),
        (Self::Hang, 'h'),
        (Self::Kill, 'k'),
    ];
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = Way::ALL.iter().find(|(way, _)| *way == self.way).map_or('e', |(_, letter)| *letter);
        let Self { name, fails, take_ms, emits, result, .. } = self;
        write!(f, "{name} {fails}{way} {take_ms} {emits} {} {result}", u8::from(self.state))
    }
}

impl Plan {
    /// The plan in an event's data; plain work where there is none.
    pub(crate) fn of(data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data);
        Self::parse(&text).unwrap_or_else(|| Self { name: text.into_owned(), ..Self::default() })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let name = parts.next()?.to_owned();
        let fails = parts.next()?;
        let letter = fails.chars().last()?;
        let way = Way::ALL.iter().find(|(_, found)| *found == letter)?.0;
        let plan = Self {
            name,
            fails: fails[..fails.len() - 1].parse().ok()?,
            way,
            take_ms: parts.next()?.parse().ok()?,
            emits: parts.next()?.parse().ok()?,
            state: parts.next()? == "1",
            result: parts.next()?.parse().ok()?,
        };
        Some(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::{Plan, Way};

    #[test]
    fn plan_reads_back_as_it_was_written() {
        let plan = Plan {
            name: "n7".into(),
            fails: 2,
            way: Way::Panic,
            take_ms: 30,
            emits: 1,
            state: true,
            result: 9,
        };
        assert_eq!(Plan::of(plan.to_string().as_bytes()), plan);
        assert_eq!(Plan::of(b"tick").name, "tick");
    }
}
