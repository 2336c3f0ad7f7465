//! What an operator does with the lanes of a processor: look, pause, resume, retry, skip, redrive.
//!
//! Everything but looking is a request to whoever owns the lane. A call comes back when the owner has applied it; if
//! nobody runs the processor, the request is kept until somebody does.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::{Query, RedriveTo, RequestOp, Reset, Rows};
use laneway_core::{
    Block, BlockKind, Event, EventId, Key, LaneName, ProcessorId, Ref, Refusal, Seat, Status, StoreError,
    StreamInfo, Timestamp,
};
use laneway_engine::Engine;
use laneway_engine::lane::{Answer, Filed, OperateError as EngineError, Refused};
use laneway_engine::observe::LookError;

use crate::record::KeyField;
use crate::stream::key_of;

/// How long a request may take to be applied.
const APPLIED_WITHIN: Duration = Duration::from_secs(10);
/// Most rows of a list.
const LIST_MAX: usize = 1_000;

/// The lanes of one processor, for whoever has to decide; see [`Laneway::operations`](crate::Laneway::operations).
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// struct Bank(AtomicBool);
///
/// async fn book(Event(_): Event<Payment>, State(bank): State<Bank>) -> Result<()> {
///     if bank.0.load(Ordering::Relaxed) { Ok(()) } else { Err(Error::permanent("the account is closed")) }
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new().state(Bank(AtomicBool::new(false)));
/// let payments = app.stream::<Payment>("payments");
/// app.processor("book", &payments, book);
/// app.start().await?;
/// payments.send(&Payment { account: "a1".to_owned(), cents: 5 }).await?;
/// app.run_until_quiet().await;
///
/// let operations = app.operations("book");
/// let parked = operations.parked().await?;
/// assert_eq!((parked.len(), parked[0].cause.as_str()), (1, "the account is closed"));
/// operations.skip("a1").await?; // or retry, once the cause is gone
/// app.run_until_quiet().await;
/// assert!(operations.parked().await?.is_empty());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Operations {
    engine: Engine,
    processor: String,
}

/// A lane that waits for somebody or for its time.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: Option<String>, cents: i64 }
/// # fn payment(account: Option<&str>, cents: i64) -> Payment { Payment { account: account.map(Into::into), cents } }
/// async fn book(Event(payment): Event<Payment>, ctx: Ctx) -> Result<()> {
///     if payment.cents > 0 || ctx.attempt() > 2 { Ok(()) } else { Err(Error::new("the bank is closed")) }
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let payments = app.stream::<Payment>("payments");
/// app.processor("book", &payments, book).retry(Retry { backoff: mins(5), ..Retry::default() });
/// app.start().await?;
/// payments.send(&payment(Some("a1"), -5)).await?;
/// payments.send(&payment(None, -7)).await?; // no order wanted, so its lane has no key
/// payments.send(&payment(None, -9)).await?;
/// app.advance(secs(1)).await;
///
/// let operations = app.operations("book");
/// let waiting = operations.retrying().await?;
/// assert_eq!((waiting.len(), waiting[0].attempts, waiting[0].cause.as_str()), (3, 1, "the bank is closed"));
/// println!("{}", operations.why("a1").await?);
/// operations.retry("a1").await?; // now, instead of in five minutes
/// let keyless: Vec<_> = waiting.iter().filter(|lane| lane.key.is_none()).collect();
/// operations.retry_event(keyless[0].head.as_ref().unwrap()).await?; // by the name of the event
/// operations.skip_event(keyless[1].head.as_ref().unwrap()).await?;
///
/// operations.pause_lane("a2", "ann, until the audit is over").await?;
/// payments.send(&payment(Some("a2"), 5)).await?;
/// app.run_until_quiet().await;
/// let paused = operations.paused().await?;
/// assert_eq!(paused[0].cause, "ann, until the audit is over");
/// operations.resume_lane("a2").await?;
///
/// operations.pause("ann, for the night").await?; // all lanes
/// operations.resume().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLane {
    /// Its key; nothing for an event that wanted no order.
    pub key: Option<Key>,
    /// Its first event that has not ended; an event that wanted no order is the only one of its lane.
    pub head: Option<Ref>,
    /// Failed attempts at that one.
    pub attempts: u32,
    /// What went wrong last, or who paused it.
    pub cause: String,
}

