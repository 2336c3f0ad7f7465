//! Seats in bytes: the head, which every commit writes, the ids it passed, and the whole window.

use bytes::Bytes;
use laneway_core::limits::NUMBER_MAX;
use laneway_core::store::SeatStatus;
use laneway_core::{CommitId, EventId, Fence, Nonce, Passed, Term, Window};

use super::{Decoder, Encoder, Malformed, Stored};
use crate::machine::{SeatHead, SeatState};

const WAS_CLEAN: u8 = 1;
const CLEAN: u8 = 1 << 1;
const LAST_COMMIT: u8 = 1 << 2;
const PAUSED: u8 = 1 << 3;
const HALTED: u8 = 1 << 4;
/// Its note comes last. Without one the bytes are those of before there were any.
const NOTE: u8 = 1 << 5;

impl Stored for SeatHead {
    const NAME: &'static str = "seat";

    fn encode(&self, out: &mut Vec<u8>) {
        let mut flags = 0;
        let mut set = |present: bool, flag: u8| flags |= if present { flag } else { 0 };
        set(self.was_clean, WAS_CLEAN);
        set(self.clean, CLEAN);
        set(self.last_commit.is_some(), LAST_COMMIT);
        set(self.status == SeatStatus::Paused, PAUSED);
        set(self.status == SeatStatus::Halted, HALTED);
        set(!self.note.is_empty(), NOTE);
        out.u8(flags);
        out.varint(self.fence.term.0);
        out.u128(self.fence.nonce.0);
        out.varint(self.fence.version);
        out.varint(u64::from(self.fence.adoptions));
        out.bytes(&self.node);
        if let Some(commit) = self.last_commit {
            out.u128(commit.0);
        }
        out.varint(self.request_no);
        out.varint(self.requests_applied);
        out.varint(self.emitted);
        out.varint(self.forwarded);
        out.varint(u64::from(self.incarnation));
        out.varint(u64::from(self.states_life));
        if !self.note.is_empty() {
            out.bytes(&self.note);
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let flags = from.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let status = match (has(PAUSED), has(HALTED)) {
            (false, false) => SeatStatus::Run,
            (true, false) => SeatStatus::Paused,
            (false, true) => SeatStatus::Halted,
            (true, true) => return Err(Malformed),
        };
        let fence = Fence {
            term: Term(from.varint()?),
            nonce: Nonce(from.u128()?),
            version: from.varint()?,
            adoptions: from.small()?,
        };
        Ok(Self {
            fence,
            node: from.bytes()?,
            was_clean: has(WAS_CLEAN),
            clean: has(CLEAN),
            last_commit: if has(LAST_COMMIT) { Some(CommitId(from.u128()?)) } else { None },
            request_no: from.varint()?,
            requests_applied: from.varint()?,
            emitted: from.varint()?,
            forwarded: from.varint()?,
            status,
            incarnation: from.small()?,
            states_life: from.small()?,
            note: if has(NOTE) { from.bytes()? } else { Bytes::new() },
        })
    }
}

impl Stored for Passed {
    const NAME: &'static str = "passed ids";

    fn encode(&self, out: &mut Vec<u8>) {
        encode_words(self.words().iter().copied(), out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let mut passed = Self::default();
        for _ in 0..from.len()? {
            let (word, bits) = (from.varint()?, from.u64()?);
            if word > NUMBER_MAX / 64 || passed.words().last().is_some_and(|(last, _)| *last >= word) {
                return Err(Malformed);
            }
            passed.insert_word(word, bits);
        }
        Ok(passed)
    }
}

impl Stored for Window {
    const NAME: &'static str = "window";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(self.floor().0);
        encode_words(self.words(), out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let floor = from.id()?;
        let passed = Passed::decode(from)?;
        if floor.0 > NUMBER_MAX {
            return Err(Malformed);
        }
        // The floor stopped at an id that is not passed, so it cannot rise again here.
        let mut window = Self::at(EventId(floor.0));
        window.pass(&passed, &[]);
        Ok(window)
    }
}

fn encode_words(words: impl ExactSizeIterator<Item = (u64, u64)>, out: &mut Vec<u8>) {
    out.varint(words.len() as u64);
    for (word, bits) in words {
        out.varint(word);
        out.u64(bits);
    }
}

impl Stored for SeatState {
    const NAME: &'static str = "seat with its window";

    fn encode(&self, out: &mut Vec<u8>) {
        self.head.encode(out);
        self.window.encode(out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self { head: SeatHead::decode(from)?, window: Window::decode(from)? })
    }
}
