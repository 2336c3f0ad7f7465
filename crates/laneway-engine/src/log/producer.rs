//! The producer's side: drafts find their partition and are appended, safely repeatable.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use laneway_core::limits::{APPEND_BYTES_MAX, EVENTS_PER_APPEND_MAX, ORIGIN_BYTES_MAX, PRIORITY_MAX};
use laneway_core::store::{Append, Appended, ObjectWrite, Origin, Receipt, Source};
use laneway_core::{
    Bytes, Draft, Durability, Mode, Partition, Refusal, Shard, Store, StoreError, StreamInfo, Term,
};
use parking_lot::{Mutex, RwLock};
use tracing::Instrument;

use super::catalogue::{Catalogue, CatalogueError};
use crate::job::headers;
use crate::observe::{count_evicted, sending, stamp};
use crate::service::Env;

/// Times an append that nobody answered is repeated.
const REPEATS_MAX: u32 = 20;
const REPEAT_AFTER: Duration = Duration::from_millis(10);
const REPEAT_AFTER_MAX: Duration = Duration::from_secs(1);

/// Appends drafts to streams. Cheap to clone.
#[derive(Clone)]
pub struct Producer {
    env: Env,
    store: Arc<dyn Store>,
    catalogue: Arc<Catalogue>,
    /// Spreads events without a key evenly.
    spread: Arc<AtomicU64>,
    numbering: Arc<Numbering>,
    /// Shards that have taken an append: none of them has to be adopted.
    answering: Arc<RwLock<HashSet<Shard>>>,
}

/// Names under which drafts without a dedup id are numbered, so that an unanswered append can be repeated. A name is
/// used by one append at a time, because its numbers must arrive in order.
#[derive(Debug)]
struct Numbering {
    prefix: String,
    free: Mutex<Vec<Name>>,
    made: AtomicU64,
}

#[derive(Debug)]
struct Name {
    source: Bytes,
    next: u64,
}

impl Numbering {
    fn take(&self) -> Name {
        let free = self.free.lock().pop();
        free.unwrap_or_else(|| {
            let made = self.made.fetch_add(1, Ordering::Relaxed);
            Name { source: Bytes::from(format!("{}/{made}", self.prefix)), next: 1 }
        })
    }
}

/// What to append.
#[derive(Debug, Clone, Default)]
pub struct Appending {
    /// The events, in order.
    pub drafts: Vec<Draft>,
    /// Changes the object of the one lane that all drafts belong to.
    pub object: Option<ObjectWrite>,
}

/// What became of one draft.
#[derive(Debug)]
pub struct Sent {
    /// Where it went.
    pub partition: Partition,
    /// What the store says of it, or why it was not appended.
    pub receipt: Result<Receipt, Arc<StoreError>>,
    /// How safe it is.
    pub durability: Option<Durability>,
    /// The object's version after the call, when it changed.
    pub object_version: Option<u64>,
}

/// Why nothing was appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// One of the drafts is wrong: nothing was appended.
    #[error("event {index}: {refusal}")]
    Refused {
        /// Which.
        index: usize,
        /// What is wrong with it.
        refusal: Refusal,
    },
    /// The stream is not to be had.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
}

impl Producer {
    pub(crate) fn new(env: Env, store: Arc<dyn Store>, catalogue: Arc<Catalogue>) -> Self {
        let prefix = format!("producer/{:032x}", env.nonce().0);
        let numbering = Numbering { prefix, free: Mutex::default(), made: AtomicU64::new(0) };
        let (spread, answering) = Default::default();
        Self { env, store, catalogue, spread, numbering: Arc::new(numbering), answering }
    }

    /// Appends drafts to a stream. Those of one partition go together or not at all; the answers are in the order of
    /// the drafts.
    ///
    /// # Errors
    /// When the stream does not exist, or a draft could never be appended: then nothing was.
    pub async fn append(&self, stream: &str, appending: Appending) -> Result<Vec<Sent>, AppendError> {
        for (index, draft) in appending.drafts.iter().enumerate() {
            headers::check(&draft.headers).map_err(|refusal| AppendError::Refused { index, refusal })?;
        }
        self.append_own(stream, appending).await
    }

