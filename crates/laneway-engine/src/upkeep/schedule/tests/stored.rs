//! The stored form: read back as written, pinned, and never a panic.

use std::time::Duration;

use laneway_core::{Bytes, Headers, Key, Kind, Timestamp};
use proptest::prelude::*;

use super::fixture::{cron, schedule};
use crate::upkeep::schedule::{CatchUp, DecodeError, Firing, Overlap, Schedule, Spec};

fn any_spec() -> impl Strategy<Value = Spec> {
    prop_oneof![
        (any::<Duration>(), any::<u64>())
            .prop_map(|(length, anchor)| Spec::Every { length, anchor: Timestamp(anchor) }),
        (any::<String>(), any::<String>()).prop_map(|(expression, zone)| Spec::Cron { expression, zone }),
    ]
}

fn any_firing() -> impl Strategy<Value = Firing> {
    let key = proptest::option::of(proptest::collection::vec(any::<u8>(), 1..20));
    let headers = proptest::collection::vec((".{0,8}", any::<Vec<u8>>()), 0..3);
    let text = any::<String>;
    (text(), key, ".{0,9}", any::<Vec<u8>>(), headers, proptest::option::of(text())).prop_map(
        |(stream, key, kind, data, headers, processor)| Firing {
            stream,
            key: key.map(|bytes| Key::new(bytes).unwrap()),
            kind: Kind::new(kind).unwrap(),
            data: data.into(),
            headers: Headers::new(headers).unwrap(),
            processor,
        },
    )
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let overlap = prop_oneof![Just(Overlap::Allow), Just(Overlap::Skip), Just(Overlap::Queue)];
    let all = any::<u32>().prop_map(|max| CatchUp::All { max });
    let catch_up = prop_oneof![Just(CatchUp::None), Just(CatchUp::Last), all];
    (any::<String>(), any_spec(), overlap, catch_up, any::<bool>(), any::<u64>(), any_firing()).prop_map(
        |(name, spec, overlap, catch_up, paused, since, firing)| Schedule {
            name,
            spec,
            overlap,
            catch_up,
            paused,
            since: Timestamp(since),
            firing,
        },
    )
}

fn full() -> Schedule {
    let mut full = schedule(cron("0 3 * * *", "UTC"));
    full.overlap = Overlap::Skip;
    full.catch_up = CatchUp::All { max: 7 };
    full.paused = true;
    full.firing = Firing {
        stream: "s".into(),
        key: Some(Key::new("k").unwrap()),
        kind: Kind::new("t").unwrap(),
        data: Bytes::from_static(b"{}"),
        headers: Headers::new([("n", "v")]).unwrap(),
        processor: Some("p".into()),
    };
    full
}

#[test]
fn the_form_of_version_1_is_pinned() {
    let number = |value: u64| value.to_le_bytes().to_vec();
    let bytes = |value: &[u8]| [number(value.len() as u64), value.to_vec()].concat();
    let cron_form = [
        vec![1],
        bytes(b"nightly"),
        vec![1],
        bytes(b"0 3 * * *"),
        bytes(b"UTC"),
        vec![1, 2, 7, 0, 0, 0, 1],
        number(1_767_225_600_000_000),
        bytes(b"s"),
        vec![1],
        bytes(b"k"),
        bytes(b"t"),
        bytes(b"{}"),
        bytes(b"\x01\0\x01\0nv"),
        vec![1],
        bytes(b"p"),
    ];
    assert_eq!(full().encode(), cron_form.concat());

    let length = Duration::new(90, 5);
    let interval = schedule(Spec::Every { length, anchor: Timestamp(3) });
    let interval_form = [
        vec![1],
        bytes(b"nightly"),
        vec![0],
        number(90),
        vec![5, 0, 0, 0],
        number(3),
        vec![2, 1, 0],
        number(1_767_225_600_000_000),
        bytes(b"reports"),
        vec![0],
        bytes(b""),
        bytes(b""),
        bytes(b""),
        vec![0],
    ];
    assert_eq!(interval.encode(), interval_form.concat());
}

#[test]
fn a_newer_form_is_told_from_a_damaged_one() {
    let check = |change: fn(&mut Vec<u8>), expected| {
        let mut bytes = full().encode().to_vec();
        change(&mut bytes);
        assert_eq!(Schedule::decode(bytes.into()), Err(expected));
    };
    let malformed = |field| DecodeError::Malformed { field };
    check(|bytes| bytes[0] = 2, DecodeError::Newer { version: 2 });
    check(|bytes| bytes[0] = 0, malformed("version"));
    check(Vec::clear, malformed("version"));
    check(|bytes| bytes[8] = 0xff, malformed("name"));
    check(|bytes| bytes[9] = 0xff, malformed("name"));
    check(|bytes| bytes[16] = 9, malformed("spec"));
    check(|bytes| bytes.truncate(40), malformed("zone"));
    check(|bytes| bytes.push(0), malformed("end"));
}

proptest! {
    #[test]
    fn a_schedule_reads_back_as_written(schedule in any_schedule()) {
        prop_assert_eq!(Schedule::decode(schedule.encode()), Ok(schedule));
    }

    #[test]
    fn a_cut_schedule_is_an_error(schedule in any_schedule(), cut in any::<proptest::sample::Index>()) {
        let bytes = schedule.encode();
        prop_assert!(Schedule::decode(bytes.slice(..cut.index(bytes.len()))).is_err());
    }

    #[test]
    fn damaged_bytes_never_panic_and_read_as_what_writes_the_same(
        schedule in any_schedule(),
        at in any::<proptest::sample::Index>(),
        value: u8,
    ) {
        let mut bytes = schedule.encode().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = value;
        if let Ok(read) = Schedule::decode(bytes.clone().into()) {
            prop_assert_eq!(read.encode(), bytes);
        }
    }

    #[test]
    fn any_bytes_never_panic(mut bytes: Vec<u8>) {
        let _ = Schedule::decode(bytes.clone().into());
        if let Some(version) = bytes.first_mut() {
            *version = 1;
        }
        let _ = Schedule::decode(bytes.into());
    }
}
