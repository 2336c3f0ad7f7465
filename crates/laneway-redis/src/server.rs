//! What a server says about itself: who it is, and how safe what it keeps is. Read by every connection before its first
//! write, because a server that came back may have lost what it had answered, and may have other settings.

use std::collections::HashMap;
use std::fmt;

use laneway_core::{Durability, Incarnation, Refusal, Result, StoreError};
use redis::aio::MultiplexedConnection;

use crate::options::RedisOptions;

/// First version with what the scripts use.
const MAJOR_MIN: u32 = 7;

/// A server that may hold a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) incarnation: Incarnation,
    pub(crate) report: ServerReport,
}

/// What a server said of itself when it was last connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// Its version.
    pub version: String,
    /// Whether it writes down what it changes (`appendonly`).
    pub append_only: bool,
    /// How often it syncs that (`appendfsync`). Nothing where it does not tell its settings: then `everysec` is assumed.
    pub append_sync: Option<String>,
    /// Replicas that are connected to it.
    pub replicas: u32,
    /// Bytes it may use; 0 is no limit (`maxmemory`).
    pub memory_max: u64,
    /// Bytes it uses.
    pub memory_used: u64,
    /// How safe answers are.
    pub durability: Durability,
}

impl fmt::Display for ServerReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let append_only = if self.append_only { "yes" } else { "no" };
        write!(formatter, "Redis {}, appendonly {append_only}", self.version)?;
        match &self.append_sync {
            Some(sync) => write!(formatter, ", appendfsync {sync}")?,
            None => write!(formatter, ", appendfsync not told (CONFIG GET is refused), everysec assumed")?,
        }
        write!(
            formatter,
            ", maxmemory-policy noeviction, replicas {}: answers are {}",
            self.replicas, self.durability
        )
    }
}

impl Server {
    /// Asks the server, and refuses one that could lose or hide what it was given.
    pub(crate) async fn ask(connection: &mut MultiplexedConnection, options: &RedisOptions) -> Result<Self> {
        let said: String = redis::cmd("INFO").query_async(connection).await.map_err(unanswered)?;
        let mut facts = Facts::of(&said);
        let asked = redis::cmd("CONFIG").arg("GET").arg("appendfsync").query_async(connection).await;
        match asked {
            Ok::<HashMap<String, String>, _>(settings) => facts.0.extend(settings),
            // Managed servers forbid CONFIG. INFO tells all but how often the file is synced, and the less is assumed.
            Err(error) if error.code().is_some() => {}
            Err(error) => return Err(unanswered(error)),
        }
        facts.judge(options)
    }
}

fn unanswered(error: redis::RedisError) -> StoreError {
    refused_entry(&error).unwrap_or_else(|| StoreError::Unknown {
        action: "ask the server about itself",
        source: error.into(),
    })
}

/// The code of what a replica says to whoever wants to change something.
pub(crate) const READ_ONLY: &str = "READONLY";
/// The code of what a user may not do.
const NO_RIGHT: &str = "NOPERM";

/// The error for a server that does not let this user in, or not do this; nothing if that is not what happened.
pub(crate) fn refused_entry(error: &redis::RedisError) -> Option<StoreError> {
    let is_refused = error.kind() == redis::ErrorKind::AuthenticationFailed
        || matches!(code_of(error), NO_RIGHT | "NOAUTH" | "WRONGPASS");
    let reason = || format!("the Redis server does not let this user in, see its ACL: {error}");
    is_refused.then(|| StoreError::Down { reason: reason() })
}

/// The code of an error. One that a command inside a script got stands among the words of the script's own.
pub(crate) fn code_of(error: &redis::RedisError) -> &str {
    let words = error.detail().unwrap_or_default();
    // So says Redis 7.0, without a code.
    if words.contains("user executing the script can't run this command") {
        return NO_RIGHT;
    }
    let inside = |word: &&str| ["OOM", "MISCONF", "NOREPLICAS", READ_ONLY, NO_RIGHT].contains(word);
    words.split_whitespace().find(inside).or(error.code()).unwrap_or_default()
}

/// What INFO and CONFIG said, by name.
struct Facts(HashMap<String, String>);

