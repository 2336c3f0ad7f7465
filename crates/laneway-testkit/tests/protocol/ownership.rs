//! Who owns a seat: documents of nodes with leases, burial, seizing, and commits under a fence.
//!
//! Rules F1 to F8 and contract 1.8. A lease ends at any moment; whoever sent a call may wait for ever,
//! send it again or give it up, and every copy arrives at any later time or never. A frozen node is one that does
//! nothing for a while; it goes by no deadline of its own, because safety must not rest on one (rule F4).
//!
//! Not here: the leader and its plan, which only say who should own. Here anybody may try to.

use stateright::{Model, Property};

pub(crate) const ORDER: &str = "events are settled in order and once";
pub(crate) const ZOMBIE: &str = "no commit of a grant that was taken away";
pub(crate) const ROBBED: &str = "no seat is taken from an owner that lives and kept it";
pub(crate) const BURIED_ALIVE: &str = "no lease is buried that was renewed";
pub(crate) const REVIVED: &str = "a buried token never comes back";
pub(crate) const STRANDED: &str = "with faults over whoever is to own the seat settles everything";

/// A fault of the protocol, planted to see it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The nonce names the node, and it alone is the fence (seed 004).
    TokenPerNode,
    FenceWithoutVersion,
    /// A seizure does not compare the owner.
    RescueById,
    BuryWithoutVersion,
    /// A renewal writes the document whether it is there or not.
    RenewRevives,
    /// A seat is seized whether it is free or not.
    SeizeFromTheLiving,
    /// The documents are listed before the seat's record is read: an owner that joined in between looks dead.
    ListBeforeTheSeat,
    /// A join whose answer is missing is sent again under the same token.
    JoinRepeated,
    /// After its last, clean commit an owner goes on under the same grant.
    GoesOnAfterClean,
    /// A seizure that was given up leaves a seat behind that names a living node which does not know of it.
    GivenUpSeizureForgotten,
}

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ownership {
    pub(crate) nodes: u8,
    pub(crate) tokens: u8,
    pub(crate) grants: u8,
    pub(crate) events: u8,
    pub(crate) renewals: u8,
    pub(crate) repeats: u8,
    pub(crate) reads: Reads,
    pub(crate) bug: Option<Bug>,
}

/// A taker reads the seat's record and the list of documents, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Nothing happens between the two. That loses nothing but seizures that are refused: a record that has changed
    /// since has another grant, and one that is clean stays so under its grant.
    AtOnce,
    Apart,
}

/// One life of a node; its place in the list of documents.
type Token = u8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Document {
    version: u8,
    is_there: bool,
    expired: bool,
    buried: bool,
}