    /// Appends drafts that have positions at an origin, such as the lines of a file: `origin_seq` of each, growing. A
    /// partition takes only what is above the highest position it has of that origin, however long ago that was, so the
    /// same drafts may be sent again and again as long as they are sent in order. An event without a key finds its
    /// partition by its position.
    ///
    /// A position that was left out stays out: once a higher one has arrived in its partition, it counts as a repeat.
    ///
    /// # Errors
    /// As those of [`append`](Self::append); also when the name is too long or a position is missing or does not grow.
    pub async fn append_from(
        &self,
        origin: &str,
        stream: &str,
        appending: Appending,
    ) -> Result<Vec<Sent>, AppendError> {
        check_positions(origin, &appending.drafts)?;
        for (index, draft) in appending.drafts.iter().enumerate() {
            headers::check(&draft.headers).map_err(|refusal| AppendError::Refused { index, refusal })?;
        }
        self.append_spanned(stream, appending, Some(origin)).await
    }

    /// Refuses drafts that could never be appended to a stream, for a caller who appends them in several calls.
    ///
    /// # Errors
    /// As those of [`append`](Self::append).
    pub async fn check(&self, stream: &str, drafts: &[Draft]) -> Result<(), AppendError> {
        check(&*self.catalogue.stream(stream).await?, drafts)
    }

    /// [`append`](Self::append) for drafts that may carry headers of the engine's own.
    pub(crate) async fn append_own(
        &self,
        stream: &str,
        appending: Appending,
    ) -> Result<Vec<Sent>, AppendError> {
        self.append_spanned(stream, appending, None).await
    }

    async fn append_spanned(
        &self,
        stream: &str,
        appending: Appending,
        origin: Option<&str>,
    ) -> Result<Vec<Sent>, AppendError> {
        let span = sending(stream, appending.drafts.len());
        let appended = self.append_traced(stream, appending, origin);
        if span.is_none() { appended.await } else { appended.instrument(span).await }
    }

    async fn append_traced(
        &self,
        stream: &str,
        mut appending: Appending,
        origin: Option<&str>,
    ) -> Result<Vec<Sent>, AppendError> {
        stamp(&mut appending.drafts);
        let info = self.catalogue.stream(stream).await?;
        remember_as_long(&info, &mut appending.drafts);
        check(&info, &appending.drafts)?;
        if appending.object.is_some() {
            check_one_key(&appending.drafts)?;
        }
        let route = |draft| self.route(&info, draft, origin);
        let routes: Vec<Partition> = appending.drafts.iter().map(route).collect();
        check_parts(&appending.drafts, &routes)?;
        let origin = origin.map(|name| Origin {
            // Apart from the names of schedules and producers.
            source: Source::Named(Bytes::from(format!("origin/{name}"))),
            term: Term(1),
        });
        Ok(self.append_routed(&info, appending, &routes, origin).await)
    }

