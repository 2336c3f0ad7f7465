//! What every call asks first: does the place exist, and may it be written. Changes nothing.

use laneway_core::store::IMPORTING;
use laneway_core::{
    Incarnation, ProcessorId, Refusal, Result, Seat, Shard, ShardInfo, StoreError, StreamId, StreamInfo,
};

use super::{SeatState, View};

/// A stream that exists.
pub(super) fn stream<S: View>(state: &S, stream: StreamId) -> Result<&StreamInfo> {
    state.stream(stream).ok_or_else(|| missing(format!("stream {stream}")))
}

/// A shard that exists.
pub(super) fn shard<S: View>(state: &S, shard: Shard) -> Result<&ShardInfo> {
    state.shard(shard).ok_or_else(|| missing(format!("shard {shard}")))
}

/// A seat of a registered processor.
pub(super) fn seat<S: View>(state: &S, seat: Seat) -> Result<&SeatState> {
    state.seat(seat).ok_or_else(|| missing(format!("seat {seat}")))
}

/// Whether the processor is registered on the stream.
pub(super) fn is_registered(stream: &StreamInfo, processor: ProcessorId) -> bool {
    stream.processors.iter().any(|registered| registered.id == processor)
}

/// The shard was written last by this life of the store.
pub(super) fn adopted<S: View>(state: &S, shard: Shard, info: &ShardInfo) -> Result<()> {
    learned(state, shard, info, state.incarnation())
}

/// The same, and the caller knows this life.
pub(super) fn learned<S: View>(
    state: &S,
    shard: Shard,
    info: &ShardInfo,
    incarnation: Incarnation,
) -> Result<()> {
    let current = state.incarnation();
    if incarnation == current && info.incarnation == current {
        return Ok(());
    }
    imported(shard, info)?;
    Err(StoreError::Adopt { shard, stored: info.incarnation.0, current })
}

/// The shard is not in the middle of an import.
pub(super) fn imported(shard: Shard, info: &ShardInfo) -> Result<(), Refusal> {
    if info.incarnation == IMPORTING {
        return Err(Refusal::new("shard", shard.to_string(), "one whose import has finished"));
    }
    Ok(())
}

/// The shard still takes events.
pub(super) fn unsealed(stream: &StreamInfo, shard: Shard, info: &ShardInfo) -> Result<()> {
    if info.sealed { Err(StoreError::Moved { shard, layout: stream.layout }) } else { Ok(()) }
}

/// The error for something that is not there.
pub(super) fn missing(what: String) -> StoreError {
    StoreError::NotFound { what }
}