/// What names a grant: the term counts, the nonce is made for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Grant {
    term: u8,
    nonce: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Commit {
    grant: Grant,
    version: u8,
    /// The event that it settles; none in the commit that hands the seat over.
    event: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    owner: Option<(Token, Grant)>,
    version: u8,
    clean: bool,
    last: Option<Commit>,
    settled: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Call {
    Join { token: Token },
    Renew { token: Token, version: u8 },
    Bury { token: Token, version: u8 },
    Seize { node: u8, token: Token, expect: Option<Grant>, nonce: u8 },
    Commit { node: u8, commit: Commit },
}

/// What a node saw before it decides whether a seat is free: one of two reads, the other is made when it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Look {
    Seat {
        owner: Option<(Token, Grant)>,
        clean: bool,
    },
    /// Bit by token.
    Documents(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Hold {
    Nothing,
    Looked(Look),
    /// The call is not answered yet.
    Seizing(Call),
    Owns {
        grant: Grant,
        version: u8,
        settled: u8,
        waits_for: Option<Call>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    token: Option<Token>,
    hold: Hold,
}

/// What the last step was, if anything worth a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Note {
    Nothing,
    Fenced,
    RepeatAnswered,
    RenewedLate,
    RenewalLost,
    BurialLost,
    TakenFromTheDead,
    TakenClean,
    SecondTakerRefused,
    Zombie,
    Robbed,
    BuriedAlive,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    documents: Vec<Document>,
    seat: Record,
    nodes: Vec<Node>,
    /// Sent and not arrived, in order of their kinds: order in time is what the search makes up.
    net: Vec<Call>,
    nonces: u8,
    repeats: u8,
    renewals: u8,
    note: Note,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Join(u8),
    /// A node finds that its document is gone, drops everything, and may join again.
    FindBuried(u8),
    Expire(Token),
    Renew(u8),
    Bury {
        by: u8,
        token: Token,
    },
    Look(u8),
    Seize(u8),
    Settle(u8),
    Rest(u8),
    Repeat(u8),
    GiveUp(u8),
    Arrive {
        call: Call,
        answered: bool,
    },
}

enum Answer {
    Granted { grant: Grant, version: u8, settled: u8 },
    Committed,
    Fenced,
    Nothing,
}

impl Ownership {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn same_grant(&self, left: Grant, right: Grant) -> bool {
        if self.has(Bug::TokenPerNode) { left.nonce == right.nonce } else { left == right }
    }

    fn apply(&self, world: &mut World, call: Call) -> Answer {
        match call {
            Call::Join { token } => {
                let document = &mut world.documents[usize::from(token)];
                if !document.is_there {
                    *document = Document {
                        is_there: true,
                        expired: false,
                        version: document.version + 1,
                        ..*document
                    };
                }
                Answer::Nothing
            }
            Call::Renew { token, version } => self.renew(world, token, version),
            Call::Bury { token, version } => self.bury(world, token, version),
            Call::Seize { token, expect, nonce, .. } => self.seize(world, token, expect, nonce),
            Call::Commit { commit, .. } => self.commit(world, commit),
        }
    }

    fn renew(&self, world: &mut World, token: Token, version: u8) -> Answer {
        let document = &mut world.documents[usize::from(token)];
        if self.has(Bug::RenewRevives) || document.is_there && document.version == version {
            let was_expired = document.expired;
            *document =
                Document { is_there: true, expired: false, version: document.version + 1, ..*document };
            if world.net.contains(&Call::Bury { token, version }) {
                world.note = Note::BurialLost;
            } else if was_expired {
                world.note = Note::RenewedLate;
            }
        }
        Answer::Nothing
    }

    fn bury(&self, world: &mut World, token: Token, version: u8) -> Answer {
        let document = &mut world.documents[usize::from(token)];
        let is_seen = document.version == version || self.has(Bug::BuryWithoutVersion);
        if document.is_there && is_seen {
            if !document.expired {
                world.note = Note::BuriedAlive;
            }
            *document =
                Document { is_there: false, buried: true, version: document.version + 1, ..*document };
            if world.net.contains(&Call::Renew { token, version }) {
                world.note = Note::RenewalLost;
            }
        }
        Answer::Nothing
    }

    fn seize(&self, world: &mut World, token: Token, expect: Option<Grant>, nonce: u8) -> Answer {
        let seat = &mut world.seat;
        let granted = |seat: &Record, grant| Answer::Granted {
            grant,
            version: seat.version,
            settled: seat.settled.last().copied().unwrap_or(0),
        };
        if let Some((_, grant)) = seat.owner
            && grant.nonce == nonce
            && seat.last.is_none()
        {
            return granted(seat, grant);
        }
        let is_expected = match (seat.owner, expect) {
            (None, None) => true,
            (Some((_, stored)), Some(expect)) => self.same_grant(stored, expect),
            _ => false,
        };
        if !is_expected && !self.has(Bug::RescueById) {
            world.note = Note::SecondTakerRefused;
            return Answer::Fenced;
        }
        if let Some((owner, _)) = seat.owner {
            let lives = world.documents[usize::from(owner)].is_there && owner != token;
            world.note = match (seat.clean, lives) {
                (true, _) => Note::TakenClean,
                (false, true) => Note::Robbed,
                (false, false) => Note::TakenFromTheDead,
            };
        }
        let grant = Grant { term: seat.owner.map_or(0, |(_, grant)| grant.term) + 1, nonce };
        seat.owner = Some((token, grant));
        (seat.clean, seat.last) = (false, None);
        granted(seat, grant)
    }

    fn commit(&self, world: &mut World, commit: Commit) -> Answer {
        let seat = &mut world.seat;
        let Some((_, stored)) = seat.owner else { return Answer::Fenced };
        let checks_version = !self.has(Bug::FenceWithoutVersion) && !self.has(Bug::TokenPerNode);
        if checks_version && seat.last == Some(commit) && seat.version == commit.version + 1 {
            world.note = Note::RepeatAnswered;
            return Answer::Committed;
        }
        if !self.same_grant(stored, commit.grant) || checks_version && seat.version != commit.version {
            world.note = Note::Fenced;
            return Answer::Fenced;
        }
        if stored != commit.grant {
            world.note = Note::Zombie;
        }
        seat.version += 1;
        seat.clean = commit.event.is_none();
        seat.last = Some(commit);
        seat.settled.extend(commit.event);
        Answer::Committed
    }

    /// What a node does with an answer to the call that it waits for.
    fn hear(&self, world: &mut World, node: u8, call: Call, answer: &Answer) {
        let hold = &mut world.nodes[usize::from(node)].hold;
        *hold = match (*hold, answer) {
            (Hold::Seizing(_), Answer::Granted { grant, version, settled }) => {
                Hold::Owns { grant: *grant, version: *version, settled: *settled, waits_for: None }
            }
            (Hold::Owns { grant, version, settled, .. }, Answer::Committed) => match call {
                Call::Commit { commit: Commit { event: None, .. }, .. }
                    if !self.has(Bug::GoesOnAfterClean) =>
                {
                    Hold::Nothing
                }
                Call::Commit { commit, .. } => {
                    let settled = commit.event.unwrap_or(settled);
                    Hold::Owns { grant, version: version + 1, settled, waits_for: None }
                }
                _ => Hold::Nothing,
            },
            _ => Hold::Nothing,
        };
    }

    /// Whether a node may seize, by what it saw before and what it sees now.
    fn free(&self, world: &World, hold: Hold, token: Token) -> Option<Option<Grant>> {
        let look = if let Hold::Looked(look) = hold { look } else { self.look(world) };
        let there_now = |other: Token| world.documents[usize::from(other)].is_there;
        let (owner, clean, has_document) = match look {
            Look::Seat { owner, clean } => (owner, clean, owner.is_some_and(|(other, _)| there_now(other))),
            Look::Documents(seen) => {
                let owner = world.seat.owner;
                (owner, world.seat.clean, owner.is_some_and(|(other, _)| seen >> other & 1 == 1))
            }
        };
        let expect = owner.map(|(_, grant)| grant);
        // What names this very life of this node, and is not held by it, was given up by it.
        let is_own =
            owner.is_some_and(|(other, _)| other == token) && !self.has(Bug::GivenUpSeizureForgotten);
        let free = clean || !has_document || is_own || self.has(Bug::SeizeFromTheLiving);
        free.then_some(expect)
    }

    fn look(&self, world: &World) -> Look {
        if !self.has(Bug::ListBeforeTheSeat) {
            return Look::Seat { owner: world.seat.owner, clean: world.seat.clean };
        }
        let bit = |(token, document): (usize, &Document)| u8::from(document.is_there) << token;
        Look::Documents(world.documents.iter().enumerate().map(bit).sum())
    }

    fn nonce(&self, world: &mut World, node: u8) -> u8 {
        world.nonces += 1;
        if self.has(Bug::TokenPerNode) { node } else { world.nonces }
    }

    fn act(&self, world: &mut World, node: u8, step: Step) -> Option<()> {
        let Node { token, hold } = world.nodes[usize::from(node)].clone();
        let next = match (step, hold) {
            (Step::Look(_), Hold::Nothing) => Hold::Looked(self.look(world)),
            (Step::Seize(_), Hold::Nothing | Hold::Looked(_)) => match self.free(world, hold, token?) {
                None => Hold::Nothing,
                Some(expect) => {
                    let nonce = self.nonce(world, node);
                    let call = Call::Seize { node, token: token?, expect, nonce };
                    world.send(call);
                    Hold::Seizing(call)
                }
            },
            (Step::Settle(_) | Step::Rest(_), Hold::Owns { grant, version, settled, waits_for: None }) => {
                let event = matches!(step, Step::Settle(_)).then_some(settled + 1);
                let call = Call::Commit { node, commit: Commit { grant, version, event } };
                world.send(call);
                Hold::Owns { grant, version, settled, waits_for: Some(call) }
            }
            (Step::Repeat(_), Hold::Seizing(call) | Hold::Owns { waits_for: Some(call), .. }) => {
                world.repeats += 1;
                world.send(call);
                hold
            }
            (Step::GiveUp(_), Hold::Seizing(_) | Hold::Owns { waits_for: Some(_), .. }) => Hold::Nothing,
            _ => return None,
        };
        world.nodes[usize::from(node)].hold = next;
        Some(())
    }

    fn join(&self, world: &mut World, node: u8) {
        let token = Token::try_from(world.documents.len()).expect("few lives");
        // Call and answer in one step: a document under a token that nobody uses is a lease that ends.
        world.documents.push(Document { version: 1, is_there: true, expired: false, buried: false });
        world.nodes[usize::from(node)].token = Some(token);
        if self.has(Bug::JoinRepeated) {
            world.send(Call::Join { token });
        }
    }

    /// One round of a node when nothing goes wrong any more: everything is answered at once.
    fn calm_round(&self, world: &mut World, node: u8, is_to_own: bool) {
        let at = usize::from(node);
        let lives = world.nodes[at].token.is_some_and(|token| {
            let document = &world.documents[usize::from(token)];
            document.is_there && !document.expired
        });
        if !lives {
            world.nodes[at] = Node { token: None, hold: Hold::Nothing };
            self.join(world, node);
        }
        // What nobody renews has expired by now, and is buried.
        let living: Vec<_> = world.nodes.iter().filter_map(|node| node.token).collect();
        for (token, document) in (0..).zip(&mut world.documents) {
            document.is_there &= living.contains(&token);
        }
        if let Hold::Seizing(call) | Hold::Owns { waits_for: Some(call), .. } = world.nodes[at].hold {
            let answer = self.apply(world, call);
            self.hear(world, node, call, &answer);
        }
        let names_me = world.seat.owner.is_some_and(|(owner, _)| Some(owner) == world.nodes[at].token);
        let left_behind = names_me && !world.seat.clean && !self.has(Bug::GivenUpSeizureForgotten);
        let holds = matches!(world.nodes[at].hold, Hold::Owns { .. });
        let mut steps = Vec::new();
        if !holds && (is_to_own || left_behind) {
            steps.push(Step::Seize(node));
        }
        if is_to_own {
            steps.extend((0..self.events).map(|_| Step::Settle(node)));
        } else {
            steps.push(Step::Rest(node));
        }
        for step in steps {
            let is_over = step == Step::Settle(node) && world.seat.settled.len() >= usize::from(self.events);
            if is_over || self.act(world, node, step).is_none() {
                continue;
            }
            if let Hold::Seizing(call) | Hold::Owns { waits_for: Some(call), .. } = world.nodes[at].hold {
                let answer = self.apply(world, call);
                self.hear(world, node, call, &answer);
            }
        }
    }

    /// Whether everything is settled in a few rounds, whichever node is to own the seat.
    fn drains(&self, world: &World) -> bool {
        (0..self.nodes).all(|owner| {
            let mut calm = World { net: Vec::new(), ..world.clone() };
            for _ in 0..3 {
                (0..self.nodes).for_each(|node| self.calm_round(&mut calm, node, node == owner));
            }
            calm.seat.settled.len() >= usize::from(self.events)
        })
    }
}

impl World {
    fn send(&mut self, call: Call) {
        let at = self.net.partition_point(|other| *other < call);
        self.net.insert(at, call);
    }

    /// Takes calls away that nobody waits for and that can change nothing any more, whenever they arrive: versions and
    /// terms only grow. With a bug planted they might, so there they stay.
    fn forget_spent(&mut self) {
        let mut net = std::mem::take(&mut self.net);
        net.retain(|call| self.who_waits_for(*call).is_some() || !self.is_spent(*call));
        self.net = net;
    }

    fn is_spent(&self, call: Call) -> bool {
        match call {
            Call::Join { token } => self.documents[usize::from(token)].is_there,
            Call::Renew { token, version } | Call::Bury { token, version } => {
                self.documents[usize::from(token)].version > version
            }
            Call::Seize { expect, .. } => self.seat.owner.map(|(_, grant)| grant) != expect,
            Call::Commit { commit, .. } => self.seat.version > commit.version,
        }
    }

    /// The node that waits for an answer to this call.
    fn who_waits_for(&self, call: Call) -> Option<u8> {
        let (Call::Seize { node, .. } | Call::Commit { node, .. }) = call else { return None };
        let waits = match self.nodes[usize::from(node)].hold {
            Hold::Seizing(own) => own == call,
            Hold::Owns { waits_for, .. } => waits_for == Some(call),
            _ => false,
        };
        waits.then_some(node)
    }
}

impl Model for Ownership {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let seat = Record { owner: None, version: 0, clean: true, last: None, settled: Vec::new() };
        let node = Node { token: None, hold: Hold::Nothing };
        let nodes = vec![node; usize::from(self.nodes)];
        let (documents, net) = (Vec::new(), Vec::new());
        vec![World { documents, seat, nodes, net, nonces: 0, repeats: 0, renewals: 0, note: Note::Nothing }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        for (node, Node { token, hold }) in (0..).zip(&world.nodes) {
            let Some(token) = token else {
                // Nodes differ by nothing else, so it is enough that they first join in one order.
                let lives = world.documents.len();
                if lives < usize::from(self.tokens) && lives >= usize::from(node) {
                    steps.push(Step::Join(node));
                }
                continue;
            };
            let document = &world.documents[usize::from(*token)];
            if document.is_there {
                let renewal = Call::Renew { token: *token, version: document.version };
                if !document.expired && world.renewals < self.renewals && !world.net.contains(&renewal) {
                    steps.push(Step::Renew(node));
                }
            } else {
                steps.push(Step::FindBuried(node));
            }
            for (other, document) in (0..).zip(&world.documents) {
                let burial = Call::Bury { token: other, version: document.version };
                if other != *token && document.is_there && document.expired && !world.net.contains(&burial) {
                    steps.push(Step::Bury { by: node, token: other });
                }
            }
            match hold {
                Hold::Nothing if world.nonces < self.grants => steps.push(match self.reads {
                    Reads::AtOnce => Step::Seize(node),
                    Reads::Apart => Step::Look(node),
                }),
                Hold::Looked(_) => steps.push(Step::Seize(node)),
                Hold::Seizing(_) | Hold::Owns { waits_for: Some(_), .. } => {
                    if world.repeats < self.repeats {
                        steps.push(Step::Repeat(node));
                    }
                    steps.push(Step::GiveUp(node));
                }
                Hold::Owns { settled, waits_for: None, .. } => {
                    if *settled < self.events {
                        steps.push(Step::Settle(node));
                    }
                    steps.push(Step::Rest(node));
                }
                Hold::Nothing => {}
            }
        }
        for (token, document) in (0..).zip(&world.documents) {
            if document.is_there && !document.expired {
                steps.push(Step::Expire(token));
            }
        }
        for (at, call) in world.net.iter().enumerate() {
            let is_repeated = world.net.get(at + 1) == Some(call);
            if at > 0 && world.net[at - 1] == *call {
                continue;
            }
            let awaited = world.who_waits_for(*call).is_some();
            steps.push(Step::Arrive { call: *call, answered: awaited });
            if awaited && is_repeated {
                steps.push(Step::Arrive { call: *call, answered: false });
            }
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut world = World { note: Note::Nothing, ..world.clone() };
        match step {
            Step::Join(node) => self.join(&mut world, node),
            Step::FindBuried(node) => {
                world.nodes[usize::from(node)] = Node { token: None, hold: Hold::Nothing };
            }
            Step::Expire(token) => world.documents[usize::from(token)].expired = true,
            Step::Renew(node) => {
                let token = world.nodes[usize::from(node)].token?;
                let version = world.documents[usize::from(token)].version;
                world.renewals += 1;
                world.send(Call::Renew { token, version });
            }
            Step::Bury { token, .. } => {
                let version = world.documents[usize::from(token)].version;
                world.send(Call::Bury { token, version });
            }
            Step::Arrive { call, answered } => {
                let at = world.net.iter().position(|other| *other == call)?;
                world.net.remove(at);
                let waiting = world.who_waits_for(call).filter(|_| answered);
                let answer = self.apply(&mut world, call);
                if let Some(node) = waiting {
                    self.hear(&mut world, node, call, &answer);
                }
            }
            Step::Look(node)
            | Step::Seize(node)
            | Step::Settle(node)
            | Step::Rest(node)
            | Step::Repeat(node)
            | Step::GiveUp(node) => self.act(&mut world, node, step)?,
        }
        if self.bug.is_none() {
            world.forget_spent();
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ORDER, |_, world: &World| {
                (1..).zip(&world.seat.settled).all(|(at, event)| at == *event)
            }),
            Property::always(ZOMBIE, |_, world: &World| world.note != Note::Zombie),
            Property::always(ROBBED, |_, world: &World| world.note != Note::Robbed),
            Property::always(BURIED_ALIVE, |_, world: &World| world.note != Note::BuriedAlive),
            Property::always(REVIVED, |_, world: &World| {
                !world.documents.iter().any(|document| document.is_there && document.buried)
            }),
            Property::always(STRANDED, Self::drains),
            Property::sometimes("a commit was fenced", |_, world: &World| world.note == Note::Fenced),
            Property::sometimes("a repeated commit was told that it had happened", |_, world: &World| {
                world.note == Note::RepeatAnswered
            }),
            Property::sometimes(
                "a lease that had ended was renewed before anybody acted",
                |_, world: &World| world.note == Note::RenewedLate,
            ),
            Property::sometimes("a renewal came after a burial", |_, world: &World| {
                world.note == Note::RenewalLost
            }),
            Property::sometimes("a burial came after a renewal", |_, world: &World| {
                world.note == Note::BurialLost
            }),
            Property::sometimes("the seat of a dead node was taken", |_, world: &World| {
                world.note == Note::TakenFromTheDead
            }),
            Property::sometimes("a seat was handed over", |_, world: &World| world.note == Note::TakenClean),
            Property::sometimes("the second of two takers was refused", |_, world: &World| {
                world.note == Note::SecondTakerRefused
            }),
            Property::sometimes("everything was settled", |model: &Self, world: &World| {
                world.seat.settled.len() == usize::from(model.events)
            }),
        ]
    }
}
