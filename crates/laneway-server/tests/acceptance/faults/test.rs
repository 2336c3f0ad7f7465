//! Three nodes on one Redis while nodes die, freeze and are cut off, and the Redis dies, freezes and loses its tail.
//!
//! What clients were told, what handlers did and what was emitted is held against the promises in the end, as for one
//! server. Recovery is judged by the clock of the store: from the fault, or where nobody could work before it was over
//! from its end, to the first settlement in the slowest of the partitions that it met. A violation counts for the fault
//! during which, or after which and before the next, the event was settled where it shows; one of no single event, or of
//! an event that was never settled, is not attributed.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_testkit::fault::Road;
use rustix::process::Signal;

use crate::seam;
use crate::support::{
    Cluster, Effect, History, LEASE, Load, Loss, NODES, PARTITIONS, Receipt, Violation, lanes,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KillNode,
    FreezeNode,
    Road(Road),
    KillRedis,
    FreezeRedis,
    LoseTail,
}

/// Thirty in all, one kind after the other in turn.
const FAULTS: [(Fault, usize); 11] = [
    (Fault::KillNode, 5),
    (Fault::FreezeNode, 5),
    (Fault::Road(Road::BlackHole), 4),
    (Fault::Road(Road::Cut), 3),
    (Fault::Road(Road::RepliesLost), 3),
    (Fault::KillRedis, 2),
    (Fault::LoseTail, 2),
    (Fault::FreezeRedis, 2),
    (Fault::Road(Road::Slow(Duration::from_millis(50))), 2),
    (Fault::Road(Road::HalfRequest), 1),
    (Fault::Road(Road::HalfReply), 1),
];
/// Chunks that a road that is only bad spoils before it is mended.
const SPOILT: u64 = 3;
/// What the documents promise.
const RECOVERY_MAX: Duration = LEASE.saturating_add(Duration::from_secs(2));

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::KillNode => "node killed",
            Self::FreezeNode => "node frozen past its lease",
            Self::Road(Road::BlackHole) => "node cut off, nobody told",
            Self::Road(Road::Cut) => "node cut off, connections end",
            Self::Road(Road::RepliesLost) => "answers to a node lost",
            Self::Road(Road::Slow(_)) => "slow road to a node",
            Self::Road(Road::HalfRequest) => "half a call arrives",
            Self::Road(Road::HalfReply) => "half an answer arrives",
            Self::Road(Road::Open) => "none",
            Self::KillRedis => "Redis killed and restarted",
            Self::FreezeRedis => "Redis frozen past all leases",
            Self::LoseTail => "replica promoted, tail lost",
        }
    }

    /// Whether others take over what the node had.
    fn takes_over(self) -> bool {
        use Road::{BlackHole, Cut, RepliesLost};
        matches!(self, Self::KillNode | Self::FreezeNode | Self::Road(BlackHole | Cut | RepliesLost))
    }
}

/// A fault that is over.
struct Suffered {
    fault: Fault,
    /// That were met.
    partitions: Vec<u64>,
    /// When its turn began.
    begun: u64,
    /// From when recovery counts.
    from: u64,
}

impl Suffered {
    /// How long it took until every partition that was met had something settled; by another owner, where there is one.
    fn recovery(&self, effects: &[Effect]) -> Duration {
        let term = if self.fault.takes_over() { format!("{:016x}", self.from) } else { String::new() };
        let again = |partition: &u64| {
            let place = format!("orders/{partition}/");
            let there = effects.iter().filter(|effect| effect.receipt.reference.starts_with(&place));
            let since = there.filter(|effect| effect.at > self.from && effect.fence > term);
            since.map(|effect| effect.at).min().unwrap_or(u64::MAX)
        };
        Duration::from_micros(self.partitions.iter().map(again).max().unwrap() - self.from)
    }
}

