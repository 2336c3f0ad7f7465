//! Latest mode keeps, with a lane's state, which event was done last: it must survive a restart (contract 1.14).
//!
//! The state's bytes in the store are then those of the user with 25 bytes before them. In queue mode they are the
//! user's alone.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use laneway_core::EventId;

use crate::handler::LastDone;

const HEAD: usize = 1 + 3 * 8;
const NO_STATE: u8 = 0;
const STATE: u8 = 1;

/// Puts the last done event before the user's state.
pub(crate) fn seal(last: LastDone, state: Option<&Bytes>) -> Bytes {
    let mut sealed = BytesMut::with_capacity(HEAD + state.map_or(0, Bytes::len));
    sealed.put_u8(if state.is_some() { STATE } else { NO_STATE });
    sealed.put_u64(last.id.0);
    sealed.put_u64(last.incarnation);
    sealed.put_u64(last.generation);
    sealed.extend_from_slice(state.map_or(&[], |state| state));
    sealed.freeze()
}

/// Takes them apart; bytes that were never sealed are a state of the user's.
pub(crate) fn open(mut sealed: Bytes) -> (Option<LastDone>, Option<Bytes>) {
    if sealed.len() < HEAD || sealed[0] > STATE {
        return (None, Some(sealed));
    }
    let tag = sealed.get_u8();
    let last = LastDone {
        id: EventId(sealed.get_u64()),
        incarnation: sealed.get_u64(),
        generation: sealed.get_u64(),
    };
    (Some(last), (tag == STATE).then_some(sealed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_again() {
        let last = LastDone { id: EventId(7), incarnation: 2, generation: 9 };
        for state in [None, Some(Bytes::new()), Some(Bytes::from_static(b"state"))] {
            assert_eq!(open(seal(last, state.as_ref())), (Some(last), state));
        }
    }
}
