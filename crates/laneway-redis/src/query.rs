//! Lists: which script answers which, and what its rows are.

use bytes::Buf;
use laneway_core::store::{
    Counts, DedupName, DedupRow, EndedPage, JobResult, LaneTail, ObjectRow, OutboxRow, Query, RequestRow,
    Rows, ScheduledRow, SeatView, SourceRow, StoreView, TicketRow, TokenRow,
};
use laneway_core::{EventId, ProcessorId, Result, Seat, Shard, Steady, StreamId, Term, Timestamp, TokenId};

use crate::failure::Subject;
use crate::pack::{Arg, named};
use crate::reply::{Reply, bits, corrupt};
use crate::store::RedisStore;
use crate::{event, rows, wire};

fn call(list: &str, from: impl Into<Arg>, limit: usize) -> Arg {
    named! { list: list, from: from.into(), limit: limit }
}

impl RedisStore {
    /// Reads one list.
    pub(crate) async fn list(&self, query: Query) -> Result<Rows> {
        match query {
            Query::Streams | Query::Store => self.list_store(matches!(query, Query::Store)).await,
            Query::Seats(shard) => {
                let mut both = self.of_shard_and_seats(shard, "seats").await?.list()?;
                let info = rows::shard(both.list()?)?;
                Ok(Rows::Seats(info, both.list()?.each(seat_view)?))
            }
            Query::Counts(shard) => counts(self.of_shard_and_seats(shard, "counts").await?.list()?),
            Query::Dead(seat, after, limit) => {
                let rows = self.of_seat(seat, call("dead", after, limit)).await?;
                Ok(Rows::Dead(rows.each(|row| rows::dead(row.id()?, row.bytes()?))?))
            }
            Query::Endings(seat, after, limit) => {
                let rows = self.of_seat(seat, call("endings", after, limit)).await?;
                Ok(Rows::Endings(rows.each(|row| {
                    row.id()?;
                    wire::load(row.bytes()?)
                })?))
            }
            Query::Requests(seat, after, limit) => {
                let rows = self.of_seat(seat, call("requests", after, limit)).await?;
                Ok(Rows::Requests(rows.each(|row| {
                    let number = row.number()?;
                    let (token, op) = split(row.bytes()?, 16)?;
                    Ok(RequestRow { number, token: TokenId(bits(&token)?), op: wire::load(op)? })
                })?))
            }
            Query::Outbox(seat, after, limit) => {
                let rows = self.of_seat(seat, call("outbox", after, limit)).await?;
                Ok(Rows::Outbox(rows.each(|row| {
                    let number = row.number()?;
                    let (mut lives, emit) = split(row.bytes()?, 8)?;
                    let (incarnation, adoptions) = (lives.get_u32(), lives.get_u32());
                    Ok(OutboxRow { number, incarnation, adoptions, emit: wire::load(emit)? })
                })?))
            }
            Query::States(seat, after, limit) => {
                let after = after.map(|key| key.to_bytes());
                let rows = self.of_seat(seat, call("states", after, limit)).await?;
                Ok(Rows::States(rows.each(|row| Ok((row.key()?, rows::versioned(row.bytes()?)?)))?))
            }
            Query::Sided(seat, after, limit) => {
                let rows = self.of_seat(seat, call("sided", after, limit)).await?;
                Ok(Rows::Sided(rows.each(|row| Ok((row.id()?, rows::lane_of(row.bytes()?)?)))?))
            }
            Query::Tokens(seat, after, limit) => {
                let rows = self.of_seat(seat, call("tokens", after.map(|token| token.0), limit)).await?;
                Ok(Rows::Tokens(rows.each(token)?))
            }
            of_shard => self.list_shard(of_shard).await,
        }
    }