/// An event that was given up and is kept aside.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # use std::sync::atomic::{AtomicBool, Ordering};
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: Option<String>, cents: i64 }
/// # fn payment(account: Option<&str>, cents: i64) -> Payment { Payment { account: account.map(Into::into), cents } }
/// # static OPEN: AtomicBool = AtomicBool::new(false);
/// # async fn book(Event(_): Event<Payment>) -> Result<()> {
/// #     if OPEN.load(Ordering::Relaxed) { Ok(()) } else { Err(Error::permanent("the account is closed")) }
/// # }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let app = App::new();
/// let payments = app.stream::<Payment>("payments").keep_dead_letters(days(90));
/// app.processor("book", &payments, book).on_failure(OnFailure::DeadLetter);
/// app.start().await?;
/// for cents in [-1, -2, -3] {
///     payments.send(&payment(Some("a1"), cents)).await?;
/// }
/// app.run_until_quiet().await;
///
/// let operations = app.operations("book");
/// let dead = operations.dead_letters().await?;
/// assert_eq!((dead.len(), dead[0].cause.as_str()), (3, "the account is closed"));
/// # OPEN.store(true, Ordering::Relaxed);
/// // Once the cause is gone: the last of a lane can go back to its place, earlier ones as copies to the end.
/// operations.redrive(&dead[2].reference).await?;
/// operations.redrive_to_tail(&dead[0].reference).await?;
/// operations.discard(&dead[1].reference).await?;
/// app.run_until_quiet().await;
/// assert!(operations.dead_letters().await?.is_empty());
///
/// // With OnFailure::DeadLetterLane all later events of the lane go aside too, and come back in order:
/// operations.redrive_lane("a1").await?;
/// operations.discard_lane("a1").await?; // or go for good
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its one name.
    pub reference: Ref,
    /// Its lane; nothing for an event that wanted no order.
    pub key: Option<Key>,
    /// Why it was given up.
    pub cause: String,
    /// Attempts it took.
    pub attempts: u32,
    /// When it was given up.
    pub at: Timestamp,
    /// What it carries.
    pub data: bytes::Bytes,
}

