//! What became of something that was sent.

use std::sync::Arc;

use laneway_core::store::Receipt as StoreReceipt;
use laneway_core::{Durability, EventId, Ref, Seq, Timestamp};
use laneway_engine::log::Sent;

use super::send_error::SendError;

/// What became of one event.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::{Append, Durability};
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let payments = app.stream::<Payment>("payments");
/// let payment = Payment { account: "a1".to_owned(), cents: 5 };
/// let first = payments.send(&payment).await?;
/// let second = payments.send(&payment).await?;
/// assert_eq!((second.prev, second.seq.map(|seq| seq.0)), (first.id, Some(2)));
/// assert_eq!((second.append, second.durability), (Append::New, Durability::Memory));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// What became of it.
    pub append: Append,
    /// Its one name; nothing while it is not in its lane.
    pub reference: Option<Ref>,
    /// Its position in its partition.
    pub id: Option<EventId>,
    /// The event before it in its lane.
    pub prev: Option<EventId>,
    /// Its number in its lane.
    pub seq: Option<Seq>,
    /// How safe it is.
    pub durability: Durability,
    /// The version of the lane's object, if it was written along.
    pub object_version: Option<u64>,
}

/// What became of an append.
///
/// ```
/// use laneway::Append;
/// use laneway::prelude::*;
///
/// #[derive(Record, Serialize, Deserialize)]
/// #[record(key = "name", generation = "revision")]
/// struct Pod {
///     name: String,
///     revision: u64,
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let app = Laneway::open("memory:").await?;
/// let pods = app.stream::<Pod>("pods").mode(Mode::Latest);
/// for revision in [7, 6] {
///     match pods.send(&Pod { name: "web".to_owned(), revision }).await?.append {
///         Append::New => assert_eq!(revision, 7),
///         Append::Stale { generation, .. } => assert_eq!((revision, generation), (6, 7)), // came late
///         Append::Duplicate | Append::Scheduled { .. } => unreachable!("neither a dedup id nor a delay"),
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    /// It joined its lane.
    New,
    /// It was there already, under the same dedup id; the receipt is the first one's.
    Duplicate,
    /// A newer generation was accepted before it, so that nobody wants it any more.
    Stale {
        /// The newest event of its lane.
        newest: EventId,
        /// And its generation.
        generation: u64,
    },
    /// It joins its lane later.
    Scheduled {
        /// Its number in the schedule.
        ticket: u64,
        /// When.
        due_at: Timestamp,
    },
}

impl Receipt {
    pub(super) fn of(stream: &Arc<str>, sent: Sent) -> Result<Self, SendError> {
        let mut receipt = Self {
            append: Append::New,
            reference: None,
            id: None,
            prev: None,
            seq: None,
            durability: sent.durability.unwrap_or(Durability::Memory),
            object_version: sent.object_version,
        };
        receipt.fill(sent.receipt?);
        let name = |id| Ref { stream: stream.to_string(), partition: sent.partition, id };
        receipt.reference = receipt.id.map(name);
        Ok(receipt)
    }

    fn fill(&mut self, said: StoreReceipt) {
        match said {
            StoreReceipt::New { id, prev, seq, .. } => (self.id, self.prev, self.seq) = (Some(id), prev, seq),
            StoreReceipt::Scheduled { ticket, due_at, .. } => {
                self.append = Append::Scheduled { ticket, due_at };
            }
            StoreReceipt::Stale { newest, generation } => self.append = Append::Stale { newest, generation },
            StoreReceipt::Duplicate { first } => {
                if let Some(first) = first {
                    self.fill(*first);
                }
                self.append = Append::Duplicate;
            }
        }
    }
}