    async fn list_shard(&self, query: Query) -> Result<Rows> {
        Ok(match query {
            Query::Lane(shard, key) => {
                let mut answer = self.of_shard(shard, call("lane", key.to_bytes(), 1)).await?;
                let found = answer.optional_list()?;
                let tail = found.map(|mut found| rows::tail(&found.bytes()?, found.optional()?));
                Rows::Lane(tail.transpose()?)
            }
            Query::Tails(shard, after, limit) => {
                let after = after.map(|key| key.to_bytes());
                let rows = self.of_shard(shard, call("tails", after, limit)).await?.list()?;
                Rows::Tails(rows.each(|rows| {
                    let mut row = rows.list()?;
                    Ok(LaneTail { key: row.key()?, tail: rows::tail(&row.bytes()?, row.optional()?)? })
                })?)
            }
            Query::Ended(shard, after, limit) => {
                let mut page = self.of_shard(shard, call("ends", after, limit)).await?.list()?;
                let ends = page.list()?.each(|rows| Ok(end(rows.list()?)?.end))?;
                Rows::Ended(EndedPage { ends, next: page.optional_id()? })
            }
            Query::Ends(shard, after, limit) => {
                let call = call("ends", after, limit).with("all", true);
                let mut page = self.of_shard(shard, call).await?.list()?;
                Rows::Ends(page.list()?.each(|rows| end(rows.list()?))?)
            }
            Query::Scheduled(shard, after, limit) => {
                let rows = self.of_shard(shard, call("scheduled", after, limit)).await?.list()?;
                Rows::Scheduled(rows.each(scheduled)?)
            }
            Query::Urgent(shard, after, limit) => {
                let rows = self.of_shard(shard, call("urgent", after, limit)).await?.list()?;
                Rows::Urgent(rows.each(urgent)?)
            }
            Query::Events(shard, after, limit) => {
                let rows = self.of_shard(shard, call("events", after, limit)).await?.list()?;
                Rows::Events(rows.each(|row| event::read(row.id()?, row.bytes()?))?)
            }
            Query::Objects(shard, after, limit) => {
                let after = after.map(|key| key.to_bytes());
                let rows = self.of_shard(shard, call("objects", after, limit)).await?.list()?;
                Rows::Objects(rows.each(|row| {
                    let key = row.key()?;
                    let (version, value) = rows::object(row.bytes()?)?;
                    Ok(ObjectRow { key, version, value })
                })?)
            }
            Query::Dedup(shard, after, limit) => {
                let after = after.map(|name| rows::dedup_name(name.key.as_ref(), &name.id));
                let rows = self.of_shard(shard, call("dedup", after, limit)).await?.list()?;
                Rows::Dedup(rows.each(dedup)?)
            }
            Query::Sources(shard, after, limit) => {
                let after = after.map(|source| rows::source_name(&source));
                let rows = self.of_shard(shard, call("sources", after, limit)).await?.list()?;
                Rows::Sources(rows.each(source)?)
            }
            Query::Tickets(shard, after, limit) => {
                let rows = self.of_shard(shard, call("tickets", after, limit)).await?.list()?;
                Rows::Tickets(rows.each(ticket)?)
            }
            other => return Err(corrupt(format!("{other:?} is no list of a shard"))),
        })
    }

    async fn list_store(&self, counters: bool) -> Result<Rows> {
        let mut reply = self.ask_catalogue(Subject::Store, &named! { op: "list" }).await?;
        let streams = reply.list()?.each(|rows| crate::define::read_info(rows.list()?))?;
        if !counters {
            return Ok(Rows::Streams(streams));
        }
        let (streams, processors) = (StreamId(reply.small()?), ProcessorId(reply.small()?));
        let (calendar, steady) = (Timestamp(reply.number()?), Steady(reply.number()?));
        Ok(Rows::Store(StoreView { calendar, steady, streams, processors }))
    }

    async fn of_shard(&self, shard: Shard, call: Arg) -> Result<Reply> {
        self.on_shard(&self.scripts().query, shard, &call).await
    }

