//! Names of keys. All keys of a shard share its hash tag, so that one script may touch them all, also on a cluster; the
//! catalogue and the documents have a tag of their own. `docs/design/redis-format.md` says what each holds.

use laneway_core::{ProcessorId, Shard};

/// Keys of a shard, in the order in which `base.lua` takes them.
const SHARD: [&str; 25] = [
    "meta",
    "log",
    "tail",
    "tail:z",
    "object",
    "object:z",
    "dedup",
    "dedup:z",
    "dedup:names",
    "source",
    "source:z",
    "schedule",
    "schedule:z",
    "due:steady",
    "due:calendar",
    "urgent",
    "ticket",
    "ticket:z",
    "end",
    "end:z",
    "end:life",
    "end:gone",
    "shortened",
    "chunk",
    "chunk:z",
];

/// Keys of a seat, in the order in which `base.lua` takes them.
const SEAT: [&str; 22] = [
    "seat",
    "window",
    "lane",
    "lane:z",
    "kind",
    "due:steady",
    "due:calendar",
    "sided",
    "sided:z",
    "siding",
    "state",
    "state:z",
    "ending",
    "ending:z",
    "dead",
    "dead:z",
    "outbox",
    "request",
    "request:z",
    "token",
    "token:z",
    "token:life",
];

/// Where everything of one store lies on its server.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    namespace: String,
}

impl Names {
    pub(crate) fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned() }
    }

    /// The channel on which wake-ups are told.
    pub(crate) fn channel(&self) -> String {
        format!("laneway:{{{}}}:wakeups", self.namespace)
    }

    /// Streams, numbers, and definitions that shards have not all taken over.
    pub(crate) fn catalogue(&self) -> Vec<String> {
        ["streams", "numbers", "todo"].map(|name| self.of_store(name)).to_vec()
    }

    /// Documents and their order.
    pub(crate) fn documents(&self) -> Vec<String> {
        ["documents", "documents:z"].map(|name| self.of_store(name)).to_vec()
    }

    /// What was found of the server's clock, and the streams, which tell whether a store is there.
    pub(crate) fn clock(&self) -> Vec<String> {
        ["clock", "streams"].map(|name| self.of_store(name)).to_vec()
    }

    fn of_store(&self, name: &str) -> String {
        format!("laneway:{{{}}}:{name}", self.namespace)
    }

    /// A shard with some of its seats.
    pub(crate) fn shard(&self, shard: Shard, seats: &[ProcessorId]) -> Vec<String> {
        let tag = format!("laneway:{{{}/{shard}}}", self.namespace);
        let of_seat = |processor: &ProcessorId| {
            let tag = format!("{tag}:{processor}");
            SEAT.map(|name| format!("{tag}:{name}"))
        };
        let of_shard = SHARD.iter().map(|name| format!("{tag}:{name}"));
        of_shard.chain(seats.iter().flat_map(of_seat)).collect()
    }
}
