//! Latest mode keeps, with a lane's state, which event was done last: it must survive a restart (contract 1.14).
//!
//! The state's bytes in the store are then those of the user with a head before them: a byte of marks, id, incarnation
//! and generation of that event, and with `keep_last` the length of its payload and the payload. In queue mode they are
//! the user's alone.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use laneway_core::EventId;

use crate::handler::LastDone;

const HEAD: usize = 1 + 3 * 8;
/// Mark: a state of the user's follows, perhaps an empty one.
const STATE: u8 = 1;
/// Mark: the payload follows the head.
const DATA: u8 = 2;

/// Puts the last done event before the user's state.
pub(crate) fn seal(last: &LastDone, state: Option<&Bytes>) -> Bytes {
    let lengths = state.map_or(0, Bytes::len) + last.data.as_ref().map_or(0, |data| 4 + data.len());
    let mut sealed = BytesMut::with_capacity(HEAD + lengths);
    sealed.put_u8(state.map_or(0, |_| STATE) | last.data.as_ref().map_or(0, |_| DATA));
    sealed.put_u64(last.id.0);
    sealed.put_u64(last.incarnation);
    sealed.put_u64(last.generation);
    if let Some(data) = &last.data {
        sealed.put_u32(u32::try_from(data.len()).expect("payloads are bounded"));
        sealed.extend_from_slice(data);
    }
    sealed.extend_from_slice(state.map_or(&[], |state| state));
    sealed.freeze()
}

/// Takes them apart; bytes that were never sealed are a state of the user's.
pub(crate) fn open(sealed: Bytes) -> (Option<LastDone>, Option<Bytes>) {
    match open_sealed(sealed.clone()) {
        Some((last, state)) => (Some(last), state),
        None => (None, Some(sealed)),
    }
}

fn open_sealed(mut sealed: Bytes) -> Option<(LastDone, Option<Bytes>)> {
    let marks = sealed.try_get_u8().ok().filter(|marks| marks & !(STATE | DATA) == 0)?;
    let id = EventId(sealed.try_get_u64().ok()?);
    let incarnation = sealed.try_get_u64().ok()?;
    let generation = sealed.try_get_u64().ok()?;
    let mut data = None;
    if marks & DATA != 0 {
        let length = sealed.try_get_u32().ok()? as usize;
        data = Some((length <= sealed.len()).then(|| sealed.split_to(length))?);
    }
    let last = LastDone { id, incarnation, generation, data };
    Some((last, (marks & STATE != 0).then_some(sealed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_again() {
        for data in [None, Some(Bytes::new()), Some(Bytes::from_static(b"payload"))] {
            let last = LastDone { id: EventId(7), incarnation: 2, generation: 9, data };
            for state in [None, Some(Bytes::new()), Some(Bytes::from_static(b"state"))] {
                assert_eq!(open(seal(&last, state.as_ref())), (Some(last.clone()), state));
            }
        }
    }

    #[test]
    fn what_was_never_sealed_is_a_state() {
        let last =
            LastDone { id: EventId(7), incarnation: 2, generation: 9, data: Some(Bytes::from_static(b"ab")) };
        let cut = seal(&last, None);
        for state in [&b""[..], b"state", b"{\"a\":1}", &cut[..cut.len() - 1]] {
            let state = Bytes::copy_from_slice(state);
            assert_eq!(open(state.clone()), (None, Some(state)));
        }
    }
}
