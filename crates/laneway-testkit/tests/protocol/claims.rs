//! Claims and requests: one event that remote workers claim, settle through any node, and that somebody cancels (contract 1.7, 1.16).
//!
//! Nodes own the seat in turn. A claim is in its owner's memory until it is written into the lane record; the next owner
//! adopts what is written. A settlement goes to the owner, or through another node as a request, or both ways when its
//! worker hears nothing. Requests arrive late and twice, also after their token is forgotten. Owners are dropped at any
//! moment without knowing it, and a claim's lease may end whenever its owner looks.

use stateright::{Model, Property};

pub(crate) const ONE_END: &str = "an event has one end and it never changes";
pub(crate) const EXCLUSIVE: &str = "no lane is with two workers whose claims both count";
pub(crate) const OPEN: &str = "a settlement counts only for the claim that is open";
pub(crate) const ANSWER: &str = "what a request was answered never changes";
pub(crate) const TOLD: &str = "who is told that a settlement counts finds it stored";
pub(crate) const LOST: &str = "who is told that a claim is lost did not end its event by it";
pub(crate) const STRANDED: &str = "with faults over the event ends and every request is answered";

/// A fault of the protocol, planted to see it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    ClaimNotAdopted,
    /// A request stays when the commit with its effect is there, so that it is decided again.
    RequestAppliedTwice,
    /// A node that does not own the seat ends the event itself.
    SettleByNonOwner,
    /// A settlement counts for whatever claim is open in its lane.
    SettleWithoutNonce,
    AnsweredBeforeDurable,
    /// An owner knows which claims it settled itself, and takes every other that is not open for lost.
    EndedIsToldLost,
}

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claims {
    pub(crate) nodes: u8,
    pub(crate) grants: u8,
    pub(crate) claims: u8,
    pub(crate) sends: u8,
    pub(crate) bug: Option<Bug>,
}