/// A fault of a node or its road that lasts until others have taken over.
async fn take_over(cluster: &mut Cluster, fault: Fault, node: usize) -> u64 {
    let leases = cluster.leases_lost(node).await.unwrap();
    let from = seam::wall_clock();
    match fault {
        Fault::KillNode => cluster.signal(node, Signal::KILL),
        Fault::FreezeNode => cluster.signal(node, Signal::STOP),
        Fault::Road(road) => cluster.road(node).set(road),
        _ => unreachable!("nobody takes over"),
    }
    cluster.until_replaced((node + 1) % NODES, node).await;
    match fault {
        Fault::KillNode => {
            cluster.start_again(node).await;
            return from;
        }
        Fault::FreezeNode => cluster.signal(node, Signal::CONT),
        _ => cluster.road(node).set(Road::Open),
    }
    // Whoever was replaced and lives must know it.
    cluster.until_unleased(node, leases).await;
    from
}

/// A fault of the Redis, which nobody can work without; answers when it was over.
async fn redis_fault(cluster: &mut Cluster, fault: Fault) -> u64 {
    if fault == Fault::KillRedis {
        cluster.redis.kill();
        return seam::wall_clock();
    }
    let mut leases = Vec::new();
    for node in 0..NODES {
        leases.push(cluster.leases_lost(node).await.unwrap());
    }
    cluster.redis.signal("STOP");
    // Nobody outside can see a lease end while the store is away: the clock says it.
    let ended = seam::later(LEASE + LEASE / 4);
    seam::until("all leases have ended", || std::future::ready(ended.is_over().then_some(()))).await;
    cluster.redis.signal("CONT");
    let over = seam::wall_clock();
    for (node, before) in leases.into_iter().enumerate() {
        cluster.until_unleased(node, before).await;
    }
    over
}

/// What the Redis acknowledges after its replica was cut off is lost when that takes its place.
async fn lose_tail(cluster: &mut Cluster, load: &Load) -> Loss {
    load.next_phase();
    let settled = cluster.settled().await;
    let replica = cluster.replica().await;
    replica.promote();
    load.until_more().await;
    let at = cluster.fail_over(replica);
    load.next_phase();
    Loss { at, settled }
}

struct Run {
    cluster: Cluster,
    load: Load,
    suffered: Vec<Suffered>,
    losses: Vec<Loss>,
}

impl Run {
    async fn suffer(&mut self, fault: Fault, node: usize) {
        let Self { cluster, load, .. } = self;
        cluster.until_calm().await;
        load.until_more().await;
        load.burst(&cluster.http((node + 1) % NODES)).await;
        let begun = seam::wall_clock();
        let mut partitions: Vec<u64> = (0..PARTITIONS).collect();
        let from = match fault {
            _ if fault.takes_over() => {
                partitions = cluster.owned_by(node).await;
                take_over(cluster, fault, node).await
            }
            Fault::Road(road) => {
                partitions = cluster.owned_by(node).await;
                let before = cluster.road(node).carried().met(road);
                cluster.road(node).set(road);
                let met = cluster.road(node).until(|carried| carried.met(road) >= before + SPOILT);
                seam::guarded("the road spoils something", met).await;
                cluster.road(node).set(Road::Open);
                seam::wall_clock()
            }
            Fault::LoseTail => {
                let loss = lose_tail(cluster, load).await;
                self.losses.push(loss.clone());
                loss.at
            }
            _ => redis_fault(cluster, fault).await,
        };
        load.until_all_go_on(&cluster.http(node)).await;
        self.suffered.push(Suffered { fault, partitions, begun, from });
    }
}

/// The fault that a violation counts for.
fn blamed(violation: &Violation, suffered: &[Suffered], effects: &[Effect]) -> Option<Fault> {
    let reference = violation.reference.as_ref()?;
    let settled = effects.iter().find(|effect| effect.receipt.reference == *reference)?;
    suffered.iter().rfind(|suffered| suffered.begun <= settled.at).map(|suffered| suffered.fault)
}

