//! Those who use the engine: producers, submitters of jobs, and a remote worker.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use laneway_core::event::Dedup;
use laneway_core::{Delay, DelayMode, Draft, Headers, Key, Kind, StartAfter};
use laneway_engine::handler::{Claim, ClaimWish, Desk, LaneAnswer, Retry, StateChange};
use laneway_engine::job::Submit;
use laneway_engine::log::Appending;

use super::handler::{done, start_of};
use super::node::Here;
use super::options::pick;
use super::plan::{Plan, Way};
use super::record::Record;
use crate::seam;

/// Starts all of them.
pub(crate) fn start(here: &Here, desk: Arc<Desk>) {
    for part in 0..2 {
        here.life.spawn(produce(here.clone(), here.chance(part)));
    }
    for part in 2..4 {
        here.life.spawn(submit(here.clone(), here.chance(part)));
    }
    for part in 4..6 {
        here.life.spawn(work(here.clone(), Arc::clone(&desk), here.chance(part)));
    }
}

async fn produce(here: Here, mut rng: Rng) {
    loop {
        seam::pass(here.world.options.append_every.mul_f64(2.0 * rng.f64())).await;
        if here.world.is_calm() {
            return;
        }
        let stream = pick(&mut rng, &["orders", "orders", "orders", "objects", "errands"]);
        let drafts: Vec<Draft> =
            (0..pick(&mut rng, &[1, 1, 1, 2, 5]))
                .map(|_| {
                    if stream == "objects" { object(&here, &mut rng) } else { order(&here, &mut rng, stream) }
                })
                .collect();
        let again: Vec<Draft> = drafts.iter().filter(|draft| draft.dedup.is_some()).cloned().collect();
        let appending = Appending { drafts, object: None };
        drop(here.engine.producer().append(stream, appending).await);
        // A producer that is not sure sends the same again.
        if !again.is_empty() && rng.u8(0..3) == 0 {
            drop(here.engine.producer().append(stream, Appending { drafts: again, object: None }).await);
        }
    }
}

fn key(rng: &mut Rng) -> Option<Key> {
    let name = match rng.u8(0..10) {
        0..4 => 0,
        4..9 => rng.u8(1..9),
        _ => return None,
    };
    Some(Key::new(format!("k{name}")).expect("a short key"))
}

fn plan(here: &Here, rng: &mut Rng) -> Plan {
    let kills = rng.u32(0..1_000) < here.world.options.killers;
    let hangs = rng.u8(0..12) == 0;
    let way = pick(rng, &[Way::Error, Way::Error, Way::Later, Way::Broken, Way::Panic]);
    let way = if hangs { Way::Hang } else { way };
    let fails = pick(rng, &[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 9]);
    Plan {
        name: format!("n{}", here.world.number()),
        fails: if kills { 9 } else { fails },
        way: if kills { Way::Kill } else { way },
        take_ms: pick(rng, &[0, 0, 0, 0, 3, 3, 20, 20, 100, 900]),
        emits: pick(rng, &[0, 0, 0, 1, 3]),
        state: rng.bool(),
        result: 0,
    }
}

fn order(here: &Here, rng: &mut Rng, stream: &str) -> Draft {
    let mut plan = plan(here, rng);
    if stream == "errands" && plan.way == Way::Kill {
        plan.fails = 0;
    }
    let mut draft = Draft::new(key(rng), Kind::default(), plan.to_string());
    match rng.u8(0..20) {
        0 | 1 => draft.delay = Some(delay(rng, DelayMode::Join)),
        2 => draft.delay = Some(delay(rng, DelayMode::Hold)),
        3 => draft.ttl = Some(Duration::from_millis(rng.u64(1..4_000))),
        4 | 5 => draft.priority = rng.u8(1..=2),
        6..9 => {
            let id = Bytes::from(format!("d{}", here.world.number()));
            draft.dedup = Some(Dedup { id, body: 7, window: Duration::from_secs(3_600) });
        }
        // Refused before any effect, because it is too large.
        9 if rng.u8(0..4) == 0 => draft.data = Bytes::from(vec![b'x'; (1 << 20) + 1]),
        10 => draft.headers = Headers::new([("traceparent", "00-simulated")]).expect("a short header"),
        _ => {}
    }
    draft
}

fn delay(rng: &mut Rng, mode: DelayMode) -> Delay {
    Delay { until: StartAfter::Delay(Duration::from_millis(rng.u64(1..20_000))), mode }
}