impl Facts {
    fn of(info: &str) -> Self {
        let lines = info.lines().filter_map(|line| line.split_once(':'));
        Self(lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A fact as people read it.
    fn told(&self, name: &str) -> &str {
        self.get(name).unwrap_or("not told")
    }

    fn number<N: std::str::FromStr + Default>(&self, name: &str) -> N {
        self.get(name).and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    fn judge(&self, options: &RedisOptions) -> Result<Server> {
        self.check()?;
        let report = self.report(options)?;
        let run = self.get("run_id").ok_or_else(|| {
            Refusal::new(
                "run_id",
                "not told",
                "told by INFO, because it says which life of the server this is",
            )
        })?;
        // Two stores on one server are two: what came from one of them was not written by the other.
        let own = format!("{run}/{}", options.namespace);
        let incarnation =
            options.incarnation.unwrap_or(Incarnation(xxhash_rust::xxh3::xxh3_128(own.as_bytes())));
        Ok(Server { incarnation, report })
    }

    fn check(&self) -> Result<(), Refusal> {
        let refuse = |field, name, limit| Err(Refusal::new(field, self.told(name), limit));
        let version = self.told("redis_version");
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_none_or(|major| major < MAJOR_MIN) {
            return refuse("redis_version", "redis_version", "7.0 or later");
        }
        if self.get("role") != Some("master") {
            return refuse("role", "role", "master: a replica takes no writes, connect to its master");
        }
        if self.get("cluster_enabled") == Some("1") {
            let limit = "0: a cluster's redirections are not followed yet";
            return refuse("cluster_enabled", "cluster_enabled", limit);
        }
        if self.get("maxmemory_policy") != Some("noeviction") {
            let limit = "noeviction, or the server drops events when memory is short: CONFIG SET maxmemory-policy \
                         noeviction, and the same in its file";
            return refuse("maxmemory-policy", "maxmemory_policy", limit);
        }
        Ok(())
    }

    fn report(&self, options: &RedisOptions) -> Result<ServerReport, Refusal> {
        let append_only = self.get("aof_enabled") == Some("1");
        let append_sync = self.get("appendfsync").map(str::to_owned);
        let replicas: u32 = self.number("connected_slaves");
        let wanted = options.wait_replicas;
        if replicas < u32::from(wanted) {
            let limit = format!(
                "at most {replicas}, the replicas that the server has: connect more, or wait for fewer"
            );
            return Err(Refusal::new("wait_replicas", wanted.to_string(), limit));
        }
        let durability = match (append_only, append_sync.as_deref()) {
            _ if wanted > 0 => Durability::Replicated(wanted),
            (true, Some("always")) => Durability::Synced,
            (true, _) => Durability::Buffered,
            (false, _) => Durability::Memory,
        };
        Ok(ServerReport {
            version: self.told("redis_version").to_owned(),
            append_only,
            append_sync,
            replicas,
            memory_max: self.number("maxmemory"),
            memory_used: self.number("used_memory"),
            durability,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "redis_version:7.0.15\r\nrun_id:ab\r\nrole:master\r\ncluster_enabled:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n\
                        connected_slaves:1\r\n";

    fn judged_for(options: RedisOptions, change: (&str, &str)) -> Result<Server> {
        let mut facts = Facts::of(GOOD);
        facts.0.insert(change.0.to_owned(), change.1.to_owned());
        facts.judge(&options)
    }

    fn judged(change: (&str, &str)) -> Result<Server> {
        judged_for(RedisOptions::new("redis://127.0.0.1"), change)
    }

    #[test]
    fn durability_is_what_the_server_really_does() {
        let durability = |name, value| judged((name, value)).unwrap().report.durability;
        assert_eq!(durability("appendfsync", "always"), Durability::Synced);
        assert_eq!(durability("appendfsync", "everysec"), Durability::Buffered);
        assert_eq!(durability("appendfsync", "no"), Durability::Buffered);
        assert_eq!(durability("appendfsync", ""), Durability::Buffered);
        assert_eq!(durability("aof_enabled", "0"), Durability::Memory);
        let waiting = RedisOptions { wait_replicas: 1, ..RedisOptions::new("redis://127.0.0.1") };
        let waiting = judged_for(waiting, ("appendfsync", "always")).unwrap();
        assert_eq!(waiting.report.durability, Durability::Replicated(1));
    }

    #[test]
    fn what_is_assumed_is_said() {
        let said = judged(("appendfsync", "")).unwrap().report.to_string();
        assert_eq!(
            said,
            "Redis 7.0.15, appendonly yes, appendfsync not told (CONFIG GET is refused), everysec assumed, \
             maxmemory-policy noeviction, replicas 1: answers are buffered"
        );
    }

    #[test]
    fn servers_that_lose_or_hide_events_are_refused_by_name() {
        for (name, value, field) in [
            ("maxmemory_policy", "allkeys-lru", "maxmemory-policy is allkeys-lru"),
            ("maxmemory_policy", "", "maxmemory-policy is not told"),
            ("role", "slave", "role is slave"),
            ("redis_version", "6.2.14", "redis_version is 6.2.14"),
            ("cluster_enabled", "1", "cluster_enabled is 1"),
            ("run_id", "", "run_id is not told"),
        ] {
            let error = judged((name, value)).unwrap_err().to_string();
            assert!(error.starts_with(field), "{error}");
        }
        let waiting = RedisOptions { wait_replicas: 2, ..RedisOptions::new("redis://127.0.0.1") };
        let error = judged_for(waiting, ("appendfsync", "always")).unwrap_err().to_string();
        assert!(error.starts_with("wait_replicas is 2, must be at most 1"), "{error}");
    }

    #[test]
    fn another_run_is_another_life() {
        assert_ne!(
            judged(("run_id", "ab")).unwrap().incarnation,
            judged(("run_id", "ac")).unwrap().incarnation
        );
    }
}
