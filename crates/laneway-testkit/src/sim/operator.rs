//! The operator: pauses, resumes, retries, skips, redrives and resets whatever comes along.

use std::time::Duration;

use fastrand::Rng;
use laneway_core::store::{LaneSelect, Lanes, Query, RedriveTo, Reset, Rows};
use laneway_core::{Block, Key, LaneName, Partition, Seat, StartAt};

use super::node::Here;
use super::options::{PROCESSORS, pick};
use crate::seam;

/// Starts it.
pub(crate) fn start(here: &Here) {
    here.life.spawn(operate(here.clone(), here.chance(100)));
}

async fn operate(here: Here, mut rng: Rng) {
    loop {
        seam::pass(Duration::from_millis(rng.u64(500..6_000))).await;
        if here.world.is_calm() {
            // Everything that somebody stopped may go on, once.
            for (processor, _) in PROCESSORS {
                while here.engine.operator().resume(processor).await.is_err() {}
            }
            return;
        }
        let (processor, _) = pick(&mut rng, &PROCESSORS);
        let Ok((info, id)) = here.engine.catalogue().processor(processor).await else { continue };
        let partition = Partition(rng.u32(0..info.settings.partitions));
        let seat = Seat { shard: info.shard(partition), processor: id };
        match rng.u8(0..12) {
            0 => drop(here.engine.operator().pause(processor, "operator").await),
            1 | 2 => drop(here.engine.operator().resume(processor).await),
            3 if here.world.options.resets && rng.u8(0..4) == 0 => reset(&here, &mut rng, processor).await,
            3..6 => redrive(&here, &mut rng, processor, seat).await,
            6 => {
                let key = Key::new(format!("k{}", rng.u8(0..9))).expect("a short key");
                drop(here.engine.operator().pause_lane(processor, &key, "operator").await);
            }
            _ => help_a_lane(&here, &mut rng, processor, seat).await,
        }
    }
}

async fn reset(here: &Here, rng: &mut Rng, processor: &str) {
    let reset = Reset { start: StartAt::Beginning, clear_states: rng.bool(), quiet: false };
    drop(here.engine.operator().reset(processor, reset).await);
}

async fn redrive(here: &Here, rng: &mut Rng, processor: &str, seat: Seat) {
    let store = &here.engine.stores().store;
    let Ok(Rows::Dead(dead)) = store.query(Query::Dead(seat, Default::default(), 100)).await else { return };
    if dead.is_empty() {
        return;
    }
    let event = &dead[rng.usize(0..dead.len())].event;
    let Some(key) = &event.key else { return };
    let (id, to) = match rng.u8(0..4) {
        0 => (Some(event.id), RedriveTo::Tail),
        1 => (Some(event.id), RedriveTo::Place),
        _ => (None, RedriveTo::Place),
    };
    drop(here.engine.operator().redrive(processor, key, id, to).await);
}

/// Does something about a lane that stands.
async fn help_a_lane(here: &Here, rng: &mut Rng, processor: &str, seat: Seat) {
    let select = LaneSelect::Blocked { kind: None, after: None, limit: 100 };
    let store = &here.engine.stores().store;
    let Ok(views) = store.lanes(Lanes { seat, select, siding: 1, states: false }).await else { return };
    if views.is_empty() {
        return;
    }
    let record = &views[rng.usize(0..views.len())].record;
    let (LaneName::Key(key), Some(block)) = (&record.lane, &record.block) else { return };
    let operator = here.engine.operator();
    match (block, record.head) {
        (Block::Paused { .. }, _) => drop(operator.resume_lane(processor, key).await),
        (Block::Parked { .. }, Some(head)) => match rng.u8(0..4) {
            0 => drop(operator.skip(processor, key, head).await),
            1 => drop(operator.resume_lane(processor, key).await),
            _ => drop(operator.retry(processor, key, head).await),
        },
        (Block::Diverting { .. }, _) if rng.bool() => drop(operator.resume_lane(processor, key).await),
        (Block::Retry { .. }, Some(head)) if rng.u8(0..4) == 0 => {
            drop(operator.retry(processor, key, head).await);
        }
        _ => {}
    }
}