fn object(here: &Here, rng: &mut Rng) -> Draft {
    let key = Key::new(format!("o{}", rng.u8(0..4))).expect("a short key");
    let mut draft = Draft::new(Some(key), Kind::default(), plan(here, rng).to_string());
    if rng.u8(0..4) == 0 {
        draft.generation = Some(rng.u64(1..40));
    }
    draft.delete = rng.u8(0..30) == 0;
    if draft.delete {
        draft.incarnation = 1;
    }
    draft
}

async fn submit(here: Here, mut rng: Rng) {
    let jobs = here.engine.jobs().clone();
    loop {
        seam::pass(here.world.options.append_every.mul_f64(6.0 * rng.f64())).await;
        if here.world.is_calm() {
            return;
        }
        let plan = Plan { result: pick(&mut rng, &[1, 40, 40, 40, 4_000]), ..plan(&here, &mut rng) };
        // Larger than a commit takes, now and then: it is kept in pieces first.
        let result = if rng.u8(0..60) == 0 { (1 << 20) + 10 } else { plan.result };
        let mut draft = Draft::new(key(&mut rng), Kind::default(), Plan { result, ..plan }.to_string());
        if rng.u8(0..6) == 0 {
            draft.delay = Some(delay(&mut rng, DelayMode::Join));
        }
        let job = Submit { draft, processor: Some("charge".to_owned()), keep: None };
        let Ok(submitted) = jobs.submit("orders", vec![job]).await else { continue };
        for submitted in submitted.into_iter().flatten() {
            let id = submitted.id;
            if rng.u8(0..5) == 0 {
                seam::pass(Duration::from_millis(rng.u64(0..300))).await;
                drop(jobs.cancel(id, here.engine.env().token()).await);
            }
            drop(jobs.wait(id, Duration::from_millis(rng.u64(0..8_000))).await);
            match rng.u8(0..8) {
                0 => drop(jobs.take(id).await),
                1 => drop(jobs.forget(id).await),
                _ => drop(jobs.get(id).await),
            }
        }
    }
}

async fn work(here: Here, desk: Arc<Desk>, mut rng: Rng) {
    loop {
        let wish = ClaimWish {
            lanes: 1 + rng.usize(0..2),
            events: 1,
            lease: Duration::from_secs(3),
            wait: Duration::from_secs(5),
            worker: "worker".to_owned(),
            request: None,
        };
        let claims = desk.claim(wish).await;
        let mut begun = Vec::new();
        for claim in claims {
            let run = here.world.number();
            let Some(seat) = here.seat("remote", claim.partition).await else { continue };
            let (life, lanes) = (here.life.number, vec![start_of(&claim.run)]);
            here.world.log.push(Record::Start { life, run, seat, lanes, remote: true });
            begun.push((run, claim));
        }
        for (run, claim) in begun {
            work_on(&here, &desk, &mut rng, run, claim).await;
        }
        seam::pass(Duration::from_millis(10)).await;
    }
}

async fn work_on(here: &Here, desk: &Desk, rng: &mut Rng, run: u64, claim: Claim) {
    let event = &claim.run.events[0];
    let plan = Plan::of(&event.data);
    seam::pass(Duration::from_millis(plan.take_ms)).await;
    // A worker that is slow asks for more time, or does not.
    if rng.u8(0..10) == 0 {
        let extended = desk.extend(&claim.token, Duration::from_secs(4)).await;
        here.world
            .log
            .judge(|judge| judge.hit(if extended.is_ok() { "claim extended" } else { "claim lost" }));
        seam::pass(Duration::from_millis(rng.u64(0..6_000))).await;
    }
    let fails = claim.run.attempt <= plan.fails;
    let answer = match plan.way {
        _ if !fails => {
            let state = if plan.state {
                StateChange::Set(Bytes::from(format!("run {run} event {}", event.id)))
            } else {
                StateChange::Keep
            };
            LaneAnswer { done: vec![done(run, event, &plan)], state, ..LaneAnswer::default() }
        }
        Way::Hang => {
            here.world.log.push(Record::End { run, how: "silent".to_owned() });
            return;
        }
        Way::Broken => LaneAnswer::failed("as planned", Retry::Never),
        _ => LaneAnswer::failed("as planned", Retry::ByPolicy),
    };
    let settled = desk.settle(&claim.token, answer.clone()).await;
    here.world.log.push(Record::End { run, how: format!("{settled:?}") });
    // A worker that is not sure says it again, later and perhaps to another owner.
    if settled.is_ok() && !fails && rng.u8(0..4) == 0 {
        seam::pass(Duration::from_millis(rng.u64(0..9_000))).await;
        let again = desk.settle(&claim.token, answer).await;
        here.world.log.judge(|judge| judge.settled_again(&claim.token, &again));
    }
}
