//! Import: rows as the lists answer them, one call per piece.

use laneway_core::store::{Defined, EndRow, Import, Rows, SeatView, TailView};
use laneway_core::{Event, Refusal, Result, Seat, Shard, ShardInfo};

use crate::failure::Subject;
use crate::pack::{Arg, named, parts};
use crate::store::RedisStore;
use crate::{event, rows, wire};

impl RedisStore {
    /// Takes over one piece of a shard.
    pub(crate) async fn import(&self, piece: Import) -> Result<Defined> {
        let script = &self.scripts().import;
        let stream = match piece {
            Import::Shard(shard, Rows::Seats(info, seats)) => {
                self.import_seats(shard, &info, &seats).await?;
                shard.stream
            }
            Import::Shard(shard, rows) => {
                self.on_shard(script, shard, &shard_call(&rows)?).await?;
                shard.stream
            }
            Import::Seat(seat, rows) => {
                self.on_seat(script, seat, &seat_call(&rows)?.with("processor", true)).await?;
                seat.shard.stream
            }
            Import::Lanes(seat, lanes) => {
                let records =
                    lanes.iter().map(|record| parts![rows::lane_name(&record.lane), rows::lane_arg(record)]);
                let call = piece_call("lanes", Arg::list(records)).with("processor", true);
                self.on_seat(script, seat, &call).await?;
                seat.shard.stream
            }
            Import::Finish(shard, info) => {
                let finish = named! {
                    inc: info.incarnation.0, head: info.head, time: info.time, sealed: info.sealed,
                };
                self.on_shard(script, shard, &named! { finish: finish }).await?;
                shard.stream
            }
            Import::Numbers(streams, processors) => {
                let call = named! { op: "numbers", streams: streams.0, processors: processors.0 };
                self.ask_catalogue(Subject::Store, &call).await?;
                return Ok(Defined { stream: None });
            }
            Import::Stream(info) => info.id, // has a way of its own, see `define`
        };
        self.defined(stream).await
    }

    async fn import_seats(&self, shard: Shard, info: &ShardInfo, seats: &[SeatView]) -> Result<()> {
        let processors: Vec<_> = seats.iter().map(|view| view.processor).collect();
        let views = seats.iter().enumerate().map(|(at, view)| {
            let progress = &view.progress;
            let words = progress.window.words().flat_map(|(word, bits)| [Arg::from(word), rows::eight_bytes(bits).into()]);
            let seat = named! {
                term: progress.fence.term.0, version: progress.fence.version, adoptions: progress.fence.adoptions,
                was_clean: progress.clean, clean: progress.clean, request_no: view.request_no,
                requests_applied: progress.requests_applied, emitted: progress.emitted, forwarded: progress.forwarded,
                status: rows::status_code(progress.status), note: progress.note.clone(), life: progress.incarnation, floor: progress.window.floor(),
            };
            named! { place: at + 1, seat: seat, window: Arg::List(words.collect()) }
        });
        let gaps = info.gaps.iter().map(|(first, last)| parts![*first, *last]);
        let about = named! {
            adoptions: info.adoptions, layout: info.layout, sealed: info.sealed, first_id: info.first_id,
            first_term: info.first_term.0, head: info.head, scheduled: info.scheduled, trimmed: info.trimmed,
            time: info.time, gaps: Arg::list(gaps),
        };
        let call = named! { piece: "seats", info: about, views: Arg::list(views) };
        let keys = self.names().shard(shard, &processors);
        // Errors about a seat name the first one.
        let subject = match processors.first() {
            Some(processor) => Subject::Seat(Seat { shard, processor: *processor }),
            None => Subject::Shard(shard),
        };
        self.mending(&self.scripts().import, subject, &keys, &call).await?;
        Ok(())
    }
}

fn piece_call(piece: &str, rows: Arg) -> Arg {
    named! { piece: piece, rows: rows }
}