    async fn append_routed(
        &self,
        info: &Arc<StreamInfo>,
        appending: Appending,
        routes: &[Partition],
        origin: Option<Origin>,
    ) -> Vec<Sent> {
        let Appending { drafts, object } = appending;
        // Most calls are about one partition: nothing has to be taken apart and put together again for them.
        if let Some(first) = routes.first().filter(|first| routes.iter().all(|route| route == *first)) {
            let answer = self.append_part(info, *first, drafts, object, origin).await;
            return sent(*first, routes.len(), answer);
        }
        let mut parts: BTreeMap<Partition, (Vec<usize>, Vec<Draft>)> = BTreeMap::new();
        for (index, (partition, draft)) in routes.iter().zip(drafts).enumerate() {
            let (places, drafts) = parts.entry(*partition).or_default();
            places.push(index);
            drafts.push(draft);
        }
        let (producer, info) = (self.clone(), Arc::clone(info));
        // A caller that goes away must not leave some of the partitions without their events.
        let appending = async move {
            let calls = parts.into_iter().map(|(partition, (places, drafts))| {
                let (producer, info, object, origin) = (&producer, &info, object.clone(), origin.clone());
                async move {
                    let answer = producer.append_part(info, partition, drafts, object, origin).await;
                    places.iter().copied().zip(sent(partition, places.len(), answer)).collect::<Vec<_>>()
                }
            });
            join_all(calls).await
        };
        let mut all: Vec<(usize, Sent)> = self.env.finish(appending).await.into_iter().flatten().collect();
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, sent)| sent).collect()
    }

    fn route(&self, info: &StreamInfo, draft: &Draft, origin: Option<&str>) -> Partition {
        let partitions = info.settings.partitions;
        match (&draft.key, &draft.dedup) {
            (Some(key), _) => key.partition(partitions),
            // A repeat must find the partition that knows its position.
            (None, _) if origin.is_some() => {
                let position = draft.origin_seq.unwrap_or_default();
                Partition(u32::try_from(position % u64::from(partitions)).unwrap_or(0))
            }
            // The same dedup id must find the same partition (contract 1.13).
            (None, Some(dedup)) => {
                laneway_core::Key::new(dedup.id.clone()).map_or(Partition(0), |key| key.partition(partitions))
            }
            (None, None) => {
                let next = self.spread.fetch_add(1, Ordering::Relaxed);
                Partition(u32::try_from(next % u64::from(partitions)).unwrap_or(0))
            }
        }
    }

    async fn append_part(
        &self,
        info: &StreamInfo,
        partition: Partition,
        mut drafts: Vec<Draft>,
        object: Option<ObjectWrite>,
        origin: Option<Origin>,
    ) -> Result<Appended, StoreError> {
        let shard = info.shard(partition);
        // An answer can be lost only on the way from another process; in this one a repeat is never needed.
        let numbered = origin.is_none()
            && self.store.about().capabilities.shared
            && drafts.iter().any(|draft| draft.dedup.is_none());
        let mut name = numbered.then(|| self.numbering.take());
        let own = name.as_mut().map(|name| {
            for draft in &mut drafts {
                draft.origin_seq = Some(name.next);
                name.next += 1;
            }
            Origin { source: Source::Named(name.source.clone()), term: Term(1) }
        });
        let origin = origin.or(own);
        let append =
            Append { shard, incarnation: self.catalogue.life(), layout: info.layout, origin, drafts, object };
        let answer = self.send(append).await;
        if let Ok(Appended { dedup_evicted: evicted @ 1.., .. }) = &answer {
            count_evicted(&info.name, *evicted);
        }
        // A name whose last call nobody answered is not used again: its numbers may still arrive.
        if !matches!(answer, Err(StoreError::Unknown { .. })) {
            self.numbering.free.lock().extend(name);
        }
        answer
    }

    /// Whether the first answer to an append is the last. An answer is lost only on the way from another process, and a
    /// shard that has answered this one is of this life of the store. Then no copy has to be kept for a repeat.
    fn is_final(&self, shard: Shard) -> bool {
        !self.store.about().capabilities.shared && self.answering.read().contains(&shard)
    }

    /// Sends an append until it is answered.
    async fn send(&self, append: Append) -> Result<Appended, StoreError> {
        let shard = append.shard;
        if self.is_final(shard) {
            return self.store.append(append).await;
        }
        // Without numbers at an origin or dedup ids a repeat would be another event.
        let is_known_again =
            append.origin.is_some() || append.drafts.iter().all(|draft| draft.dedup.is_some());
        let (mut wait, mut repeats) = (REPEAT_AFTER, 0);
        loop {
            let sent = |incarnation| self.store.append(Append { incarnation, ..append.clone() });
            match self.catalogue.in_this_life(sent).await {
                Ok(appended) => {
                    self.answering.write().insert(shard);
                    return Ok(appended);
                }
                Err(StoreError::Unknown { .. }) if is_known_again && repeats < REPEATS_MAX => {
                    repeats += 1;
                    self.env.sleep(wait).await;
                    wait = (wait * 2).min(REPEAT_AFTER_MAX);
                }
                answer => return answer,
            }
        }
    }
}

fn check(info: &StreamInfo, drafts: &[Draft]) -> Result<(), AppendError> {
    for (index, draft) in drafts.iter().enumerate() {
        let checked = draft.check().and_then(|()| check_priority(draft));
        checked.map_err(|refusal| AppendError::Refused { index, refusal })?;
        if info.settings.mode == Mode::Latest && draft.key.is_none() {
            let refusal = Refusal::new("key", "absent", "given in a stream of mode latest");
            return Err(AppendError::Refused { index, refusal });
        }
    }
    Ok(())
}

