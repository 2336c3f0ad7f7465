//! Emits across shards: outbox, origin, and what a failover of either shard may lose (contract 1.1, 1.4, 1.8).
//!
//! The emitting shard has one seat; each of its events emits once into the receiving shard. A failover puts a shard back
//! to any older state of its own, and its store has another life from then on. Owners are dropped at any moment and never
//! know it; calls arrive late, twice or never. Each shard fails over alone: two shards of one server fail over together,
//! which is one of these histories.
//!
//! What a failover of the receiving shard may lose is what that store itself had acknowledged: emits that arrived and
//! were noted as forwarded. Everything else must hold all the same.

use stateright::{Model, Property};

pub(crate) const ORDER: &str = "events are settled in order and once in what survived";
pub(crate) const ONCE: &str = "an emit is in its target once";
pub(crate) const IN_ORDER: &str = "emits of an origin are in their target in order";
pub(crate) const KEPT: &str = "no committed emit is lost unless its target had it and lost it";
pub(crate) const OUTBOX: &str = "what is in the outbox has arrived or will be taken";
pub(crate) const IDS: &str = "no id is ever given to two events";
pub(crate) const REVENANT: &str = "no grant from before a failover commits";

/// Ids that an adoption leaves out, in this model: more than there are events.
const JUMP: u8 = 16;

