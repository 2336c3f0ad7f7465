//! Everything of one seat beside its progress: lane records, sidings, states, ends, dead letters, outbox, requests.

use super::rows::{Kind, PageSize, Written, copy_rows, import_all};
use super::shift::Shift;
use crate::error::Result;
use crate::ids::{EventId, Seat};
use crate::key::Key;
use crate::lane::LaneName;
use crate::store::{
    DeadLetter, Ending, Import, LaneSelect, Lanes, OutboxRow, Query, RequestRow, Rows, Store, TokenRow,
    Versioned,
};

/// One seat on its way.
pub(super) struct SeatCopy<'a> {
    pub(super) from: &'a dyn Store,
    pub(super) to: &'a dyn Store,
    pub(super) seat: Seat,
    pub(super) shift: Shift,
}

impl SeatCopy<'_> {
    /// Copies it. Its progress came with its shard.
    pub(super) async fn run(&self) -> Result<Written> {
        let mut written = self.lanes().await?;
        written += self.sidings().await?;
        written += self.states().await?;
        written += self.ends().await?;
        written += self.outbox().await?;
        written += self.requests().await?;
        Ok(written)
    }

    async fn lanes(&self) -> Result<Written> {
        let (seat, mut after, mut size) = (self.seat, None, PageSize::new());
        let mut written = Written::default();
        loop {
            let select = LaneSelect::Blocked { kind: None, after, limit: size.rows() };
            let views = self.from.lanes(Lanes { seat, select, siding: 0, states: false }).await?;
            let records: Vec<_> = views.into_iter().map(|view| self.shift.lane(view.record)).collect();
            size.learn(&records);
            let Some(last) = records.last() else { return Ok(written) };
            after = Some(last.lane.clone());
            written += import_all(self.to, records, &|lanes| Import::Lanes(seat, lanes)).await?;
        }
    }

    async fn sidings(&self) -> Result<Written> {
        let seat = self.seat;
        let kind = Kind {
            ask: &|last: Option<&(EventId, LaneName)>, limit| {
                Query::Sided(seat, last.map_or(EventId(0), |(id, _)| *id), limit)
            },
            open: |rows| if let Rows::Sided(sided) = rows { Some(sided) } else { None },
            give: &|sided| Import::Seat(seat, Rows::Sided(sided)),
        };
        copy_rows(self.from, self.to, kind, |row| Some(row.clone())).await
    }

    async fn states(&self) -> Result<Written> {
        let seat = self.seat;
        let kind = Kind {
            ask: &|last: Option<&(Key, Versioned)>, limit| {
                Query::States(seat, last.map(|(key, _)| key.clone()), limit)
            },
            open: |rows| if let Rows::States(states) = rows { Some(states) } else { None },
            give: &|states| Import::Seat(seat, Rows::States(states)),
        };
        copy_rows(self.from, self.to, kind, |row| Some(row.clone())).await
    }

    /// Ends other than `done`, and dead letters.
    async fn ends(&self) -> Result<Written> {
        let (seat, shift) = (self.seat, self.shift);
        let endings = Kind {
            ask: &|last: Option<&Ending>, limit| {
                Query::Endings(seat, last.map_or(EventId(0), |found| found.id), limit)
            },
            open: |rows| if let Rows::Endings(endings) = rows { Some(endings) } else { None },
            give: &|endings| Import::Seat(seat, Rows::Endings(endings)),
        };
        let dead = Kind {
            ask: &|last: Option<&DeadLetter>, limit| {
                Query::Dead(seat, last.map_or(EventId(0), |found| found.event.id), limit)
            },
            open: |rows| if let Rows::Dead(dead) = rows { Some(dead) } else { None },
            give: &|dead| Import::Seat(seat, Rows::Dead(dead)),
        };
        let mut written = copy_rows(self.from, self.to, endings, |row| Some(row.clone())).await?;
        let moved =
            |row: &DeadLetter| Some(DeadLetter { event: shift.event(row.event.clone()), ..row.clone() });
        written += copy_rows(self.from, self.to, dead, moved).await?;
        Ok(written)
    }

    async fn outbox(&self) -> Result<Written> {
        let seat = self.seat;
        let kind = Kind {
            ask: &|last: Option<&OutboxRow>, limit| {
                Query::Outbox(seat, last.map_or(0, |found| found.number), limit)
            },
            open: |rows| if let Rows::Outbox(emits) = rows { Some(emits) } else { None },
            give: &|emits| Import::Seat(seat, Rows::Outbox(emits)),
        };
        copy_rows(self.from, self.to, kind, |row| Some(row.clone())).await
    }

    async fn requests(&self) -> Result<Written> {
        let seat = self.seat;
        let requests = Kind {
            ask: &|last: Option<&RequestRow>, limit| {
                Query::Requests(seat, last.map_or(0, |found| found.number), limit)
            },
            open: |rows| if let Rows::Requests(requests) = rows { Some(requests) } else { None },
            give: &|requests| Import::Seat(seat, Rows::Requests(requests)),
        };
        let tokens = Kind {
            ask: &|last: Option<&TokenRow>, limit| Query::Tokens(seat, last.map(|found| found.token), limit),
            open: |rows| if let Rows::Tokens(tokens) = rows { Some(tokens) } else { None },
            give: &|tokens| Import::Seat(seat, Rows::Tokens(tokens)),
        };
        let mut written = copy_rows(self.from, self.to, requests, |row| Some(row.clone())).await?;
        written += copy_rows(self.from, self.to, tokens, |row: &TokenRow| Some(row.clone())).await?;
        Ok(written)
    }
}
