//! Appends over HTTP: one event per call on 64 connections, and batches.

use std::sync::Arc;

use super::asking::{self, Asking};
use super::place::{ANSWER_BYTES, KEYS, Place, STREAM};
use super::raw::{self, Calling};
use super::rounds::{About, Must, in_turns};
use crate::Failure;
use crate::context::Context;
use crate::http::{event, post};
use crate::report::Row;

/// One way to append.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    connections: usize,
    per_call: usize,
    must: Option<Must>,
}

pub(super) const SINGLE: Shape = Shape {
    name: "http append 1 per call",
    connections: 64,
    per_call: 1,
    must: Some(Must { per_sync: 0.6 * 32.0, at_most: 15_000.0 }),
};
pub(super) const BATCH: Shape =
    Shape { name: "http append 100 per call", connections: 16, per_call: 100, must: None };

/// Bytes of an event in the store: its payload, its key, times and chain.
const EVENT_BYTES: usize = 131;

pub(super) fn run(context: &Context, shape: Shape) -> Result<Row, Failure> {
    let place = Place::new(context, "")?;
    let ours = asking(shape, &format!("/v1/streams/{STREAM}/events"));
    let theirs = asking(shape, &format!("/{}", shape.per_call * ANSWER_BYTES));
    let Shape { connections: callers, per_call, .. } = shape;
    let calling = Calling { callers, per_call, event_bytes: EVENT_BYTES, end_bytes: None };
    let Place { server, bare, .. } = &place;
    let rounds = in_turns(
        context,
        shape.name,
        |times| asking::round(&place.sending, server.address, || server.cpu_seconds(), &ours, times),
        |times| asking::round(&place.sending, bare.address, || bare.cpu_seconds(), &theirs, times),
        |times| raw::round(&place.runtime, &place.raw, calling, times),
    )?;
    let about = About { name: shape.name, baseline: "bare axum", unit: "events/s", must: shape.must };
    let note = format!("{callers} connections, {KEYS} keys");
    let row = rounds.row(about, server.resident_mib()?, &note);
    place.end(context)?;
    Ok(row)
}

/// As many different requests as there are keys, spread over the connections.
fn asking(shape: Shape, path: &str) -> Arc<Asking> {
    let mut rng = fastrand::Rng::with_seed(11);
    let each = (KEYS as usize).div_ceil(shape.connections * shape.per_call);
    let mut numbers = (0..KEYS).cycle();
    let mut request = || {
        let mut events = (0..shape.per_call).filter_map(|_| Some(event(&mut rng, numbers.next()?)));
        match shape.per_call {
            1 => post(path, &events.next().unwrap_or_default()),
            _ => post(path, &format!("[{}]", events.collect::<Vec<_>>().join(","))),
        }
    };
    let requests = (0..shape.connections).map(|_| (0..each).map(|_| request()).collect()).collect();
    Arc::new(Asking { requests, per_call: shape.per_call, is_right: |answer| answer.status == 201 })
}
