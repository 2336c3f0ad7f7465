//! Documents there and back, and bytes that are none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Document, ProcessorId, Term, Timestamp};
use proptest::prelude::*;

use crate::cluster::documents::{LEADER, Leader, NodeRecord, NodeToken, PLAN, Plan, View};

fn record() -> NodeRecord {
    NodeRecord {
        name: "shop-1".to_owned(),
        version: "0.1.0".to_owned(),
        weight: 3,
        standby: true,
        tags: vec!["eu".to_owned(), "ssd".to_owned()],
        role: "engine".to_owned(),
        since: Timestamp(17),
        lease: Duration::from_secs(10),
        expires: Some(Timestamp(23)),
        leaving: true,
        runs: BTreeSet::from([ProcessorId(1), ProcessorId(9)]),
        asked: BTreeSet::from([ProcessorId(9)]),
    }
}

fn document(name: &str, bytes: Bytes) -> Document {
    Document { name: name.to_owned(), version: 4, bytes }
}

#[test]
fn documents_come_back_as_they_were() {
    let (one, other) = (NodeToken(1), NodeToken(u128::MAX));
    let plan = Plan(BTreeMap::from([
        (ProcessorId(1), vec![Some(one), None, Some(other)]),
        (ProcessorId(2), vec![]),
    ]));
    let leader = Leader { node: other, term: Term(8) };
    let view = View::read(
        Some(Timestamp(5)),
        vec![
            document(&one.document(), record().encode()),
            document(LEADER, leader.encode()),
            document(PLAN, plan.encode()),
            document("cluster/drain/shop-1", Bytes::new()),
        ],
    );
    assert_eq!(view.record(one), Some(&record()));
    assert_eq!(view.leader.as_ref().unwrap().content, Some(leader));
    assert_eq!(view.plan(), Some(&plan));
    assert!(view.drained.contains("shop-1"));
    assert_eq!(NodeToken::of_bytes(&other.bytes()), Some(other));
    assert_eq!(NodeToken::of_bytes(b"node"), None);
}

#[test]
fn what_a_newer_laneway_wrote_is_known_to_be_there() {
    let mut newer = record().encode().to_vec();
    newer[0] = 2;
    let view = View::read(None, vec![document(&NodeToken(1).document(), newer.into())]);
    assert!(view.nodes.contains_key(&NodeToken(1)) && view.record(NodeToken(1)).is_none());
}

proptest! {
    #[test]
    fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..120_usize) {
        let mut begun = record().encode().to_vec();
        begun.truncate(cut);
        begun.extend(bytes);
        for name in [NodeToken(1).document(), LEADER.to_owned(), PLAN.to_owned()] {
            View::read(None, vec![document(&name, begun.clone().into())]);
        }
    }
}
