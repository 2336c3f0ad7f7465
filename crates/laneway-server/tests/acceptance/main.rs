//! What is promised, seen from outside only: the real program on a free port, one folder per scenario.
//!
//! `support` has what they share. How the program is started, ended and listened to is the same as in `tests/it`.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![expect(clippy::print_stdout, reason = "what was counted is part of the result")]

#[path = "any_node/test.rs"]
mod any_node;
#[path = "bodies/test.rs"]
mod bodies;
#[path = "clock/test.rs"]
mod clock;
#[path = "cluster/test.rs"]
mod cluster;
#[path = "damage/test.rs"]
mod damage;
#[path = "faults/test.rs"]
mod faults;
#[path = "follow/test.rs"]
mod follow;
#[path = "full_disk/test.rs"]
mod full_disk;
#[path = "idempotency/test.rs"]
mod idempotency;
#[path = "killer/test.rs"]
mod killer;
#[path = "kills/test.rs"]
mod kills;
#[path = "newest_wins/test.rs"]
mod newest_wins;
#[path = "odd_keys/test.rs"]
mod odd_keys;
#[path = "order/test.rs"]
mod order;
#[path = "poison/test.rs"]
mod poison;
#[expect(dead_code, reason = "the tests of each part use the rest")]
#[path = "../it/program.rs"]
mod program;
#[path = "../it/raw.rs"]
mod raw;
#[path = "redrive/test.rs"]
mod redrive;
#[path = "retries/test.rs"]
mod retries;
mod seam;
#[path = "steering/test.rs"]
mod steering;
mod support;
#[path = "two_servers/test.rs"]
mod two_servers;
#[path = "upgrade/test.rs"]
mod upgrade;
