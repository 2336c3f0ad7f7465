//! What became of an event, as it is answered.

use laneway::Partition;
use laneway::core::StoreError;
use laneway::core::store::Receipt;
use laneway::engine::log::Sent;
use laneway_client::wire::{self, AppendedAs};

use super::error::Failure;
use super::wire as convert;

/// What became of one event of a call.
pub(super) fn receipt(stream: &str, sent: Sent) -> wire::EventReceipt {
    let mut told = wire::EventReceipt { partition: Some(sent.partition.0), ..empty(AppendedAs::New) };
    match sent.receipt {
        Ok(receipt) => place(&mut told, stream, sent.partition, &receipt),
        Err(error) => {
            let conflict = matches!(*error, StoreError::Conflict(_));
            told.append = if conflict { AppendedAs::Conflict } else { AppendedAs::Refused };
            told.problem = Some(Failure::from(&*error).problem());
        }
    }
    told
}

/// Where the event is, or was at its first append.
fn place(told: &mut wire::EventReceipt, stream: &str, partition: Partition, receipt: &Receipt) {
    match receipt {
        Receipt::New { id, prev, seq, .. } => {
            told.reference = Some(convert::reference(stream, partition, *id));
            told.id = Some(id.0);
            told.prev = prev.map(|prev| prev.0);
            told.seq = seq.map(|seq| seq.0);
        }
        Receipt::Duplicate { first } => {
            if let Some(first) = first {
                place(told, stream, partition, first);
            }
            told.append = AppendedAs::Duplicate;
        }
        Receipt::Stale { generation, .. } => {
            told.append = AppendedAs::Stale;
            told.newest_generation = Some(*generation);
        }
        Receipt::Scheduled { ticket, due_at, .. } => {
            told.append = AppendedAs::Scheduled;
            told.timer = Some(*ticket);
            told.due_at = Some(convert::date_of(*due_at));
        }
    }
}

/// An event that could not be appended, whatever the stream has.
pub(super) fn refused(failure: &Failure) -> wire::EventReceipt {
    wire::EventReceipt { problem: Some(failure.problem()), ..empty(AppendedAs::Refused) }
}

fn empty(append: AppendedAs) -> wire::EventReceipt {
    wire::EventReceipt {
        append,
        reference: None,
        partition: None,
        id: None,
        prev: None,
        seq: None,
        timer: None,
        due_at: None,
        newest_generation: None,
        problem: None,
    }
}
