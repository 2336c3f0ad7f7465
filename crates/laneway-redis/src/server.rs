//! What a server says about itself: who it is, and how safe what it keeps is. Read by every connection before its first
//! write, because a server that came back may have lost what it had answered.

use std::collections::HashMap;

use laneway_core::{Durability, Incarnation, Refusal, Result, StoreError};
use redis::aio::MultiplexedConnection;

/// First version with what the scripts use.
const MAJOR_MIN: u32 = 7;

/// A server that may hold a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) incarnation: Incarnation,
    pub(crate) durability: Durability,
}

impl Server {
    /// Asks the server, and refuses one that could lose or hide what it was given.
    pub(crate) async fn ask(connection: &mut MultiplexedConnection, namespace: &str) -> Result<Self> {
        let said: String = redis::cmd("INFO").query_async(connection).await.map_err(unanswered)?;
        let mut facts = Facts::of(&said);
        // Where CONFIG is forbidden, INFO tells all but how often the log is synced.
        let asked = redis::cmd("CONFIG").arg("GET").arg("append*").query_async(connection).await;
        if let Ok::<HashMap<String, String>, _>(settings) = asked {
            facts.0.extend(settings);
        }
        facts.judge(namespace)
    }
}

fn unanswered(error: redis::RedisError) -> StoreError {
    StoreError::Unknown { action: "ask the server about itself", source: error.into() }
}

/// What INFO and CONFIG said, by name.
struct Facts(HashMap<String, String>);

impl Facts {
    fn of(info: &str) -> Self {
        let lines = info.lines().filter_map(|line| line.split_once(':'));
        Self(lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn judge(&self, namespace: &str) -> Result<Server> {
        let refuse = |field: &'static str, value: &str, limit: &str| {
            Err(StoreError::from(Refusal::new(field, value, limit)))
        };
        let version = self.get("redis_version");
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_none_or(|major| major < MAJOR_MIN) {
            return refuse("redis_version", version, "7.0 or later");
        }
        if self.get("role") != "master" {
            return refuse(
                "role",
                self.get("role"),
                "master: a replica takes no writes, connect to its master",
            );
        }
        if self.get("cluster_enabled") == "1" {
            return refuse("cluster_enabled", "1", "0: a cluster's redirections are not followed yet");
        }
        let policy = self.get("maxmemory_policy");
        if policy != "noeviction" {
            return refuse(
                "maxmemory-policy",
                policy,
                "noeviction, or the server drops events when memory is short",
            );
        }
        let durability = match (self.get("aof_enabled"), self.get("appendfsync")) {
            ("1", "always") => Durability::Synced,
            ("1", _) => Durability::Buffered,
            _ => Durability::Memory,
        };
        let run = self.get("run_id");
        if run.is_empty() {
            return refuse(
                "run_id",
                "absent",
                "told by INFO, because it says which life of the server this is",
            );
        }
        // Two stores on one server are two: what came from one of them was not written by the other.
        let incarnation = Incarnation(xxhash_rust::xxh3::xxh3_128(format!("{run}/{namespace}").as_bytes()));
        Ok(Server { incarnation, durability })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "redis_version:7.0.15\r\nrun_id:ab\r\nrole:master\r\ncluster_enabled:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n";

    fn judged(change: (&str, &str)) -> Result<Server> {
        let mut facts = Facts::of(GOOD);
        facts.0.insert(change.0.to_owned(), change.1.to_owned());
        facts.judge("test")
    }

    #[test]
    fn durability_is_what_the_server_really_does() {
        let durability = |name, value| judged((name, value)).unwrap().durability;
        assert_eq!(durability("appendfsync", "always"), Durability::Synced);
        assert_eq!(durability("appendfsync", "everysec"), Durability::Buffered);
        assert_eq!(durability("appendfsync", "no"), Durability::Buffered);
        assert_eq!(durability("appendfsync", ""), Durability::Buffered);
        assert_eq!(durability("aof_enabled", "0"), Durability::Memory);
    }

    #[test]
    fn servers_that_lose_or_hide_events_are_refused_by_name() {
        for (name, value, field) in [
            ("maxmemory_policy", "allkeys-lru", "maxmemory-policy"),
            ("role", "slave", "role"),
            ("redis_version", "6.2.14", "redis_version"),
            ("cluster_enabled", "1", "cluster_enabled"),
            ("run_id", "", "run_id"),
        ] {
            let error = judged((name, value)).unwrap_err().to_string();
            assert!(error.starts_with(field), "{error}");
        }
    }

    #[test]
    fn another_run_is_another_life() {
        assert_ne!(
            judged(("run_id", "ab")).unwrap().incarnation,
            judged(("run_id", "ac")).unwrap().incarnation
        );
    }
}