/// A fault of the protocol, planted to see it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    FenceWithoutVersion,
    FenceWithoutAdoptions,
    OriginWithoutAdoptions,
    /// An emit is forwarded under the adoptions that the shard has by now, not under those of its commit.
    OriginOfTheForwarder,
    /// An owner from before an adoption forwards what was committed after it.
    ForwardsOfOtherLives,
    AdoptionKeepsIds,
    /// An append is taken by whatever life of the store it reaches.
    AppendWithoutIncarnation,
    /// After a failover of the target, forwarding goes on behind the last number that was answered before it.
    ForwardingGoesOn,
    /// Adoptions are counted up from what survived: a failover that loses an adoption gives its number again.
    AdoptionsCountedUp,
    /// The ids that an adoption leaves out are counted from what survived, so a second adoption leaves out the same.
    IdsCountedUp,
}

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emits {
    pub(crate) grants: u8,
    pub(crate) events: u8,
    pub(crate) repeats: u8,
    pub(crate) source_failovers: u8,
    pub(crate) target_failovers: u8,
    pub(crate) bug: Option<Bug>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Grant {
    term: u8,
    nonce: u8,
    adoptions: u8,
    /// The life of the store that gave it: not compared by anybody, only judged.
    life: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum What {
    Settle(u8),
    /// Everything up to this number has arrived.
    Note(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Commit {
    grant: Grant,
    version: u8,
    what: What,
}

/// An emit, told from every other by the commit that made it.
type Serial = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Append {
    /// The life of the target's store that the sender knows.
    life: u8,
    adoptions: u8,
    term: u8,
    number: u8,
    serial: Serial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Call {
    Commit { worker: u8, commit: Commit },
    Append { worker: u8, append: Append },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    number: u8,
    serial: Serial,
    /// Of the shard, when it was committed.
    adoptions: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Source {
    incarnation: u8,
    adoptions: u8,
    grant: Option<Grant>,
    version: u8,
    last: Option<Commit>,
    settled: Vec<u8>,
    outbox: Vec<Row>,
    emitted: u8,
    forwarded: u8,
    emits: Vec<Serial>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Arrived {
    id: u8,
    origin: u8,
    number: u8,
    serial: Serial,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Target {
    incarnation: u8,
    head: u8,
    log: Vec<Arrived>,
    /// By adoptions of the origin: term and highest number.
    seen: Vec<(u8, u8, u8)>,
}

/// A shard and its store: what it is now, the state that a failover goes back to, and its life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stored<A> {
    now: A,
    behind: Option<Box<A>>,
    life: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Own {
    grant: Grant,
    version: u8,
    settled: u8,
    /// Known to be noted.
    noted: u8,
    /// Answered by the target.
    through: u8,
    commit: Option<Call>,
    append: Option<Call>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Worker {
    target_life: u8,
    own: Option<Own>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Note {
    Nothing,
    Fenced,
    FencedByAdoption,
    Duplicate,
    OldLife,
    CameAgain,
    LateAfterItsSuccessor,
    IdGivenTwice,
    Revenant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    source: Stored<Source>,
    target: Stored<Target>,
    workers: Vec<Worker>,
    net: Vec<Call>,
    nonces: u8,
    serials: Serial,
    repeats: u8,
    /// Ids that were ever given, and to what.
    given: Vec<(u8, Serial)>,
    note: Note,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The copy that will be the next primary gets nothing from now on.
    FallBehind(Side),
    FailOver(Side),
    Adopt(Side),
    Seize(u8),
    /// A worker connects anew and learns which life of the target's store answers.
    Learn(u8),
    Settle(u8),
    Forward(u8),
    Note(u8),
    Repeat(Call),
    Drop(u8),
    Arrive {
        call: Call,
        answered: bool,
    },
}

enum Answer {
    Committed,
    Taken,
    Adopt,
    Fenced,
}

impl Emits {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn adopt(&self, world: &mut World, side: Side) {
        match side {
            Side::Source => {
                let life = world.source.life;
                let source = &mut world.source.now;
                source.incarnation = life;
                source.adoptions =
                    if self.has(Bug::AdoptionsCountedUp) { source.adoptions + 1 } else { life };
            }
            Side::Target => {
                let life = world.target.life;
                let target = &mut world.target.now;
                target.incarnation = life;
                target.head = match self.bug {
                    Some(Bug::AdoptionKeepsIds) => target.head,
                    Some(Bug::IdsCountedUp) => target.head + JUMP,
                    _ => life * JUMP,
                };
            }
        }
    }

    fn seize(&self, world: &mut World, worker: u8) {
        world.nonces += 1;
        let life = world.source.life;
        let source = &mut world.source.now;
        let term = source.grant.map_or(0, |grant| grant.term) + 1;
        let grant = Grant { term, nonce: world.nonces, adoptions: source.adoptions, life };
        (source.grant, source.last) = (Some(grant), None);
        world.workers[usize::from(worker)].own = Some(Own {
            grant,
            version: source.version,
            settled: source.settled.last().copied().unwrap_or(0),
            noted: source.forwarded,
            through: source.forwarded,
            commit: None,
            append: None,
        });
    }

    fn commit(&self, world: &mut World, commit: Commit) -> Answer {
        let life = world.source.life;
        let source = &mut world.source.now;
        let checks_version = !self.has(Bug::FenceWithoutVersion);
        let is_adopted = source.incarnation == life;
        let same_adoptions =
            source.adoptions == commit.grant.adoptions || self.has(Bug::FenceWithoutAdoptions);
        let same_grant = source.grant == Some(commit.grant);
        if checks_version
            && same_grant
            && same_adoptions
            && source.last == Some(commit)
            && source.version == commit.version + 1
        {
            return Answer::Committed;
        }
        let same_version = source.version == commit.version || !checks_version;
        if !(is_adopted && same_adoptions && same_grant && same_version) {
            let only_adoptions = is_adopted && same_grant && same_version;
            world.note = if only_adoptions { Note::FencedByAdoption } else { Note::Fenced };
            return Answer::Fenced;
        }
        if commit.grant.life != life {
            world.note = Note::Revenant;
        }
        source.version += 1;
        source.last = Some(commit);
        match commit.what {
            What::Settle(event) => {
                world.serials += 1;
                source.emitted += 1;
                source.settled.push(event);
                let (number, serial, adoptions) = (source.emitted, world.serials, source.adoptions);
                source.outbox.push(Row { number, serial, adoptions });
                source.emits.push(world.serials);
            }
            What::Note(through) => {
                source.forwarded = through;
                source.outbox.retain(|row| row.number > through);
            }
        }
        Answer::Committed
    }

    /// The name under which an origin is known at the target.
    fn origin(&self, adoptions: u8) -> u8 {
        if self.has(Bug::OriginWithoutAdoptions) { 0 } else { adoptions }
    }

    fn append(&self, world: &mut World, append: Append) -> Answer {
        let life = world.target.life;
        let target = &mut world.target.now;
        let knows_life = append.life == life && target.incarnation == life;
        if !knows_life && !self.has(Bug::AppendWithoutIncarnation) {
            world.note = Note::OldLife;
            return Answer::Adopt;
        }
        let origin = self.origin(append.adoptions);
        let at = target.seen.iter().position(|(name, ..)| *name == origin).unwrap_or_else(|| {
            target.seen.push((origin, append.term, 0));
            target.seen.len() - 1
        });
        let (_, term, highest) = &mut target.seen[at];
        if append.term < *term {
            return Answer::Fenced;
        }
        *term = append.term;
        if append.number <= *highest {
            world.note = Note::Duplicate;
            return Answer::Taken;
        }
        *highest = append.number;
        target.head += 1;
        let (id, Append { number, serial, .. }) = (target.head, append);
        if world.given.iter().any(|(_, other)| *other == serial) {
            world.note = Note::CameAgain;
        }
        // A commit that was lost may leave an emit under way: nobody will ever know that it was.
        if target.log.iter().any(|arrived| arrived.origin > origin && arrived.number >= number) {
            world.note = Note::LateAfterItsSuccessor;
        }
        if world.given.iter().any(|(other, to)| *other == id && *to != serial) {
            world.note = Note::IdGivenTwice;
        }
        target.log.push(Arrived { id, origin, number, serial });
        if let Err(place) = world.given.binary_search(&(id, serial)) {
            world.given.insert(place, (id, serial));
        }
        Answer::Taken
    }

    fn hear(&self, world: &mut World, call: Call, answer: &Answer) {
        let (Call::Commit { worker, .. } | Call::Append { worker, .. }) = call;
        let Some(own) = &mut world.workers[usize::from(worker)].own else { return };
        match (call, answer) {
            (_, Answer::Fenced) => world.workers[usize::from(worker)].own = None,
            (Call::Commit { commit, .. }, _) => {
                (own.commit, own.version) = (None, own.version + 1);
                match commit.what {
                    What::Settle(event) => own.settled = event,
                    What::Note(through) => own.noted = through,
                }
            }
            (Call::Append { append, .. }, Answer::Taken) => {
                (own.append, own.through) = (None, own.through.max(append.number));
            }
            (Call::Append { .. }, _) => own.append = None,
        }
    }

    fn learn(&self, world: &mut World, worker: u8) {
        let worker = &mut world.workers[usize::from(worker)];
        worker.target_life = world.target.life;
        if let Some(own) = &mut worker.own
            && !self.has(Bug::ForwardingGoesOn)
        {
            // What the life before had taken may be lost: only what is noted is gone from the outbox.
            (own.through, own.append) = (own.noted, None);
        }
    }

    fn act(&self, world: &mut World, worker: u8, step: Step) -> Option<()> {
        let target_life = world.workers[usize::from(worker)].target_life;
        let own = world.workers[usize::from(worker)].own.as_mut()?;
        let call = match step {
            Step::Settle(_) => {
                let what = What::Settle(own.settled + 1);
                Call::Commit { worker, commit: Commit { grant: own.grant, version: own.version, what } }
            }
            Step::Note(_) => {
                let what = What::Note(own.through);
                Call::Commit { worker, commit: Commit { grant: own.grant, version: own.version, what } }
            }
            _ => {
                let rows = &world.source.now.outbox;
                let row = *rows.iter().find(|row| row.number > own.through)?;
                let Grant { adoptions: mine, term, .. } = own.grant;
                // Somebody else owns the seat since: what is before this row may never have been forwarded.
                if row.adoptions > mine && !self.has(Bug::ForwardsOfOtherLives) {
                    return None;
                }
                let adoptions = if self.has(Bug::OriginOfTheForwarder) { mine } else { row.adoptions };
                let Row { number, serial, .. } = row;
                Call::Append { worker, append: Append { life: target_life, adoptions, term, number, serial } }
            }
        };
        match call {
            Call::Commit { .. } => own.commit = Some(call),
            Call::Append { .. } => own.append = Some(call),
        }
        world.send(call);
        Some(())
    }

    fn side_steps(&self, world: &World, steps: &mut Vec<Step>) {
        let source = &world.source;
        if source.now.incarnation != source.life {
            steps.push(Step::Adopt(Side::Source));
        }
        if source.life < self.source_failovers {
            let step = if source.behind.is_some() { Step::FailOver } else { Step::FallBehind };
            steps.push(step(Side::Source));
        }
        let target = &world.target;
        if target.now.incarnation != target.life {
            steps.push(Step::Adopt(Side::Target));
        }
        if target.life < self.target_failovers {
            let step = if target.behind.is_some() { Step::FailOver } else { Step::FallBehind };
            steps.push(step(Side::Target));
        }
    }

    /// Takes calls away that nobody waits for and that can change nothing any more. With a bug planted they might.
    fn forget_spent(&self, world: &mut World) {
        let mut net = std::mem::take(&mut world.net);
        net.retain(|call| world.is_awaited(*call) || !self.is_spent(world, *call));
        world.net = net;
    }

    fn is_spent(&self, world: &World, call: Call) -> bool {
        match call {
            Call::Commit { commit, .. } => {
                // A failover may make an old fence current again, and only the adoption ends it.
                let stays = world.source.life == self.source_failovers;
                let source = &world.source.now;
                stays && (source.grant != Some(commit.grant) || source.version > commit.version)
            }
            Call::Append { append, .. } => {
                let seen = world.target.now.highest(self.origin(append.adoptions));
                append.life != world.target.life || append.number <= seen
            }
        }
    }

    fn is_calm(world: &World) -> bool {
        world.source.now.incarnation == world.source.life && world.target.now.incarnation == world.target.life
    }

    fn will_be_taken(&self, world: &World, serial: Serial) -> bool {
        let is_taken = |row: &Row| row.number > world.target.now.highest(self.origin(row.adoptions));
        world.source.now.outbox.iter().any(|row| row.serial == serial && is_taken(row))
    }
}

impl Target {
    fn highest(&self, origin: u8) -> u8 {
        self.seen.iter().find(|(name, ..)| *name == origin).map_or(0, |(_, _, highest)| *highest)
    }

    fn has(&self, serial: Serial) -> bool {
        self.log.iter().any(|arrived| arrived.serial == serial)
    }
}

impl<A: Clone> Stored<A> {
    fn fail_over(&mut self) -> Option<()> {
        self.now = *self.behind.take()?;
        self.life += 1;
        Some(())
    }
}

impl World {
    fn send(&mut self, call: Call) {
        let at = self.net.partition_point(|other| *other < call);
        self.net.insert(at, call);
    }

    fn is_awaited(&self, call: Call) -> bool {
        let (Call::Commit { worker, .. } | Call::Append { worker, .. }) = call;
        let own = &self.workers[usize::from(worker)].own;
        own.as_ref().is_some_and(|own| own.commit == Some(call) || own.append == Some(call))
    }
}

impl Model for Emits {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let source = Source {
            incarnation: 0,
            adoptions: 0,
            grant: None,
            version: 0,
            last: None,
            settled: Vec::new(),
            outbox: Vec::new(),
            emitted: 0,
            forwarded: 0,
            emits: Vec::new(),
        };
        let target = Target { incarnation: 0, head: 0, log: Vec::new(), seen: Vec::new() };
        vec![World {
            source: Stored { now: source, behind: None, life: 0 },
            target: Stored { now: target, behind: None, life: 0 },
            workers: vec![Worker { target_life: 0, own: None }; 2],
            net: Vec::new(),
            nonces: 0,
            serials: 0,
            repeats: 0,
            given: Vec::new(),
            note: Note::Nothing,
        }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        self.side_steps(world, steps);
        let source = &world.source.now;
        for (at, worker) in (0..).zip(&world.workers) {
            let is_owner = worker.own.as_ref().is_some_and(|own| Some(own.grant) == source.grant);
            let may_seize = source.incarnation == world.source.life && world.nonces < self.grants;
            // Workers differ by nothing else: the first grant is the first worker's.
            if may_seize && !is_owner && (at == 0 || world.nonces > 0) {
                steps.push(Step::Seize(at));
            }
            if worker.target_life != world.target.life && worker.own.is_some() {
                steps.push(Step::Learn(at));
            }
            let Some(own) = &worker.own else { continue };
            if let Some(call) = own.commit {
                if world.repeats < self.repeats {
                    steps.push(Step::Repeat(call));
                }
            } else {
                if own.settled < self.events {
                    steps.push(Step::Settle(at));
                }
                if own.through > own.noted {
                    steps.push(Step::Note(at));
                }
            }
            if let Some(call) = own.append {
                if world.repeats < self.repeats {
                    steps.push(Step::Repeat(call));
                }
            } else if source.outbox.iter().any(|row| row.number > own.through) {
                steps.push(Step::Forward(at));
            }
            if own.commit.is_some() || own.append.is_some() {
                steps.push(Step::Drop(at));
            }
        }
        for (at, call) in world.net.iter().enumerate() {
            if at > 0 && world.net[at - 1] == *call {
                continue;
            }
            let answered = world.is_awaited(*call);
            steps.push(Step::Arrive { call: *call, answered });
            if answered && world.net.get(at + 1) == Some(call) {
                steps.push(Step::Arrive { call: *call, answered: false });
            }
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut world = World { note: Note::Nothing, ..world.clone() };
        match step {
            Step::FallBehind(Side::Source) => world.source.behind = Some(Box::new(world.source.now.clone())),
            Step::FallBehind(Side::Target) => world.target.behind = Some(Box::new(world.target.now.clone())),
            Step::FailOver(Side::Source) => world.source.fail_over()?,
            Step::FailOver(Side::Target) => world.target.fail_over()?,
            Step::Adopt(side) => self.adopt(&mut world, side),
            Step::Seize(worker) => {
                // A connection that is made for it knows who answers.
                world.workers[usize::from(worker)].target_life = world.target.life;
                self.seize(&mut world, worker);
            }
            Step::Learn(worker) => self.learn(&mut world, worker),
            Step::Settle(worker) | Step::Forward(worker) | Step::Note(worker) => {
                self.act(&mut world, worker, step)?;
            }
            Step::Repeat(call) => {
                world.repeats += 1;
                world.send(call);
            }
            Step::Drop(worker) => world.workers[usize::from(worker)].own = None,
            Step::Arrive { call, answered } => {
                let at = world.net.iter().position(|other| *other == call)?;
                world.net.remove(at);
                let answer = match call {
                    Call::Commit { commit, .. } => self.commit(&mut world, commit),
                    Call::Append { append, .. } => self.append(&mut world, append),
                };
                if answered {
                    self.hear(&mut world, call, &answer);
                }
            }
        }
        if self.bug.is_none() {
            self.forget_spent(&mut world);
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ORDER, |_, world: &World| {
                (1..).zip(&world.source.now.settled).all(|(at, event)| at == *event)
            }),
            Property::always(ONCE, |_, world: &World| {
                let log = &world.target.now.log;
                let is_first = |at: usize| !log[..at].iter().any(|other| other.serial == log[at].serial);
                (0..log.len()).all(is_first)
            }),
            Property::always(IN_ORDER, |_, world: &World| {
                let log = &world.target.now.log;
                let follows = |at: usize| {
                    log[..at]
                        .iter()
                        .all(|other| other.origin != log[at].origin || other.number < log[at].number)
                };
                (0..log.len()).all(follows)
            }),
            Property::always(KEPT, |model: &Self, world: &World| {
                let is_kept = |serial: &Serial| {
                    world.given.iter().any(|(_, other)| other == serial)
                        || model.will_be_taken(world, *serial)
                };
                !Self::is_calm(world) || world.source.now.emits.iter().all(is_kept)
            }),
            Property::always(OUTBOX, |model: &Self, world: &World| {
                let is_kept =
                    |row: &Row| world.target.now.has(row.serial) || model.will_be_taken(world, row.serial);
                !Self::is_calm(world) || world.source.now.outbox.iter().all(is_kept)
            }),
            Property::always(IDS, |_, world: &World| world.note != Note::IdGivenTwice),
            Property::always(REVENANT, |_, world: &World| world.note != Note::Revenant),
            Property::sometimes("a commit was fenced", |_, world: &World| world.note == Note::Fenced),
            Property::sometimes("adoptions alone fenced a commit", |_, world: &World| {
                world.note == Note::FencedByAdoption
            }),
            Property::sometimes("an emit was told to be a duplicate", |_, world: &World| {
                world.note == Note::Duplicate
            }),
            Property::sometimes("an append met another life of its store", |_, world: &World| {
                world.note == Note::OldLife
            }),
            Property::sometimes("an emit that its target had lost came again", |_, world: &World| {
                world.note == Note::CameAgain && world.source.life == 0
            }),
            Property::sometimes(
                "the emitting shard lost a commit, and its emit arrived after what replaced it",
                |_, world: &World| world.note == Note::LateAfterItsSuccessor,
            ),
            Property::sometimes("an emit was noted and then lost by its target", |_, world: &World| {
                let is_lost = |serial: &Serial| {
                    !world.target.now.has(*serial)
                        && !world.source.now.outbox.iter().any(|row| row.serial == *serial)
                };
                world.source.now.emits.iter().any(is_lost)
            }),
            Property::sometimes("everything has arrived", |model: &Self, world: &World| {
                world.source.now.forwarded == model.events
                    && world.target.now.log.len() == usize::from(model.events)
            }),
        ]
    }
}
