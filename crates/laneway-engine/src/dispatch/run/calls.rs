//! What a seat's loop asks of the store and has not been answered yet: one call of each kind at a time.

use std::sync::Arc;

use futures::FutureExt;
use laneway_core::limits::PAGE_BYTES_MAX;
use laneway_core::store::{LaneSelect, Lanes, Promote, Query, Read, ReadFrom, Rows};
use laneway_core::{LaneName, StoreError};

use super::Loop;
use crate::cluster::Standing;
use crate::commit::send;
use crate::dispatch::fetch::{load_due, load_named, look_up_requests, plain};
use crate::dispatch::intake::Views;
use crate::dispatch::loading::SIDING_CHUNK;
use crate::dispatch::own::progress_of;
use crate::dispatch::urgent::look;
use crate::log::{Emitter, forward_outbox};
use crate::service::Now;

/// Events of one read at most: what is done with them keeps a thread of the runtime for a while.
const READ_MAX: usize = 512;
/// Lanes loaded at a time.
const LOAD_MAX: usize = 64;
/// Due drafts moved at a time.
const PROMOTE_MAX: usize = 1_000;

impl Loop<'_> {
    pub(super) fn send_commit(&mut self, now: Now) {
        if self.commit.is_some() {
            return;
        }
        let (ground, node) = (Arc::clone(&self.ground), self.holder.node);
        let Some(commit) = self.seat.next_commit(|| ground.env.commit_id(), now) else { return };
        let sending = async move {
            let env = &ground.env;
            let leased = || ground.standing.grant(env.steady()).is_some_and(|grant| grant.node == node);
            send(env, &*ground.store, commit, leased).await
        };
        self.commit = Some(sending.boxed());
    }

    pub(super) fn send_read(&mut self, now: Now) {
        let busy = self.reading.is_some() || self.page.is_some();
        if busy || !(self.look || self.seat.is_behind()) {
            return;
        }
        // Without room for events it still looks for requests and for what is due.
        let (after, limit) = self.seat.wants_read();
        if limit == 0 && !self.look {
            return;
        }
        self.look = false;
        self.look_at = now.steady.after(self.look_wait);
        self.reads_events = limit > 0;
        self.seat.read_sent();
        let id = self.seat.id();
        let read = Read {
            shard: id.shard,
            from: ReadFrom::After(after),
            limit: limit.min(READ_MAX),
            bytes: PAGE_BYTES_MAX / 2,
            processor: Some(id.processor),
            states: self.seat.reads_states(),
        };
        let store = Arc::clone(&self.ground.store);
        self.reading = Some(async move { store.read(read).await }.boxed());
    }

    /// Takes a page in, or looks up the lanes it needs first.
    pub(super) fn send_look_up(&mut self, now: Now) {
        if self.looking_up.is_some() {
            return;
        }
        let Some((page, views)) = self.page.take() else { return };
        let names = self.seat.unknown_lanes(&page, &views);
        if names.is_empty() {
            self.seat.take_page(page, &views, now);
            return;
        }
        let mut views = views;
        self.seat.forget_changed(&mut views);
        self.page = Some((page, views));
        // What is just changing is not worth asking for before its commit is durable.
        let changing = names.iter().any(|lane| self.seat.is_changing(lane));
        if changing || now.steady < self.read_after {
            return;
        }
        self.seat.look_up_sent();
        // Their states come with the page.
        let select = LaneSelect::Names(names.clone());
        let lanes = Lanes { seat: self.seat.id(), select, siding: SIDING_CHUNK, states: false };
        let store = Arc::clone(&self.ground.store);
        self.looking_up = Some(
            async move {
                let views = store.lanes(lanes).await?;
                let mut found: Views =
                    views.into_iter().map(|view| (view.record.lane.clone(), view)).collect();
                // A lane that the store knows nothing of is plain; the seat must know that it was asked for.
                for name in names {
                    found.entry(name.clone()).or_insert_with(|| plain(name));
                }
                Ok(found)
            }
            .boxed(),
        );
    }

    pub(super) fn send_load(&mut self, now: Now) {
        if self.loading.is_some() || self.seat.is_draining() {
            return;
        }
        let room = self.seat.room();
        if room.is_none() {
            return;
        }
        let (store, id) = (Arc::clone(&self.ground.store), self.seat.id());
        let is_due = self.lanes_due_at.is_some_and(|due| due <= now.steady);
        // In turn: lanes that can never be loaded by name must not keep those back whose time has come.
        let by_time = is_due && std::mem::take(&mut self.loaded_by_name);
        let most = if by_time { 0 } else { LOAD_MAX };
        let wanted: Vec<LaneName> = std::iter::from_fn(|| self.seat.next_wanted_lane()).take(most).collect();
        if !wanted.is_empty() {
            self.seat.load_sent();
            self.loaded_by_name = true;
            self.loading_named.clone_from(&wanted);
            self.loading = Some(async move { load_named(&*store, id, wanted, room).await }.boxed());
        } else if is_due {
            self.lanes_due_at = None;
            self.seat.load_sent();
            self.loading = Some(async move { load_due(&*store, id, now, room).await }.boxed());
        }
    }

    pub(super) fn send_wish(&mut self) {
        if self.wishing.is_some() {
            return;
        }
        let Some((after, limit)) = self.seat.wants_requests() else { return };
        self.seat.wish_sent();
        let (ground, id) = (Arc::clone(&self.ground), self.seat.id());
        let by_lane = self.seat.dead_lanes();
        self.wishing = Some(
            async move {
                let Rows::Requests(rows) = ground.store.query(Query::Requests(id, after, limit)).await?
                else {
                    return Ok(Vec::new());
                };
                look_up_requests(&ground, id, rows, after, &by_lane).await
            }
            .boxed(),
        );
    }

    pub(super) fn send_urgent(&mut self) {
        if self.urging.is_some() {
            return;
        }
        let Some((after, read_to)) = self.seat.wants_urgent() else { return };
        self.seat.urgent_sent();
        let (store, id) = (Arc::clone(&self.ground.store), self.seat.id());
        self.urging = Some(async move { look(&*store, id, after, read_to).await }.boxed());
    }

    pub(super) fn send_forward(&mut self, now: Now) {
        if self.forwarding.is_some() || self.forward_after.is_some_and(|at| at > now.steady) {
            return;
        }
        self.forward_after = None;
        let Some(after) = self.seat.wants_forward() else { return };
        let ground = Arc::clone(&self.ground);
        let from = Emitter { seat: self.seat.id(), fence: self.seat.fence(), life: self.holder.life };
        self.forwarding =
            Some(async move { forward_outbox(&*ground.store, &ground.catalogue, from, after).await }.boxed());
    }

    pub(super) fn send_count(&mut self, now: Now) {
        if self.counting.is_some() || self.count_at > now.steady || !self.seat.wants_dead_count() {
            return;
        }
        self.seat.dead_count_sent();
        let (store, id) = (Arc::clone(&self.ground.store), self.seat.id());
        let counting = async move {
            let Rows::Counts(counts) = store.query(Query::Counts(id.shard)).await? else {
                return Err(StoreError::Corrupt {
                    what: "the store answered another list than counts".to_owned(),
                });
            };
            let found = counts.seats.iter().find(|(processor, _)| *processor == id.processor);
            Ok(found.map_or(0, |(_, [_, dead, _, _])| *dead))
        };
        self.counting = Some(counting.boxed());
    }

    pub(super) fn send_check(&mut self, now: Now) {
        let others = matches!(self.ground.standing, Standing::Member(_));
        if !others || self.checking.is_some() || self.check_at > now.steady {
            return;
        }
        let (ground, id) = (Arc::clone(&self.ground), self.seat.id());
        self.checking =
            Some(async move { progress_of(&ground, id).await.map(|progress| progress.fence) }.boxed());
    }

    pub(super) fn send_promote(&mut self, now: Now) {
        if self.promoting.is_some() || self.promote_at.is_none_or(|at| at > now.steady) {
            return;
        }
        self.promote_at = None;
        let (store, shard) = (Arc::clone(&self.ground.store), self.seat.id().shard);
        self.promoting =
            Some(async move { store.promote(Promote { shard, limit: PROMOTE_MAX }).await }.boxed());
    }
}
