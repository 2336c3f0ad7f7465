//! The operator: files requests, promotes, trims, and looks at jobs and events while everybody works.

use std::sync::Arc;

use laneway_core::store::{JobState, Jobs, Promote, Request, RequestOp, Trim};
use laneway_core::{EventId, JobNumber, TokenId};

use super::World;
use crate::check::EndSeen;

/// Does so many things.
pub(crate) async fn operate(world: Arc<World>, seed: u64, steps: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..steps {
        match random.u8(0..6) {
            0 => request(&world, &mut random).await,
            1 => promote(&world).await,
            2 => trim(&world).await,
            3 | 4 => look_at_jobs(&world, &mut random).await,
            _ => world.look_at_all(world.work.shard).await.expect("the shard is readable"),
        }
        tokio::task::yield_now().await;
    }
}

async fn request(world: &World, random: &mut fastrand::Rng) {
    let seat = world.seats[random.usize(0..world.seats.len())];
    let op = RequestOp::Cancel { id: EventId(random.u64(1..100)) };
    let request = Request { seat, token: TokenId(world.unique()), op };
    let (first, _) = world.insist(|| world.store.request(request.clone())).await;
    let (again, _) = world.insist(|| world.store.request(request.clone())).await;
    let (first, again) = (first.expect("a seat that exists"), again.expect("a seat that exists"));
    assert_eq!(first.number, again.number, "one token has one number");
    assert!(again.repeated, "a repeat is told");
    world.sometimes.hit("a request was filed twice");
}

async fn promote(world: &World) {
    let promote = Promote { shard: world.work.shard, limit: 5 };
    let (promoted, _) = world.insist(|| world.store.promote(promote)).await;
    if promoted.expect("a shard that exists").moved > 0 {
        world.sometimes.hit("a delayed draft joined its lane");
    }
}

async fn trim(world: &World) {
    let trim = Trim { shard: world.work.shard };
    let (trimmed, _) = world.insist(|| world.store.trim(trim)).await;
    if trimmed.expect("a shard that exists").events > 0 {
        world.sometimes.hit("events were trimmed");
    }
}

async fn look_at_jobs(world: &World, random: &mut fastrand::Rng) {
    let shard = world.work.shard;
    let first = random.u64(1..400);
    let numbers = (first..first + 40).map(|id| JobNumber::Event(EventId(id))).collect();
    let views = world.store.jobs(Jobs::Get { shard, numbers, results: true }).await;
    let ended = world.tick();
    for view in views.expect("a shard that exists") {
        if let JobState::Ended { end, .. } = view.state {
            world.sometimes.hit("an ended job was seen");
            world.history.lock().ends.push(EndSeen { ended, shard, end: *end });
        }
    }
}
