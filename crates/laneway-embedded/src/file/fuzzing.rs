//! The door for fuzzing: lets the fuzz targets reach the decoders of stored records. Not part of the interface.

use laneway_core::store::{DeadLetter, Ending, Receipt};
use laneway_core::{Bytes, Draft, LaneName, LaneRecord, Passed, ShardInfo, StreamInfo, Window};

use super::state::{Record, RecordReader};
use crate::machine::codec::{
    Chunk, Filed, Numbered, Outgoing, Remembered, ScheduledJob, Seen, Stored, Token, Value, Waiting,
};
use crate::machine::{SeatHead, SeatState, StoredEnd};

/// Most places at which rows are looked for.
const ROWS_MAX: usize = 16;

/// Lets every decoder read these bytes; answers how many of them could. What could be read must survive being
/// written and read again.
pub fn decode_any_record(bytes: &[u8]) -> usize {
    let bytes = Bytes::copy_from_slice(bytes);
    let mut reader = RecordReader::new(bytes.clone());
    let mut accepted = 0;
    while let Ok(Some((_, record))) = reader.next() {
        accepted += 1;
        if let Record::Events(section) = record {
            accepted += section.clone().marks().map_while(Result::ok).count();
            accepted += section.events().map_while(Result::ok).count();
        }
    }
    // A row begins with its version, 1, wherever in a frame it lies.
    let starts = (0..bytes.len()).filter(|at| bytes[*at] == 1).take(ROWS_MAX);
    accepted + starts.map(|at| rows(&bytes.slice(at..))).sum::<usize>()
}

fn row<T: Stored>(bytes: &Bytes) -> usize {
    let Ok(value) = T::from_row(bytes.clone()) else { return 0 };
    let again = T::from_row(Bytes::from(value.to_row()));
    assert!(again.is_ok(), "{} is not read back after it was written again", T::NAME);
    1
}

fn rows(bytes: &Bytes) -> usize {
    let values = row::<Numbered>(bytes) + row::<Value>(bytes) + row::<Seen>(bytes) + row::<Chunk>(bytes);
    let drafts = row::<Draft>(bytes) + row::<Waiting>(bytes) + row::<Outgoing>(bytes) + row::<Receipt>(bytes);
    let jobs = row::<Remembered>(bytes) + row::<StoredEnd>(bytes) + row::<ScheduledJob>(bytes);
    let seats =
        row::<SeatHead>(bytes) + row::<Passed>(bytes) + row::<Window>(bytes) + row::<SeatState>(bytes);
    let lanes = row::<LaneName>(bytes) + row::<LaneRecord>(bytes) + row::<Token>(bytes) + row::<Filed>(bytes);
    let rest =
        row::<StreamInfo>(bytes) + row::<ShardInfo>(bytes) + row::<Ending>(bytes) + row::<DeadLetter>(bytes);
    values + drafts + jobs + seats + lanes + rest
}
