//! The name of a claim: where it belongs, so that any node can pass it on, and the nonce that proves it.
//!
//! Everything in it but the nonce is public knowledge; the owner believes nothing of it and compares the nonce with the
//! claim it holds or has written. Whoever guesses the rest of a token has gained nothing.

use std::fmt;
use std::str::FromStr;

use laneway_core::{
    EventId, Key, LaneName, Nonce, Partition, ProcessorId, Refusal, Seat, Shard, StreamId, TokenId,
};

/// A claim's name, as workers carry it around.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimToken {
    /// Whose owner decides.
    pub seat: Seat,
    /// The lane that was claimed.
    pub lane: LaneName,
    /// The events that were claimed, in order; at least one.
    pub events: Vec<EventId>,
    /// Which attempt at the first event.
    pub attempt: u32,
    /// Made anew for the claim.
    pub nonce: Nonce,
}

impl ClaimToken {
    pub(crate) fn first(&self) -> EventId {
        self.events[0]
    }

    pub(crate) fn last(&self) -> EventId {
        self.events[self.events.len() - 1]
    }

    /// The request token under which this claim is settled: settling twice is settling once.
    pub(crate) fn settle_token(&self) -> TokenId {
        TokenId(self.nonce.0)
    }
}

impl fmt::Display for ClaimToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seat { shard, processor } = self.seat;
        write!(formatter, "{processor}.{}.{}.", shard.stream, shard.partition)?;
        match &self.lane {
            LaneName::Key(key) => {
                formatter.write_str("k")?;
                key.bytes().iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
            }
            LaneName::Event(id) => write!(formatter, "e{id}")?,
        }
        write!(formatter, ".{}", self.first())?;
        // By their distances: those of one lane lie close to each other.
        for pair in self.events.windows(2) {
            write!(formatter, "+{}", pair[1].0 - pair[0].0)?;
        }
        write!(formatter, ".{}.{:032x}", self.attempt, self.nonce.0)
    }
}

impl FromStr for ClaimToken {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| Refusal::new("claim", text, "a token as a claim answered it"))
    }
}

fn parse(text: &str) -> Option<ClaimToken> {
    let mut parts = text.split('.');
    let processor = ProcessorId(parts.next()?.parse().ok()?);
    let stream = StreamId(parts.next()?.parse().ok()?);
    let partition = Partition(parts.next()?.parse().ok()?);
    let lane = parts.next()?;
    let lane = match lane.strip_prefix('e') {
        Some(id) => LaneName::Event(EventId(id.parse().ok()?)),
        None => LaneName::Key(Key::new(unhex(lane.strip_prefix('k')?)?).ok()?),
    };
    let mut events: Vec<EventId> = Vec::new();
    for distance in parts.next()?.split('+') {
        let distance = distance.parse::<u64>().ok().filter(|distance| *distance > 0)?;
        events.push(EventId(events.last().map_or(0, |last| last.0).checked_add(distance)?));
    }
    let attempt = parts.next()?.parse().ok()?;
    let nonce = parts.next().filter(|nonce| nonce.len() == 32)?;
    let nonce = Nonce(u128::from_str_radix(nonce, 16).ok()?);
    let seat = Seat { shard: Shard { stream, partition }, processor };
    parts.next().is_none().then_some(ClaimToken { seat, lane, events, attempt, nonce })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lane: LaneName) {
        let shard = Shard { stream: StreamId(3), partition: Partition(11) };
        let token = ClaimToken {
            seat: Seat { shard, processor: ProcessorId(5) },
            lane,
            events: [17, 19, 24].map(EventId).to_vec(),
            attempt: 2,
            nonce: Nonce(0xabc),
        };
        assert_eq!(token.to_string().parse(), Ok(token));
    }

    #[test]
    fn every_token_reads_back_as_written() {
        check(LaneName::Event(EventId(17)));
        check(LaneName::Key(Key::new(vec![0, 46, 255]).expect("a short key")));
    }

    #[test]
    fn other_texts_are_refused_by_name() {
        for wrong in ["", "1.2.3", "1.2.3.kzz.1.1.0", "1.2.3.e1.1+0.1.00000000000000000000000000000000", "ü"]
        {
            let refusal = wrong.parse::<ClaimToken>().expect_err("no token");
            assert_eq!(refusal.field, "claim", "{wrong}");
        }
    }
}