/// A claim is named by its nonce, which counts up here.
type Nonce = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Op {
    Done(Nonce),
    Failed(Nonce),
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Answer {
    Applied,
    /// The event has ended.
    Already,
    /// The claim is not open, and the event has not ended.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum End {
    Done(Nonce),
    Cancelled,
}

/// What a lane is: in its record, and in the memory of an owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lane {
    claim: Option<Nonce>,
    end: Option<End>,
    /// Claims whose failure was counted.
    failed: Vec<Nonce>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Commit {
    term: u8,
    version: u8,
    /// The lane record after it.
    lane: Lane,
    /// The lane in memory after it.
    memory: Lane,
    answers: Vec<(Op, Answer)>,
    direct: Option<Op>,
    /// It settles another claim than the one that is open: not compared by anybody, only judged.
    is_foreign: bool,
    clean: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Own {
    term: u8,
    version: u8,
    lane: Lane,
    /// The event had ended before this grant: without the bug that asks for it, nobody does.
    found_ended: bool,
    written: bool,
    /// A settlement that came directly and is not committed.
    direct: Option<Op>,
    waits_for: Option<Commit>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stored {
    term: u8,
    version: u8,
    lane: Lane,
    /// The claim that the owner found, for a property only.
    adopted: Option<Nonce>,
    requests: Vec<Op>,
    /// A token is its wish: it is sent again under the same one.
    tokens: Vec<(Op, Option<Answer>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Worker {
    sent: Option<Op>,
    told: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Note {
    Nothing,
    Fenced,
    EndChanged,
    AnswerChanged,
    NotOpen,
    AdoptedSettled,
    RepeatedToken,
    CancelBeatSettle,
    SettleBeatCancel,
    LeaseEnded,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    stored: Stored,
    nodes: Vec<Option<Own>>,
    /// Who holds the claim of each nonce.
    workers: Vec<Worker>,
    cancel_told: Option<Answer>,
    /// Requests under way.
    net: Vec<Op>,
    sends: u8,
    note: Note,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A node seizes the seat, whoever has it.
    Take(u8),
    /// An owner is dropped: by a crash, or since it waits no longer for an answer.
    Drop(u8),
    Give(u8),
    /// Everything that waits is decided; a cancel may be put off while the event is claimed.
    Work {
        node: u8,
        cancels: bool,
    },
    Write(u8),
    EndLease(u8),
    HandOver(u8),
    /// The commit of a node arrives, and the node hears of it or not.
    Commit {
        node: u8,
        answered: bool,
    },
    Settle {
        via: u8,
        op: Op,
    },
    Cancel,
    Arrive {
        op: Op,
        stays: bool,
    },
    Forget(Op),
    Ask(Op),
}

impl Claims {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// What an owner decides about a wish, and what becomes of the lane.
    fn decide(&self, lane: &mut Lane, found_ended: bool, op: Op) -> (Answer, bool) {
        match op {
            Op::Done(_) if found_ended => (Answer::Lost, true),
            _ if lane.end.is_some() => (Answer::Already, true),
            Op::Cancel => {
                (lane.end, lane.claim) = (Some(End::Cancelled), None);
                (Answer::Applied, true)
            }
            Op::Done(nonce) | Op::Failed(nonce) => {
                let open = lane.claim == Some(nonce);
                let takes_any = self.has(Bug::SettleWithoutNonce) && lane.claim.is_some();
                if !open && !takes_any {
                    return (Answer::Lost, true);
                }
                lane.claim = None;
                if matches!(op, Op::Done(_)) {
                    lane.end = Some(End::Done(nonce));
                } else {
                    lane.failed.push(nonce);
                }
                (Answer::Applied, open)
            }
        }
    }

    fn gather(&self, world: &mut World, node: u8, step: Step) -> Option<()> {
        let requests = world.stored.requests.clone();
        let own = world.nodes[usize::from(node)].as_mut()?;
        let mut memory = own.lane.clone();
        let (mut answers, mut written) = (Vec::new(), own.written);
        let mut all_open = true;
        match step {
            Step::Work { cancels, .. } => {
                if let Some(op) = own.direct {
                    all_open &= self.decide(&mut memory, own.found_ended, op).1;
                }
                for op in requests {
                    if op == Op::Cancel && !cancels && memory.claim.is_some() {
                        continue;
                    }
                    let (answer, open) = self.decide(&mut memory, own.found_ended, op);
                    all_open &= open;
                    answers.push((op, answer));
                }
            }
            Step::EndLease(_) => memory.failed.extend(memory.claim.take()),
            _ => written = true,
        }
        let claim = memory.claim.filter(|_| written);
        let direct = own.direct.filter(|_| matches!(step, Step::Work { .. }));
        let clean = matches!(step, Step::HandOver(_));
        let lane = Lane { claim, ..memory.clone() };
        own.waits_for = Some(Commit {
            term: own.term,
            version: own.version,
            lane,
            memory,
            answers,
            direct,
            is_foreign: !all_open,
            clean,
        });
        Some(())
    }

    fn commit(&self, world: &mut World, commit: &Commit) -> bool {
        let World { stored, note, .. } = world;
        if stored.term != commit.term || stored.version != commit.version {
            *note = Note::Fenced;
            return false;
        }
        if let (None, Some(end)) = (stored.lane.end, commit.lane.end) {
            let loser =
                |op: &Op| matches!((op, end), (Op::Cancel, End::Done(_)) | (Op::Done(_), End::Cancelled));
            let met = stored.requests.iter().any(loser);
            *note = match end {
                End::Done(_) if met => Note::SettleBeatCancel,
                End::Cancelled if met => Note::CancelBeatSettle,
                End::Done(nonce) if stored.adopted == Some(nonce) => Note::AdoptedSettled,
                _ => Note::Nothing,
            };
        } else if commit.lane.failed.len() > stored.lane.failed.len() && commit.answers.is_empty() {
            *note = Note::LeaseEnded;
        }
        if stored.lane.end.is_some() && stored.lane.end != commit.lane.end {
            *note = Note::EndChanged;
        } else if commit.is_foreign {
            *note = Note::NotOpen;
        }
        stored.version += 1;
        stored.lane = commit.lane.clone();
        for (op, answer) in &commit.answers {
            if !self.has(Bug::RequestAppliedTwice) {
                stored.requests.retain(|other| other != op);
            }
            if let Some((_, stored)) = stored.tokens.iter_mut().find(|(token, _)| token == op) {
                if stored.is_some_and(|before| before != *answer) {
                    *note = Note::AnswerChanged;
                }
                *stored = Some(*answer);
            }
        }
        true
    }

    fn hear(&self, world: &mut World, node: u8, commit: Commit, accepted: bool) {
        let at = usize::from(node);
        let Some(own) = &mut world.nodes[at] else { return };
        if !accepted || commit.clean {
            world.nodes[at] = None;
            return;
        }
        own.version += 1;
        own.written = commit.lane.claim.is_some();
        (own.lane, own.waits_for) = (commit.memory, None);
        if let Some(op @ (Op::Done(nonce) | Op::Failed(nonce))) = commit.direct {
            own.direct = None;
            let counts = match op {
                Op::Done(_) => own.lane.end == Some(End::Done(nonce)),
                _ => own.lane.failed.contains(&nonce),
            };
            let answer = if counts { Answer::Applied } else { Answer::Lost };
            world.workers[usize::from(nonce)].told.get_or_insert(answer);
        }
    }

    fn take(&self, world: &mut World, node: u8) {
        let stored = &mut world.stored;
        stored.term += 1;
        stored.adopted = stored.lane.claim;
        let mut lane = stored.lane.clone();
        if self.has(Bug::ClaimNotAdopted) {
            lane.claim = None;
        }
        let written = lane.claim.is_some();
        let found_ended = self.has(Bug::EndedIsToldLost) && lane.end.is_some();
        let (term, version) = (stored.term, stored.version);
        world.nodes[usize::from(node)] =
            Some(Own { term, version, lane, found_ended, written, direct: None, waits_for: None });
    }

    fn settle(&self, world: &mut World, via: u8, op: Op) {
        let (Op::Done(nonce) | Op::Failed(nonce)) = op else { return };
        world.sends += 1;
        world.workers[usize::from(nonce)].sent = Some(op);
        match &mut world.nodes[usize::from(via)] {
            Some(own) if own.lane.claim == Some(nonce) && own.waits_for.is_none() && own.direct.is_none() => {
                own.direct = Some(op);
                if self.has(Bug::AnsweredBeforeDurable) {
                    world.workers[usize::from(nonce)].told = Some(Answer::Applied);
                }
            }
            Some(_) => world.send(op),
            None if self.has(Bug::SettleByNonOwner) && matches!(op, Op::Done(_)) => {
                world.stored.lane.end = Some(End::Done(nonce));
            }
            None => world.send(op),
        }
    }

    /// Somebody takes the seat, decides what waits, ends the lease of whoever is silent, and lets one more worker run the event.
    fn drains(&self, world: &World) -> bool {
        let mut calm = world.clone();
        self.take(&mut calm, 0);
        self.commit_now(&mut calm, Step::Work { node: 0, cancels: true });
        if calm.stored.lane.end.is_none() {
            self.commit_now(&mut calm, Step::EndLease(0));
            self.give(&mut calm, 0);
            if let Some(own) = &mut calm.nodes[0] {
                own.direct = own.lane.claim.map(Op::Done);
            }
            self.commit_now(&mut calm, Step::Work { node: 0, cancels: true });
        }
        calm.stored.lane.end.is_some() && calm.stored.requests.is_empty()
    }

    fn commit_now(&self, world: &mut World, step: Step) {
        self.gather(world, 0, step).expect("the first node owns the seat");
        let commit =
            world.nodes[0].as_ref().and_then(|own| own.waits_for.clone()).expect("it has just been gathered");
        let accepted = self.commit(world, &commit);
        self.hear(world, 0, commit, accepted);
    }

    fn give(&self, world: &mut World, node: u8) {
        let Some(own) = &mut world.nodes[usize::from(node)] else { return };
        if own.lane.claim.is_none() && own.lane.end.is_none() {
            own.lane.claim = Nonce::try_from(world.workers.len()).ok();
            own.written = false;
            world.workers.push(Worker { sent: None, told: None });
        }
    }

    fn node_steps(&self, world: &World, node: u8, own: &Own, steps: &mut Vec<Step>) {
        if own.waits_for.is_some() {
            steps.push(Step::Commit { node, answered: true });
            steps.push(Step::Commit { node, answered: false });
            return;
        }
        steps.push(Step::Drop(node));
        if own.direct.is_some() || !world.stored.requests.is_empty() {
            steps.push(Step::Work { node, cancels: true });
            let others = own.direct.is_some() || world.stored.requests.len() > 1;
            if others && own.lane.claim.is_some() && world.stored.requests.contains(&Op::Cancel) {
                steps.push(Step::Work { node, cancels: false });
            }
        }
        match own.lane.claim {
            None if own.lane.end.is_none() && world.workers.len() < usize::from(self.claims) => {
                steps.push(Step::Give(node));
            }
            // All commits of one who is not the owner any more end alike: one kind of them is enough.
            Some(_) if own.direct.is_none() && own.term == world.stored.term => {
                steps.push(Step::EndLease(node));
                if !own.written {
                    steps.push(Step::Write(node));
                }
            }
            _ => {}
        }
        if own.direct.is_none() && own.term == world.stored.term {
            steps.push(Step::HandOver(node));
        }
    }
}

impl World {
    fn send(&mut self, op: Op) {
        let at = self.net.partition_point(|other| *other < op);
        self.net.insert(at, op);
    }

    fn arrive(&mut self, op: Op, stays: bool) -> Option<()> {
        let at = self.net.iter().position(|other| *other == op)?;
        if stays {
            self.sends += 1;
        } else {
            self.net.remove(at);
        }
        if self.stored.tokens.iter().any(|(token, _)| *token == op) {
            self.note = Note::RepeatedToken;
            return Some(());
        }
        self.stored.tokens.push((op, None));
        self.stored.requests.push(op);
        Some(())
    }

    fn ask(&mut self, op: Op) {
        let found = self.stored.tokens.iter().find(|(token, _)| *token == op);
        let Some((_, Some(answer))) = found else { return };
        let told = match op {
            Op::Done(nonce) | Op::Failed(nonce) => &mut self.workers[usize::from(nonce)].told,
            Op::Cancel => &mut self.cancel_told,
        };
        told.get_or_insert(*answer);
    }
}

impl Model for Claims {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let lane = Lane { claim: None, end: None, failed: Vec::new() };
        let (requests, tokens) = (Vec::new(), Vec::new());
        let stored = Stored { term: 0, version: 0, lane, adopted: None, requests, tokens };
        let nodes = vec![None; usize::from(self.nodes)];
        let (workers, net) = (Vec::new(), Vec::new());
        vec![World { stored, nodes, workers, cancel_told: None, net, sends: 0, note: Note::Nothing }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        for (node, own) in (0..).zip(&world.nodes) {
            let is_owner = own.as_ref().is_some_and(|own| own.term == world.stored.term);
            if !is_owner && world.stored.term < self.grants && (node == 0 || world.stored.term > 0) {
                steps.push(Step::Take(node));
            }
            if let Some(own) = own {
                self.node_steps(world, node, own, steps);
            }
        }
        let may_send = world.sends < self.sends;
        for (nonce, worker) in (0..).zip(&world.workers) {
            let ops = match worker.sent {
                None => vec![Op::Done(nonce), Op::Failed(nonce)],
                Some(op) => vec![op],
            };
            let is_open = worker.told.is_none() && may_send;
            for op in ops.into_iter().filter(|_| is_open) {
                steps.extend((0..self.nodes).map(|via| Step::Settle { via, op }));
            }
        }
        let knows_cancel = |op: &Op| *op == Op::Cancel;
        let is_cancelling =
            world.net.iter().any(knows_cancel) || world.stored.tokens.iter().any(|(op, _)| knows_cancel(op));
        if may_send && !is_cancelling && world.cancel_told.is_none() {
            steps.push(Step::Cancel);
        }
        for (at, op) in world.net.iter().enumerate() {
            if at == 0 || world.net[at - 1] != *op {
                steps.push(Step::Arrive { op: *op, stays: false });
                if may_send {
                    steps.push(Step::Arrive { op: *op, stays: true });
                }
            }
        }
        for (op, answer) in &world.stored.tokens {
            if answer.is_some() {
                steps.extend([Step::Ask(*op), Step::Forget(*op)]);
            }
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut world = World { note: Note::Nothing, ..world.clone() };
        match step {
            Step::Take(node) => self.take(&mut world, node),
            Step::Drop(node) => world.nodes[usize::from(node)] = None,
            Step::Give(node) => self.give(&mut world, node),
            Step::Work { node, .. } | Step::Write(node) | Step::EndLease(node) | Step::HandOver(node) => {
                self.gather(&mut world, node, step)?;
            }
            Step::Commit { node, answered } => {
                let commit = world.nodes[usize::from(node)].as_ref()?.waits_for.clone()?;
                let accepted = self.commit(&mut world, &commit);
                if answered {
                    self.hear(&mut world, node, commit, accepted);
                } else {
                    world.nodes[usize::from(node)] = None;
                }
            }
            Step::Settle { via, op } => self.settle(&mut world, via, op),
            Step::Cancel => {
                world.sends += 1;
                world.send(Op::Cancel);
            }
            Step::Arrive { op, stays } => world.arrive(op, stays)?,
            Step::Forget(op) => world.stored.tokens.retain(|(token, _)| *token != op),
            Step::Ask(op) => world.ask(op),
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_END, |_, world: &World| world.note != Note::EndChanged),
            Property::always(EXCLUSIVE, |_, world: &World| {
                let owner = world.nodes.iter().flatten().find(|own| own.term == world.stored.term);
                let open = owner.and_then(|own| own.lane.claim);
                open.is_none() || world.stored.lane.claim.is_none() || open == world.stored.lane.claim
            }),
            Property::always(OPEN, |_, world: &World| world.note != Note::NotOpen),
            Property::always(ANSWER, |_, world: &World| world.note != Note::AnswerChanged),
            Property::always(TOLD, |_, world: &World| {
                let lane = &world.stored.lane;
                let is_true = |worker: &Worker| match (worker.sent, worker.told) {
                    (Some(Op::Done(nonce)), Some(Answer::Applied)) => lane.end == Some(End::Done(nonce)),
                    (Some(Op::Failed(nonce)), Some(Answer::Applied)) => lane.failed.contains(&nonce),
                    (_, Some(Answer::Already)) => lane.end.is_some(),
                    _ => true,
                };
                let cancelled =
                    world.cancel_told != Some(Answer::Applied) || lane.end == Some(End::Cancelled);
                cancelled && world.workers.iter().all(is_true)
            }),
            Property::always(LOST, |_, world: &World| {
                let end = world.stored.lane.end;
                let told = (0..).zip(&world.workers).filter(|(_, worker)| worker.told == Some(Answer::Lost));
                told.into_iter().all(|(nonce, _)| end != Some(End::Done(nonce)))
            }),
            Property::always(STRANDED, Self::drains),
            Property::sometimes("a commit was fenced", |_, world: &World| world.note == Note::Fenced),
            Property::sometimes("a claim was settled under the owner that adopted it", |_, world: &World| {
                world.note == Note::AdoptedSettled
            }),
            Property::sometimes("a request came again and was known", |_, world: &World| {
                world.note == Note::RepeatedToken
            }),
            Property::sometimes("a cancel beat a settlement", |_, world: &World| {
                world.note == Note::CancelBeatSettle
            }),
            Property::sometimes("a settlement beat a cancel", |_, world: &World| {
                world.note == Note::SettleBeatCancel
            }),
            Property::sometimes("a lease of a claim ended", |_, world: &World| {
                world.note == Note::LeaseEnded
            }),
            Property::sometimes("a worker was told that its claim is lost", |_, world: &World| {
                world.workers.iter().any(|worker| worker.told == Some(Answer::Lost))
            }),
            Property::sometimes("a worker was told that its settlement counts", |_, world: &World| {
                world.workers.iter().any(|worker| worker.told == Some(Answer::Applied))
            }),
        ]
    }
}
