//! What happens to a node that none of its calls brought about.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use super::node::Node;
use super::options::{node_name, pick};
use super::record::Record;
use super::world::World;
use crate::seam;

impl World {
    /// Something happens to the node at a place; answers who is there afterwards.
    pub(super) async fn incident(self: &Arc<Self>, node: Node, place: u32, rng: &mut Rng) -> Node {
        // What can happen to any process, and then what can happen only to one of several.
        let kinds = if self.options.is_cluster() { 16 } else { 8 };
        match rng.u8(0..kinds) {
            0 | 1 => {
                node.life.die("the plug was pulled");
                self.crashed_and_restarted(place, rng).await
            }
            2 | 3 => {
                let within = Duration::from_millis(pick(rng, &[100, 2_000, 10_000]));
                tokio::select! {
                    biased;
                    () = node.life.death() => {}
                    () = node.drain(within) => self.log.push(Record::Drained { life: node.life.number }),
                }
                node.life.die("drained");
                self.restart(place, rng).await
            }
            4 | 5 => {
                // Somebody believes the process dead and starts another, and the old one goes on for a while.
                let next = self.begin(place).await;
                seam::pass(Duration::from_millis(rng.u64(100..6_000))).await;
                node.life.die("its successor is there");
                next
            }
            6 => {
                let until = self.faulty_for(Duration::from_millis(rng.u64(100..8_000)));
                self.stall(until);
                self.log.judge(|judge| judge.hit("store stalled"));
                node
            }
            7 => {
                self.set_clock(&node, place, rng);
                node
            }
            kind @ 8.. => {
                self.incident_of_several(&node, kind, rng);
                node
            }
        }
    }

    /// Somebody, or a time server, sets the wall clock of a machine.
    fn set_clock(&self, node: &Node, place: u32, rng: &mut Rng) {
        let reach = pick(rng, &[1_000_000, 60_000_000, 3_600_000_000]);
        let by_micros = rng.i64(-reach..=reach);
        self.log.push(Record::ClockSet { life: node.life.number, by_micros });
        node.life.set_clock(by_micros);
        self.set_skew(place, by_micros);
    }

    fn incident_of_several(self: &Arc<Self>, node: &Node, kind: u8, rng: &mut Rng) {
        // From far below a lease to three of them: it may have to find out that it is believed dead.
        let until = self.faulty_for(self.options.lease.mul_f64(0.1 + 2.9 * rng.f64()));
        let length = until.since(self.clock.true_now().steady);
        match kind {
            8..11 => {
                self.log.push(Record::CutOff { life: node.life.number, length });
                node.net.cut_off(until);
            }
            11 | 12 => {
                self.log.push(Record::Frozen { life: node.life.number, length });
                node.life.freeze(length);
            }
            _ => self.steer(node, kind, rng),
        }
    }

    /// Somebody asks this node to do something about one of the nodes.
    fn steer(self: &Arc<Self>, node: &Node, kind: u8, rng: &mut Rng) {
        let Some(engine) = node.engine() else { return };
        let (world, name) = (Arc::clone(self), node_name(rng.u32(0..self.options.nodes)));
        let life = node.life.number;
        node.life.spawn(async move {
            let cluster = engine.cluster();
            let (what, done) = match kind {
                13 => {
                    world.log.judge(|judge| judge.may_break_leases(life));
                    ("lease broken", cluster.break_lease(&name).await.map(drop))
                }
                14 => ("drain wished", cluster.drain(&name, true).await),
                _ => ("drain lifted", cluster.drain(&name, false).await),
            };
            if done.is_ok() {
                world.log.judge(|judge| judge.hit(what));
            }
        });
    }
}
