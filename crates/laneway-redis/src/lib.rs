//! A store on Redis: the seams of `laneway-core`, each transition one script on the server.
//!
//! Reading order: `store` (how a call finds its keys), `methods` (one call per method), the scripts in `lua/` (the rules, one
//! file per method), `define` (definitions reach their shards), `link` and `server` (connection, life and safety of
//! the server), `rows`, `event` and `wire` (what is stored). `docs/design/redis-format.md` lists every key.

mod clock;
mod define;
mod documents;
mod event;
mod failure;
mod import;
mod keys;
mod link;
mod methods;
mod options;
mod pack;
mod plain;
mod query;
mod reply;
mod rows;
mod script;
mod seam;
mod server;
mod store;
mod wakeups;
mod wire;

pub use options::{RedisOptions, RedisTls};
pub use server::ServerReport;
pub use store::RedisStore;
