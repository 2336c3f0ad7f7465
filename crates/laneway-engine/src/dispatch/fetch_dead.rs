//! The dead letters that a request is about. A request that names a letter reads that one; a request about a lane reads the
//! letters of the lane. Reads only.

use bytes::Bytes;
use laneway_core::limits::PAGE_BYTES_MAX;
use laneway_core::store::{DeadLetter, Query, Rows};
use laneway_core::{EventId, LaneName, Result, Seat as SeatId, Store, StoreError};
use parking_lot::Mutex;

use super::dead_lanes::{DeadLanes, Listed, Walk};
use crate::lane::name_of;
use crate::service::Env;

/// Dead letters read at a time, each with a payload of up to a megabyte.
const PAGE: usize = 32;
/// Payloads of dead letters that one request holds in memory; the one that goes beyond it is the last.
const BYTES_MAX: usize = PAGE_BYTES_MAX;

/// Whether to look for more letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    On,
    Stop,
}

/// The dead letters of one lane.
pub(super) struct Letters<'a> {
    pub(super) env: &'a Env,
    pub(super) store: &'a dyn Store,
    pub(super) seat: SeatId,
    pub(super) lane: &'a LaneName,
    pub(super) by_lane: &'a Mutex<DeadLanes>,
}

impl Letters<'_> {
    /// One letter by its id, if it is one of the lane.
    pub(super) async fn one(&self, id: EventId) -> Result<Option<DeadLetter>> {
        let found = self.rows(EventId(id.0.saturating_sub(1)), 1).await?.into_iter().next();
        Ok(found.filter(|letter| letter.event.id == id && name_of(&letter.event) == *self.lane))
    }

    /// Another letter of the lane: one before this, or else the next one after it.
    pub(super) async fn neighbour(&self, id: EventId) -> Result<Option<DeadLetter>> {
        let mut found = None;
        let visit = |letter: DeadLetter| {
            if letter.event.id == id {
                return Go::On;
            }
            found = Some(letter);
            Go::Stop
        };
        self.each(1, visit).await?;
        Ok(found)
    }

    /// All letters of the lane by id, and up to which one their payloads are there: of those that are meant, as many as one
    /// request may hold in memory. Callers that need the others ask again when these are dealt with.
    pub(super) async fn all(
        &self,
        is_meant: impl Fn(&DeadLetter) -> bool + Sync,
    ) -> Result<(Vec<DeadLetter>, EventId)> {
        let (mut found, mut bytes, mut whole_through) = (Vec::new(), 0, EventId(u64::MAX));
        let visit = |mut letter: DeadLetter| {
            let is_meant = is_meant(&letter);
            if bytes >= BYTES_MAX && is_meant && whole_through == EventId(u64::MAX) {
                whole_through = EventId(letter.event.id.0 - 1);
            }
            if is_meant && letter.event.id <= whole_through {
                bytes += letter.event.data.len();
            } else {
                letter.event.data = Bytes::new();
            }
            found.push(letter);
            Go::On
        };
        self.each(PAGE, visit).await?;
        Ok((found, whole_through))
    }

    /// Visits the letters of the lane in order, at most so many in one read.
    async fn each(&self, page: usize, mut visit: impl FnMut(DeadLetter) -> Go) -> Result<()> {
        let commits = self.by_lane.lock().commits();
        let Listed { ids, through } = self.listed().await?;
        let mut ids = &ids[..];
        while let Some(first) = ids.first() {
            // Ids are consecutive numbers, so a page of as many rows holds all of them.
            let near = ids.partition_point(|id| id.0 - first.0 < page as u64);
            let (chunk, rest) = ids.split_at(near);
            let span = usize::try_from(chunk[near - 1].0 - first.0).map_or(page, |last| last + 1);
            let rows = self.rows(EventId(first.0.saturating_sub(1)), span).await?;
            let is_there = |id: &EventId| rows.iter().any(|letter| letter.event.id == *id);
            for gone in chunk.iter().filter(|id| !is_there(id)) {
                self.by_lane.lock().is_gone(self.lane, *gone, commits);
            }
            for letter in rows.into_iter().filter(|letter| chunk.contains(&letter.event.id)) {
                if name_of(&letter.event) == *self.lane && visit(letter) == Go::Stop {
                    return Ok(());
                }
            }
            ids = rest;
        }
        self.each_behind(through, visit).await
    }

    /// Visits the letters of the lane behind those that are listed.
    async fn each_behind(&self, through: EventId, mut visit: impl FnMut(DeadLetter) -> Go) -> Result<()> {
        let mut after = through;
        while after < EventId(u64::MAX) {
            let rows = self.rows(after, PAGE).await?;
            let Some(last) = rows.last() else { break };
            after = last.event.id;
            for letter in rows {
                if name_of(&letter.event) == *self.lane && visit(letter) == Go::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The ids of the lane's letters. Without a list of the seat's letters, all of them are walked once to make one.
    async fn listed(&self) -> Result<Listed> {
        if let LaneName::Event(id) = self.lane {
            return Ok(Listed { ids: vec![*id], through: EventId(u64::MAX) });
        }
        let now = self.env.steady();
        let known = self.by_lane.lock().of(self.lane, now);
        if let Some(known) = known {
            return Ok(known);
        }
        self.by_lane.lock().walk_begins();
        let walk = self.walk().await?;
        let mut by_lane = self.by_lane.lock();
        by_lane.walked(walk, now);
        let nothing = Listed { ids: Vec::new(), through: EventId(0) };
        Ok(by_lane.of(self.lane, now).unwrap_or(nothing))
    }

    async fn walk(&self) -> Result<Walk> {
        let (mut walk, mut after) = (Walk::new(), EventId(0));
        loop {
            let rows = self.rows(after, PAGE).await?;
            let Some(last) = rows.last() else { return Ok(walk) };
            after = last.event.id;
            for letter in &rows {
                if !walk.found(&name_of(&letter.event), letter.event.id) {
                    return Ok(walk);
                }
            }
        }
    }

    async fn rows(&self, after: EventId, limit: usize) -> Result<Vec<DeadLetter>> {
        match self.store.query(Query::Dead(self.seat, after, limit)).await? {
            Rows::Dead(rows) => Ok(rows),
            _ => Err(StoreError::Corrupt {
                what: "the store answered another list than dead letters".to_owned(),
            }),
        }
    }
}
