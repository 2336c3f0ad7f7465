//! Drafts that are a key and a body each, which most calls bring: as `plain.lua` takes them, and what became of them.

use std::collections::HashMap;

use bytes::Buf;
use laneway_core::store::Receipt;
use laneway_core::{Draft, EventId, Result, Seq};

use crate::event;
use crate::pack::Arg;
use crate::reply::corrupt;

/// Bytes of a number in what the script answers.
const NUMBER_BYTES: usize = 6;

/// Whether a draft is a key and a body, its number at its origin aside.
pub(crate) fn is_plain(draft: &Draft) -> bool {
    // Every part is named, so that a new one cannot be forgotten here.
    matches!(
        draft,
        Draft {
            key: Some(_),
            kind: _,
            data: _,
            headers: _,
            origin_seq: _,
            generation: None,
            incarnation: 0,
            delete: false,
            delay: None,
            priority: 0,
            ttl: None,
            dedup: None,
            expect_prev: None,
            job: None,
        }
    )
}

/// The keys, each once; the place of each draft's key among them, counted from 1; key and body of each draft as the log has them.
pub(crate) fn call(drafts: &[Draft]) -> [(&'static str, Arg); 3] {
    let (mut keys, mut lanes, mut rests) = (Vec::new(), Vec::with_capacity(drafts.len()), Vec::new());
    let mut places = HashMap::with_capacity(drafts.len());
    for draft in drafts {
        let Some(key) = &draft.key else { continue };
        let lane = *places.entry(key.bytes()).or_insert_with(|| {
            keys.push(key.to_bytes());
            keys.len()
        });
        lanes.push(lane);
        rests.push(event::keyed_body(key.bytes(), &draft.kind, &draft.headers, &draft.data));
    }
    [("keys", Arg::list(keys)), ("lanes", Arg::list(lanes)), ("rests", Arg::list(rests))]
}

/// What became of them: the id before the first, then of each the event before it in its lane and its number there.
pub(crate) fn receipts(mut bytes: &[u8]) -> Result<Vec<Receipt>> {
    if bytes.len() % (2 * NUMBER_BYTES) != NUMBER_BYTES {
        return Err(corrupt(format!("receipts of {} bytes", bytes.len())));
    }
    let before = bytes.get_uint(NUMBER_BYTES);
    let mut receipts = Vec::with_capacity(bytes.len() / (2 * NUMBER_BYTES));
    while bytes.has_remaining() {
        let (prev, seq) = (bytes.get_uint(NUMBER_BYTES), bytes.get_uint(NUMBER_BYTES));
        let id = EventId(before + 1 + receipts.len() as u64);
        let prev = Some(EventId(prev)).filter(|prev| prev.0 > 0);
        receipts.push(Receipt::New { id, prev, seq: Some(Seq(seq)), job: None });
    }
    Ok(receipts)
}