fn shard_call(rows: &Rows) -> Result<Arg> {
    Ok(match rows {
        Rows::Events(events) => piece_call("events", Arg::list(events.iter().map(event_arg))),
        Rows::Tails(tails) => {
            let rows = tails
                .iter()
                .map(|found| parts![found.key.to_bytes(), rows::tail_row(&found.tail), found.tail.id]);
            piece_call("tails", Arg::list(rows))
        }
        Rows::Objects(objects) => {
            let rows = objects.iter().map(|found| {
                parts![found.key.to_bytes(), rows::object_row(found.version, found.value.as_ref())]
            });
            piece_call("objects", Arg::list(rows))
        }
        Rows::Dedup(entries) => {
            let rows = entries.iter().map(|found| {
                let kept = parts![
                    found.body,
                    found.until,
                    found.event.unwrap_or_default(),
                    rows::receipt_arg(&found.receipt)?
                ];
                Ok(parts![rows::dedup_name(found.name.key.as_ref(), &found.name.id), kept])
            });
            piece_call("dedup", Arg::List(rows.collect::<Result<_>>()?))
        }
        Rows::Sources(sources) => {
            let rows = sources
                .iter()
                .map(|found| parts![rows::source_name(&found.source), found.term.0, found.number]);
            piece_call("sources", Arg::list(rows))
        }
        Rows::Scheduled(drafts) => {
            let rows = drafts.iter().map(|found| {
                let (clock, at) = event::due_parts(found.due);
                parts![
                    found.ticket,
                    clock,
                    at,
                    found.accepted_at,
                    rows::draft_arg(&found.draft, found.draft.origin_seq)
                ]
            });
            piece_call("scheduled", Arg::list(rows))
        }
        Rows::Tickets(tickets) => {
            let rows = tickets.iter().map(|found| parts![found.ticket, rows::ticket_arg(found)]);
            piece_call("tickets", Arg::list(rows))
        }
        Rows::Ends(ends) => piece_call("ends", Arg::list(ends.iter().map(end_arg))),
        Rows::Counts(counts) => piece_call("expired", parts![counts.expired, counts.dedup_evicted]),
        _ => return Err(Refusal::new("rows", "of another kind", "rows of a shard").into()),
    })
}

fn event_arg(found: &Event) -> Arg {
    let tail = found.seq.map(|seq| {
        rows::tail_row(&TailView {
            id: found.id,
            seq,
            generation: found.generation,
            incarnation: found.incarnation,
            deleted: found.delete,
            object: None,
        })
    });
    parts![found.id, event::write(found), found.key.as_ref().map(|key| key.to_bytes()), tail, found.priority]
}

fn end_arg(row: &EndRow) -> Arg {
    let [kind, result, chunks, rest] = rows::end_parts(&row.end);
    parts![
        row.end.id,
        parts![row.keep_until, row.keep_until, row.end.finished_at, kind, result, chunks, rest]
    ]
}

fn seat_call(rows: &Rows) -> Result<Arg> {
    Ok(match rows {
        Rows::Sided(sided) => {
            piece_call("sided", Arg::list(sided.iter().map(|(id, lane)| parts![*id, rows::lane_name(lane)])))
        }
        Rows::States(states) => {
            let rows = states.iter().map(|(key, value)| parts![key.to_bytes(), rows::versioned_row(value)]);
            piece_call("states", Arg::list(rows))
        }
        Rows::Endings(endings) => {
            let rows = endings.iter().map(|ending| parts![ending.id, wire::store(ending)]);
            piece_call("endings", Arg::list(rows))
        }
        Rows::Dead(dead) => {
            let rows = dead.iter().map(|letter| {
                let row = [&letter.at.0.to_be_bytes()[..], &rows::dead_rest(letter)].concat();
                parts![letter.event.id, row]
            });
            piece_call("dead", Arg::list(rows))
        }
        Rows::Outbox(emits) => {
            let rows = emits.iter().map(|found| {
                let lives = [found.incarnation.to_be_bytes(), found.adoptions.to_be_bytes()].concat();
                parts![found.number, [lives, wire::store(&found.emit).to_vec()].concat()]
            });
            piece_call("outbox", Arg::list(rows))
        }
        Rows::Requests(requests) => {
            let rows = requests.iter().map(|found| {
                let row = [&found.token.0.to_be_bytes()[..], &wire::store(&found.op)].concat();
                parts![found.number, row]
            });
            piece_call("requests", Arg::list(rows))
        }
        Rows::Tokens(tokens) => {
            let rows = tokens.iter().map(|found| {
                let until = found.until.unwrap_or_default();
                parts![found.token.0, parts![found.number, until, found.answer.clone()]]
            });
            piece_call("tokens", Arg::list(rows))
        }
        _ => return Err(Refusal::new("rows", "of another kind", "rows of a seat").into()),
    })
}
