//! Positions at an origin: the same drafts may come again at any time, and are appended once.

use laneway_core::limits::ORIGIN_BYTES_MAX;
use laneway_core::store::Receipt;
use laneway_core::{Draft, Mode, StreamSettings};
use laneway_engine::log::{AppendError, Appending};

use crate::world::{World, draft};

fn at(positions: impl IntoIterator<Item = u64>, key: impl Fn(u64) -> String) -> Appending {
    let one = |position| Draft { origin_seq: Some(position), ..draft(&key(position), "{}") };
    Appending { drafts: positions.into_iter().map(one).collect(), object: None }
}

async fn new(world: &World, origin: &str, appending: Appending) -> usize {
    let sent = world.engine.producer().append_from(origin, "orders", appending).await.expect("taken");
    sent.iter().filter(|sent| matches!(sent.receipt, Ok(Receipt::New { .. }))).count()
}

/// Far beyond what the stream remembers by dedup ids, with keys and without.
#[tokio::test(start_paused = true)]
async fn positions_are_taken_once_whenever_they_come_again() {
    let settings =
        StreamSettings { partitions: 4, mode: Mode::Queue, dedup_max: 1, ..StreamSettings::default() };
    let world = World::with_settings(settings).await;
    for (origin, key) in [("keyed", "k"), ("keyless", "")] {
        let name = move |position: u64| {
            if key.is_empty() { String::new() } else { format!("{key}{}", position % 9) }
        };
        for batch in 0..4 {
            assert_eq!(new(&world, origin, at(batch * 500 + 1..batch * 500 + 501, name)).await, 500);
        }
        for batch in 0..4 {
            assert_eq!(new(&world, origin, at(batch * 500 + 1..batch * 500 + 501, name)).await, 0);
        }
        assert_eq!(new(&world, origin, at(1_801..2_101, name)).await, 100, "the end is new");
        assert_eq!(
            new(&world, &format!("another than {origin}"), at(1..2, name)).await,
            1,
            "origins count apart"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn positions_that_do_not_grow_are_refused() {
    let world = World::new(Mode::Queue).await;
    let check = async |origin: &str, appending: Appending, wrong: (usize, &str)| {
        let refused = world.engine.producer().append_from(origin, "orders", appending).await;
        let Err(AppendError::Refused { index, refusal }) = refused else { panic!("{refused:?}") };
        assert_eq!((index, refusal.to_string().as_str()), wrong);
    };
    let limit = |last: u64| format!("must be a number above {last}, so that repeats can be told");
    let key = |_| "a".to_owned();
    check("o", at([3, 3], key), (1, &format!("position is 3, {}", limit(3)))).await;
    check("o", at([0], key), (0, &format!("position is 0, {}", limit(0)))).await;
    let absent = Appending { drafts: vec![draft("a", "{}")], object: None };
    check("o", absent, (0, &format!("position is absent, {}", limit(0)))).await;
    let long = "o".repeat(ORIGIN_BYTES_MAX + 1);
    check(&long, at([1], key), (0, "origin is 257 bytes, must be 1 to 256 bytes")).await;
}