/// Refuses positions by which repeats could not be told.
fn check_positions(origin: &str, drafts: &[Draft]) -> Result<(), AppendError> {
    let refused = |index, refusal| AppendError::Refused { index, refusal };
    if origin.is_empty() || origin.len() > ORIGIN_BYTES_MAX {
        let limit = format!("1 to {ORIGIN_BYTES_MAX} bytes");
        return Err(refused(0, Refusal::new("origin", format!("{} bytes", origin.len()), limit)));
    }
    let mut last = 0;
    for (index, draft) in drafts.iter().enumerate() {
        let Some(position) = draft.origin_seq.filter(|position| *position > last) else {
            let value = draft.origin_seq.map_or_else(|| "absent".to_owned(), |position| position.to_string());
            let limit = format!("a number above {last}, so that repeats can be told");
            return Err(refused(index, Refusal::new("position", value, limit)));
        };
        last = position;
    }
    Ok(())
}

/// Remembers dedup ids for as long as the stream says, unless the draft wants more.
fn remember_as_long(info: &StreamInfo, drafts: &mut [Draft]) {
    for dedup in drafts.iter_mut().filter_map(|draft| draft.dedup.as_mut()) {
        dedup.window = dedup.window.max(info.settings.dedup_window);
    }
}

/// Refuses a priority that would be run as another one. Stores take any: what they have may be older than the limit.
pub(crate) fn check_priority(draft: &Draft) -> Result<(), Refusal> {
    if draft.priority <= PRIORITY_MAX {
        return Ok(());
    }
    Err(Refusal::new("priority", draft.priority.to_string(), format!("0 to {PRIORITY_MAX}")))
}

/// Refuses an event of another key than the first in a call that writes the object of one.
fn check_one_key(drafts: &[Draft]) -> Result<(), AppendError> {
    let first = drafts.first().and_then(|draft| draft.key.as_ref());
    let Some(index) = drafts.iter().position(|draft| draft.key.as_ref() != first || first.is_none()) else {
        return Ok(());
    };
    let key = drafts[index].key.as_ref().map_or_else(|| "absent".to_owned(), ToString::to_string);
    let limit = first.map_or_else(|| "given".to_owned(), |first| format!("{first} as in event 0"));
    let refusal = Refusal::new("key", key, format!("{limit}, because the call writes an object"));
    Err(AppendError::Refused { index, refusal })
}

/// Refuses more events of one partition than go together, before any of another partition is appended.
fn check_parts(drafts: &[Draft], routes: &[Partition]) -> Result<(), AppendError> {
    let bytes: usize = drafts.iter().map(|draft| draft.data.len()).sum();
    if drafts.len() <= EVENTS_PER_APPEND_MAX && bytes <= APPEND_BYTES_MAX {
        return Ok(());
    }
    let mut parts: BTreeMap<Partition, (usize, usize)> = BTreeMap::new();
    for (index, (draft, partition)) in drafts.iter().zip(routes).enumerate() {
        let (events, bytes) = parts.entry(*partition).or_default();
        (*events, *bytes) = (*events + 1, *bytes + draft.data.len());
        Refusal::check_max("events of one partition", *events, EVENTS_PER_APPEND_MAX)
            .and_then(|()| Refusal::check_max("data bytes of one partition", *bytes, APPEND_BYTES_MAX))
            .map_err(|refusal| AppendError::Refused { index, refusal })?;
    }
    Ok(())
}

/// What became of the drafts of one partition.
fn sent(partition: Partition, count: usize, answer: Result<Appended, StoreError>) -> Vec<Sent> {
    match answer {
        Ok(Appended { receipts, durability, object_version, dedup_evicted: _ }) => {
            let sent = |receipt| Sent {
                partition,
                receipt: Ok(receipt),
                durability: Some(durability),
                object_version,
            };
            receipts.into_iter().map(sent).collect()
        }
        Err(error) => {
            let error = Arc::new(error);
            let sent = || Sent {
                partition,
                receipt: Err(Arc::clone(&error)),
                durability: None,
                object_version: None,
            };
            std::iter::repeat_with(sent).take(count).collect()
        }
    }
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Producer").finish_non_exhaustive()
    }
}