/// Prints the table; answers the recoveries that took too long.
fn table(suffered: &[Suffered], effects: &[Effect], violations: &[Violation]) -> Vec<String> {
    let mut recoveries: BTreeMap<Fault, Vec<Duration>> = BTreeMap::new();
    for suffered in suffered {
        recoveries.entry(suffered.fault).or_default().push(suffered.recovery(effects));
    }
    let blamed: Vec<Option<Fault>> =
        violations.iter().map(|violation| blamed(violation, suffered, effects)).collect();
    let violations = |fault| blamed.iter().filter(|blamed| **blamed == fault).count();
    let mut late = Vec::new();
    println!("| fault | count | violations | recovered too late | recovery p50 | max |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (fault, mut times) in recoveries {
        times.sort_unstable();
        let too_late = times.iter().filter(|time| **time > RECOVERY_MAX).count();
        let (half, max) = (times[(times.len() - 1) / 2], times[times.len() - 1]);
        let (name, count, violations) = (fault.name(), times.len(), violations(Some(fault)));
        println!("| {name} | {count} | {violations} | {too_late} | {half:.1?} | {max:.1?} |");
        late.extend((too_late > 0).then(|| format!("{name}: {times:?}")));
    }
    println!("| not attributed | | {} | | | |", violations(None));
    late
}

#[test]
fn a_violation_counts_for_the_fault_in_whose_time_its_event_was_settled() {
    let receipt = |id| Receipt { reference: format!("orders/0/{id}"), key: "ann".to_owned(), seq: id };
    let effect = |id| Effect { receipt: receipt(id), fence: String::new(), at: 10 * id };
    let effects: Vec<Effect> = (1..=4).map(effect).collect();
    let suffered = |fault, begun| Suffered { fault, partitions: vec![0], begun, from: begun };
    let suffered = [suffered(Fault::KillNode, 15), suffered(Fault::KillRedis, 30)];
    let blame = |id| blamed(&Violation::of(&receipt(id), String::new()), &suffered, &effects);
    let blame: Vec<Option<Fault>> = (1..=5).map(blame).collect();
    let (node, redis) = (Some(Fault::KillNode), Some(Fault::KillRedis));
    assert_eq!(blame, [None, node, redis, redis, None], "before all faults, and never settled: nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_faults_of_nodes_roads_and_redis_break_no_promise() {
    let cluster = Cluster::start().await;
    cluster.until_calm().await;
    let load = Load::start(&cluster.all());
    let mut run = Run { cluster, load, suffered: Vec::new(), losses: Vec::new() };
    for round in 0..FAULTS.iter().map(|(_, count)| *count).max().unwrap() {
        for (fault, _) in FAULTS.into_iter().filter(|(_, count)| round < *count) {
            run.suffer(fault, run.suffered.len() % NODES).await;
        }
    }
    let Run { cluster, load, suffered, losses } = run;
    cluster.until_calm().await;
    load.until_more().await;
    let (mut acknowledged, doubtful) = load.end().await;
    acknowledged.extend(cluster.finish(lanes()).await);
    let history = History { losses, ..cluster.history(acknowledged).await };

    let late = table(&suffered, &history.effects, &history.wrong());
    let violations = history.violations();
    let lost = doubtful.iter().filter(|event| !history.stored.iter().any(|stored| stored.receipt == **event));
    let lost = lost.count();
    println!(
        "{} faults, {} events stored, {} runs, {lost} acknowledged events lost by Redis itself, {} violations",
        suffered.len(),
        history.stored.len(),
        history.steps.len() / 2,
        violations.len()
    );
    assert_eq!(violations, Vec::<String>::new());
    assert_eq!(late, Vec::<String>::new(), "recovery within {RECOVERY_MAX:?}");
    assert_eq!(suffered.len(), 30);
    assert!(lost > 0, "the replicas that took over had everything: nothing was tried");
}