    async fn of_shard_and_seats(&self, shard: Shard, list: &str) -> Result<Reply> {
        self.on_seats(&self.scripts().query, shard, &named! { list: list }).await
    }

    async fn of_seat(&self, seat: Seat, call: Arg) -> Result<Reply> {
        let call = call.with("processor", seat.processor.0);
        self.on_seat(&self.scripts().query, seat, &call).await?.list()
    }
}

fn split(mut bytes: bytes::Bytes, at: usize) -> Result<(bytes::Bytes, bytes::Bytes)> {
    if bytes.len() < at {
        return Err(corrupt(format!("a row of {} bytes", bytes.len())));
    }
    let first = bytes.split_to(at);
    Ok((first, bytes))
}

fn seat_view(rows: &mut Reply) -> Result<SeatView> {
    let mut row = rows.list()?;
    let processor = ProcessorId(row.small()?);
    let seat = rows::seat(row.list()?)?;
    Ok(SeatView { processor, progress: seat.progress, request_no: seat.request_no })
}

fn counts(mut from: Reply) -> Result<Rows> {
    let scheduled = from.number()?;
    let seats = from.list()?.each(|rows| {
        let mut row = rows.list()?;
        let processor = ProcessorId(row.small()?);
        Ok((processor, [row.number()?, row.number()?, row.number()?, row.number()?]))
    })?;
    let (adoptions, expired, dedup_evicted) = (from.small()?, from.number()?, from.number()?);
    Ok(Rows::Counts(Counts { scheduled, seats, adoptions, expired, dedup_evicted }))
}

fn end(mut row: Reply) -> Result<laneway_core::store::EndRow> {
    let id: EventId = row.id()?;
    let found = rows::end(id, row.list()?)?;
    debug_assert!(
        !matches!(found.end.result, JobResult::Stashed { chunks: 0, .. }),
        "no stashed result is empty"
    );
    Ok(found)
}

fn scheduled(row: &mut Reply) -> Result<ScheduledRow> {
    let ticket = row.number()?;
    let mut waiting = row.list()?;
    Ok(ScheduledRow {
        ticket,
        due: rows::due(&mut waiting)?,
        accepted_at: waiting.timestamp()?,
        draft: rows::draft(waiting.list()?)?,
    })
}

fn urgent(row: &mut Reply) -> Result<(EventId, u8)> {
    let text = row.text()?;
    let parts =
        text.split_once(':').and_then(|(id, priority)| Some((id.parse().ok()?, priority.parse().ok()?)));
    let (id, priority) = parts.ok_or_else(|| corrupt(format!("urgent event {text}")))?;
    Ok((EventId(id), priority))
}

fn dedup(row: &mut Reply) -> Result<DedupRow> {
    let (key, id) = rows::dedup_name_of(row.bytes()?)?;
    let mut kept = row.list()?;
    let (body, until, event) = (kept.bits()?, kept.timestamp()?, kept.optional_id()?);
    let receipt = rows::receipt(kept.list()?)?;
    Ok(DedupRow { name: DedupName { key, id }, receipt, body, until, event })
}

fn source(row: &mut Reply) -> Result<SourceRow> {
    let source = rows::source_of(row.bytes()?)?;
    let (mut seen, _) = split(row.bytes()?, 16)?;
    Ok(SourceRow { source, term: Term(seen.get_u64()), number: seen.get_u64() })
}

fn ticket(row: &mut Reply) -> Result<TicketRow> {
    let ticket = row.number()?;
    rows::ticket(ticket, row.list()?)
}

fn token(row: &mut Reply) -> Result<TokenRow> {
    let token = TokenId(row.bits()?);
    let mut kept = row.list()?;
    let number = kept.number()?;
    let until = Some(kept.timestamp()?).filter(|until| until.0 > 0);
    Ok(TokenRow { token, number, until, answer: kept.bytes()? })
}
