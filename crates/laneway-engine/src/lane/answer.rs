//! What the owner of a seat said to a request. Kept with the request's token, so that whoever filed it can look it up
//! (contract 1.7: the outcome decided there is the only one).

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It had its effect.
    Applied,
    /// There was nothing to do any more: what it is about has ended, moved on, or is as it was wanted.
    Already,
    /// It cannot be done.
    Refused(Refused),
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Later events of the lane are done: the dead letter has no place before them any more.
    SuccessorsDone,
    /// An earlier event of the lane is still a dead letter.
    EarlierDead,
    /// The lane diverts: its dead letters come back together and in order.
    WholeLane,
    /// Retention took the event: only the dead letter has a copy of it, and that has no place in the log.
    Trimmed,
    /// A newer generation of its lane was accepted (latest mode).
    Stale,
    /// Its headers leave no room for where the copy comes from.
    HeadersFull,
    /// The event runs: cancel it instead.
    Running,
    /// The claim is not the worker's any more.
    ClaimLost,
    /// What was filed cannot be read.
    Malformed,
}

impl Refused {
    const ALL: [(Self, &'static str); 9] = [
        (Self::SuccessorsDone, "successors_done"),
        (Self::EarlierDead, "earlier_dead"),
        (Self::WholeLane, "whole_lane"),
        (Self::Trimmed, "event_trimmed"),
        (Self::Stale, "stale_generation"),
        (Self::HeadersFull, "headers_full"),
        (Self::Running, "event_running"),
        (Self::ClaimLost, "claim_lost"),
        (Self::Malformed, "malformed"),
    ];

    /// The same in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::SuccessorsDone => "later events of its lane are done: a copy can be sent to the lane's end",
            Self::EarlierDead => {
                "an earlier event of its lane is still a dead letter: bring that one back first"
            }
            Self::WholeLane => "its lane diverts: all its dead letters come back together, in order",
            Self::Trimmed => {
                "its event is gone from the log by retention: a copy can be sent to the lane's end (to \"tail\")"
            }
            Self::Stale => "a newer generation of its lane was accepted since: nothing older runs after it",
            Self::HeadersFull => {
                "it has as many headers as an event may have: a copy has no room to say where it comes from"
            }
            Self::Running => "the event runs: cancel it instead",
            Self::ClaimLost => "the claim is not the worker's any more",
            Self::Malformed => "what was filed cannot be read",
        }
    }

    /// The code that callers are told.
    pub fn code(self) -> &'static str {
        Self::ALL.iter().find(|(why, _)| *why == self).map_or("", |(_, code)| code)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied => formatter.write_str("applied"),
            Self::Already => formatter.write_str("already"),
            Self::Refused(why) => write!(formatter, "refused {}", why.code()),
        }
    }
}

/// The text is none of the answers: a newer Laneway wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("answer is {0:?}, must be applied, already, or refused with a known reason")]
pub struct UnknownAnswer(String);

impl FromStr for Answer {
    type Err = UnknownAnswer;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = |code: &str| {
            let found = Refused::ALL.iter().find(|(_, known)| *known == code);
            found.map(|(why, _)| Self::Refused(*why))
        };
        match text {
            "applied" => Ok(Self::Applied),
            "already" => Ok(Self::Already),
            _ => {
                let found = text.strip_prefix("refused ").and_then(refused);
                found.ok_or_else(|| UnknownAnswer(text.chars().take(80).collect()))
            }
        }
    }
}

impl Answer {
    pub(crate) fn to_bytes(self) -> Bytes {
        Bytes::from(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_reads_back_as_written() {
        let refused = Refused::ALL.map(|(why, _)| Answer::Refused(why));
        for answer in [Answer::Applied, Answer::Already].into_iter().chain(refused) {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
        assert!("refused".parse::<Answer>().is_err() && "".parse::<Answer>().is_err());
    }
}
