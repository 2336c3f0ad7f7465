//! Jobs over HTTP: 64 connections that each submit one and wait for its result. A kept process runs them.

use std::sync::Arc;

use super::asking::{self, Asking};
use super::pipe;
use super::place::{ANSWER_BYTES, KEYS, Place, STREAM};
use super::raw::{self, Calling};
use super::rounds::{About, Must, in_turns};
use crate::Failure;
use crate::context::Context;
use crate::http::{event, post_with};
use crate::report::Row;
use crate::workload::{EVENT_BYTES, RESULT_BYTES};

pub(super) const NAME: &str = "http submit and wait";

const CONNECTIONS: usize = 64;
const MUST: Must = Must { per_sync: 0.6 * 16.0, at_most: 8_000.0 };
/// Processes that run jobs.
const PROCESSES: usize = 16;
/// Bytes of the end of a job beside its result.
const END_BYTES: usize = 40;

pub(super) fn run(context: &Context) -> Result<Row, Failure> {
    let place = Place::new(context, &pipe::settings(PROCESSES)?)?;
    let ours = Arc::new(Asking {
        requests: requests(&format!("/v1/streams/{STREAM}/jobs")),
        per_call: 1,
        is_right: |answer| {
            answer.status == 200 && answer.body.windows(15).any(|text| text == br#""status":"done""#)
        },
    });
    let theirs = Arc::new(Asking {
        requests: requests(&format!("/{}", 4 * ANSWER_BYTES)),
        per_call: 1,
        is_right: |answer| answer.status == 201,
    });
    let calling = Calling {
        callers: CONNECTIONS,
        per_call: 1,
        event_bytes: EVENT_BYTES,
        end_bytes: Some(END_BYTES + RESULT_BYTES),
    };
    let Place { server, bare, .. } = &place;
    let rounds = in_turns(
        context,
        NAME,
        |times| asking::round(&place.sending, server.address, || server.cpu_seconds(), &ours, times),
        |times| asking::round(&place.sending, bare.address, || bare.cpu_seconds(), &theirs, times),
        |times| raw::round(&place.runtime, &place.raw, calling, times),
    )?;
    let about = About { name: NAME, baseline: "bare axum", unit: "jobs/s", must: Some(MUST) };
    let note = format!(
        "{CONNECTIONS} connections, {KEYS} keys, {PROCESSES} kept processes as handler; an event, its run and its result, so \
         two syncs each; the raw log has both writes too"
    );
    let row = rounds.row(about, server.resident_mib()?, &note);
    place.end(context)?;
    Ok(row)
}

fn requests(path: &str) -> Vec<Vec<Vec<u8>>> {
    let mut rng = fastrand::Rng::with_seed(17);
    let each = (KEYS as usize).div_ceil(CONNECTIONS);
    let mut numbers = (0..KEYS).cycle();
    let mut request =
        |_| post_with(path, "Prefer: wait=30\r\n", &event(&mut rng, numbers.next().unwrap_or_default()));
    (0..CONNECTIONS).map(|_| (0..each).map(&mut request).collect()).collect()
}
