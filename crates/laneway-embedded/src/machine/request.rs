//! Request: files a wish with the owner of a seat. It has an effect only through a later commit.

use laneway_core::store::{Accepted, Request};
use laneway_core::{Bytes, Passed, Result};

use super::codec::{Filed, Stored, Token, keys, load};
use super::{Now, SeatHead, State, Table, gate};

/// Numbers a wish and stores it, once per token.
pub(crate) fn request<S: State>(state: &mut S, now: Now, request: Request) -> Result<Accepted> {
    request.check()?;
    let seat = request.seat;
    gate::imported(seat.shard, gate::shard(state, seat.shard)?)?;
    let stored = gate::seat(state, seat)?;
    let token_row = keys::token(seat, request.token);
    if let Some(token) = load::<Token>(state, Table::RequestToken, &token_row)?
        && token.until.is_none_or(|until| until >= now.expiry)
    {
        return Ok(Accepted { number: token.number, repeated: true });
    }
    let number = stored.head.request_no + 1;
    let head = SeatHead { request_no: number, ..stored.head.clone() };
    let filed = Filed { token: request.token, op: request.op };
    state.put_new(Table::Request, &keys::seat_number(seat, number), &filed.to_row());
    state.put(Table::RequestToken, &token_row, &Token { number, until: None, answer: Bytes::new() }.to_row());
    state.advance_seat(seat, head, &Passed::default());
    Ok(Accepted { number, repeated: false })
}