/// Why nothing was done.
///
/// ```
/// use laneway::OperateError;
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # async fn book(Event(_): Event<Payment>) -> Result<()> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let app = App::new();
/// # app.processor("book", &app.stream::<Payment>("payments"), book);
/// # app.start().await?;
/// let nothing = app.operations("book").retry("a1").await.unwrap_err();
/// assert!(matches!(nothing, OperateError::NothingWaits { .. }));
/// assert_eq!(nothing.to_string(), r#"nothing waits in lane a1 of processor "book""#);
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// The key can be none, or the event is none of the processor's: correct it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing waits in this lane, so there is nothing to retry or skip.
    #[error("nothing waits in lane {key} of processor {processor:?}")]
    NothingWaits {
        /// The lane.
        key: Key,
        /// The processor.
        processor: String,
    },
    /// Only an event that is parked or waits for another attempt can be retried or skipped by its name.
    #[error("event {reference} is {status} for processor {processor:?}, must be parked or retrying")]
    NotHeld {
        /// The event.
        reference: Ref,
        /// Where it stands.
        status: Status,
        /// The processor.
        processor: String,
    },
    /// There is no such dead letter any more, or never was.
    #[error("event {reference} is no dead letter of processor {processor:?}")]
    NotDead {
        /// The event.
        reference: Ref,
        /// The processor.
        processor: String,
    },
    /// The request is stored, and nobody has applied it within ten seconds: it will be when the processor runs.
    #[error("processor {processor:?} has not applied the request; it does when it runs")]
    NotYet {
        /// The processor.
        processor: String,
    },
    /// It cannot be done without breaking the order of the lane, or not any more.
    #[error("refused ({}): {}", .0.code(), .0.reason())]
    Declined(Refused),
    /// No such processor, or the store could not say.
    #[error(transparent)]
    Look(#[from] LookError),
    /// No such processor, or the store could not take the request.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Operations {
    pub(crate) fn new(engine: Engine, processor: &str) -> Self {
        Self { engine, processor: processor.to_owned() }
    }

    /// Lanes that gave up and wait for a decision. At most 1,000.
    pub async fn parked(&self) -> Result<Vec<HeldLane>, OperateError> {
        self.held(BlockKind::Parked).await
    }

    /// Lanes that somebody paused. At most 1,000.
    pub async fn paused(&self) -> Result<Vec<HeldLane>, OperateError> {
        self.held(BlockKind::Paused).await
    }

    /// Lanes whose head failed and is tried again. At most 1,000.
    pub async fn retrying(&self) -> Result<Vec<HeldLane>, OperateError> {
        self.held(BlockKind::Retry).await
    }

    async fn held(&self, kind: BlockKind) -> Result<Vec<HeldLane>, OperateError> {
        let (info, _) = self.place().await?;
        let lanes = self.engine.looker().held_lanes(&self.processor, Some(kind), LIST_MAX).await?;
        let told = lanes.into_iter().map(|lane| HeldLane {
            head: match lane.record.lane {
                LaneName::Key(_) => lane.head,
                LaneName::Event(id) => Some(id),
            }
            .map(|id| Ref { stream: info.name.clone(), partition: lane.partition, id }),
            key: match lane.record.lane {
                LaneName::Key(key) => Some(key),
                LaneName::Event(_) => None,
            },
            attempts: lane.record.attempts,
            cause: match lane.record.block {
                Some(
                    Block::Parked { cause, .. }
                    | Block::Retry { cause, .. }
                    | Block::Paused { by: cause, .. },
                ) => String::from_utf8_lossy(&cause).into_owned(),
                _ => String::new(),
            },
        });
        Ok(told.collect())
    }

    /// The stream and number of the processor.
    async fn place(&self) -> Result<(Arc<StreamInfo>, ProcessorId), OperateError> {
        Ok(self.engine.catalogue().processor(&self.processor).await.map_err(LookError::from)?)
    }

    /// The one reason why a lane does not go on, in words.
    pub async fn why(&self, key: impl KeyField) -> Result<String, OperateError> {
        let key = key_of(&key)?;
        let (info, _) = self.place().await?;
        let lane = self.engine.looker().lane(&info.name, &key).await?;
        let standing = lane.processors.into_iter().find(|standing| standing.processor == self.processor);
        Ok(standing.map_or_else(|| "no processor takes it".to_owned(), |standing| standing.why.to_string()))
    }

    /// Stops a lane; what runs goes on. `by` is told to whoever asks why it stands.
    pub async fn pause_lane(&self, key: impl KeyField, by: &str) -> Result<(), OperateError> {
        let key = key_of(&key)?;
        self.applied(&[self.engine.operator().pause_lane(&self.processor, &key, by).await?]).await
    }

    /// Lets a paused, parked or diverting lane go on.
    pub async fn resume_lane(&self, key: impl KeyField) -> Result<(), OperateError> {
        let key = key_of(&key)?;
        self.applied(&[self.engine.operator().resume_lane(&self.processor, &key).await?]).await
    }

    /// Tries the head of a lane again now; a parked one gets all its attempts again.
    pub async fn retry(&self, key: impl KeyField) -> Result<(), OperateError> {
        let (key, head) = self.head(key).await?;
        self.applied(&[self.engine.operator().retry(&self.processor, &key, head).await?]).await
    }

    /// Passes the head of a lane over: it ends skipped, and the lane goes on behind it.
    pub async fn skip(&self, key: impl KeyField) -> Result<(), OperateError> {
        let (key, head) = self.head(key).await?;
        self.applied(&[self.engine.operator().skip(&self.processor, &key, head).await?]).await
    }

    /// Tries an event again now, by its name: also one that wanted no order, whose lane has no key. A parked one gets all
    /// its attempts again.
    pub async fn retry_event(&self, reference: &Ref) -> Result<(), OperateError> {
        let (seat, lane) = self.held_event(reference).await?;
        self.filed(seat, RequestOp::Retry { lane, id: reference.id }).await
    }

    /// Passes an event over, by its name: also one that wanted no order, whose lane has no key. It ends skipped.
    pub async fn skip_event(&self, reference: &Ref) -> Result<(), OperateError> {
        let (seat, lane) = self.held_event(reference).await?;
        self.filed(seat, RequestOp::Skip { lane, id: reference.id }).await
    }

    async fn held_event(&self, reference: &Ref) -> Result<(Seat, LaneName), OperateError> {
        let seat = self.seat(reference).await?;
        let view = self.engine.looker().event(reference).await?;
        let standing = view.statuses.iter().find(|standing| standing.processor == self.processor);
        let status = standing.map_or(Status::Waiting, |standing| standing.status);
        if !matches!(status, Status::Parked | Status::Retrying) {
            let (reference, processor) = (reference.clone(), self.processor.clone());
            return Err(OperateError::NotHeld { reference, status, processor });
        }
        Ok((seat, lane_of(&view.event)))
    }

    /// The processor where the event is.
    async fn seat(&self, reference: &Ref) -> Result<Seat, OperateError> {
        let (info, processor) = self.place().await?;
        if reference.stream != info.name {
            let limit = format!("an event of stream {}, which {} processes", info.name, self.processor);
            return Err(Refusal::new("reference", reference.to_string(), limit).into());
        }
        Ok(Seat { shard: info.shard(reference.partition), processor })
    }

    async fn filed(&self, seat: Seat, op: RequestOp) -> Result<(), OperateError> {
        let filed = self.engine.operator().file(seat, self.engine.env().token(), op).await?;
        self.applied(&[filed]).await
    }

    async fn head(&self, key: impl KeyField) -> Result<(Key, EventId), OperateError> {
        let key = key_of(&key)?;
        let (info, _) = self.place().await?;
        let lane = self.engine.looker().lane(&info.name, &key).await?;
        let standing = lane.processors.into_iter().find(|standing| standing.processor == self.processor);
        match standing.and_then(|standing| standing.head) {
            Some(head) => Ok((key, head)),
            None => Err(OperateError::NothingWaits { key, processor: self.processor.clone() }),
        }
    }

    /// Waits for what the owners say. A wish that finds nothing to do any more is as good as done.
    async fn applied(&self, filed: &[Filed]) -> Result<(), OperateError> {
        for request in filed {
            match self.engine.operator().answer(*request, APPLIED_WITHIN).await? {
                Some(Answer::Applied | Answer::Already) => {}
                Some(Answer::Refused(why)) => return Err(OperateError::Declined(why)),
                None => return Err(OperateError::NotYet { processor: self.processor.clone() }),
            }
        }
        Ok(())
    }

    /// Stops the whole processor; what runs goes on.
    pub async fn pause(&self, by: &str) -> Result<(), OperateError> {
        self.applied(&self.engine.operator().pause(&self.processor, by).await?).await
    }

    /// Lets a paused or halted processor go on.
    pub async fn resume(&self) -> Result<(), OperateError> {
        self.applied(&self.engine.operator().resume(&self.processor).await?).await
    }

    /// Begins the processor anew: its progress and held-up lanes go, and what is behind the start runs again. What became of
    /// jobs stays as it is.
    ///
    /// ```
    /// use laneway::prelude::*;
    /// use laneway::testing::App;
    /// use laneway::{Reset, StartAt};
    /// # #[derive(Record, Serialize, Deserialize)]
    /// # #[record(key = "account")]
    /// # struct Payment { account: String, cents: i64 }
    /// # #[derive(Record, Serialize, Deserialize, Debug, PartialEq)]
    /// # #[record(key = "account")]
    /// # struct Balance { account: String, cents: i64 }
    /// async fn balance(Event(payment): Event<Payment>, mut sum: LaneState<i64>, out: Emit<Balance>) -> Result<()> {
    ///     *sum += payment.cents;
    ///     out.send(Balance { account: payment.account, cents: *sum })
    /// }
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<()> {
    /// # let app = App::new();
    /// # let payments = app.stream::<Payment>("payments");
    /// # let balances = app.stream::<Balance>("balances");
    /// app.processor("balance", &payments, balance);
    /// app.start().await?;
    /// payments.send(&Payment { account: "a1".to_owned(), cents: 5 }).await?;
    /// app.run_until_quiet().await;
    ///
    /// // Works the sums out anew, and tells nobody of what they were told before.
    /// let anew = Reset { start: StartAt::Beginning, clear_states: true, quiet: true };
    /// app.operations("balance").reset(anew).await?;
    /// payments.send(&Payment { account: "a1".to_owned(), cents: 7 }).await?;
    /// app.run_until_quiet().await;
    /// let told: Vec<i64> = app.sent(&balances).await.iter().map(|balance| balance.cents).collect();
    /// assert_eq!(told, [5, 12]);
    /// # Ok(()) }
    /// ```
    pub async fn reset(&self, reset: Reset) -> Result<(), OperateError> {
        self.applied(&self.engine.operator().reset(&self.processor, reset).await?).await
    }

    /// Events that were given up and are kept aside, by partition and id. At most 1,000.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>, OperateError> {
        let (info, _) = self.place().await?;
        let dead = self.engine.looker().dead_letters(&self.processor, LIST_MAX).await?;
        let told = dead.into_iter().map(|dead| DeadLetter {
            reference: Ref { stream: info.name.clone(), partition: dead.partition, id: dead.letter.event.id },
            key: dead.letter.event.key,
            cause: String::from_utf8_lossy(&dead.letter.cause).into_owned(),
            attempts: dead.letter.attempts,
            at: dead.letter.at,
            data: dead.letter.event.data,
        });
        Ok(told.collect())
    }

    /// Brings all dead letters of a diverting lane back to their places, in order: the lane goes on with them.
    pub async fn redrive_lane(&self, key: impl KeyField) -> Result<(), OperateError> {
        let key = key_of(&key)?;
        self.applied(&[self.engine.operator().redrive(&self.processor, &key, None, RedriveTo::Place).await?])
            .await
    }

    /// Brings one dead letter back to its place, which is possible only while nothing of its lane came after it.
    pub async fn redrive(&self, reference: &Ref) -> Result<(), OperateError> {
        let (seat, lane) = self.dead_letter(reference).await?;
        let id = Some(reference.id);
        self.filed(seat, RequestOp::Redrive { id, lane, to: RedriveTo::Place }).await
    }

    /// Appends a copy of one dead letter to the end of its lane, as a new event.
    pub async fn redrive_to_tail(&self, reference: &Ref) -> Result<(), OperateError> {
        let (seat, lane) = self.dead_letter(reference).await?;
        self.filed(seat, RequestOp::Redrive { id: Some(reference.id), lane, to: RedriveTo::Tail }).await
    }

    /// Forgets one dead letter for good.
    pub async fn discard(&self, reference: &Ref) -> Result<(), OperateError> {
        let (seat, lane) = self.dead_letter(reference).await?;
        self.filed(seat, RequestOp::Discard { id: Some(reference.id), lane }).await
    }

    /// Forgets all dead letters of a lane for good. A diverting lane diverts on until it is resumed.
    pub async fn discard_lane(&self, key: impl KeyField) -> Result<(), OperateError> {
        let key = key_of(&key)?;
        self.applied(&[self.engine.operator().discard(&self.processor, &key, None).await?]).await
    }

    /// Where a dead letter lies; its event may have gone by retention.
    async fn dead_letter(&self, reference: &Ref) -> Result<(Seat, LaneName), OperateError> {
        let seat = self.seat(reference).await?;
        let before = EventId(reference.id.0.saturating_sub(1));
        let rows = self.engine.stores().store.query(Query::Dead(seat, before, 1)).await;
        let Rows::Dead(letters) = rows.map_err(LookError::from)? else {
            let what = "the store answered another list than dead letters".to_owned();
            return Err(LookError::from(StoreError::Corrupt { what }).into());
        };
        let found = letters.into_iter().find(|letter| letter.event.id == reference.id);
        let (reference, processor) = (reference.clone(), self.processor.clone());
        let found = found.ok_or(OperateError::NotDead { reference, processor })?;
        Ok((seat, lane_of(&found.event)))
    }
}

fn lane_of(event: &Event) -> LaneName {
    event.key.clone().map_or(LaneName::Event(event.id), LaneName::Key)
}
