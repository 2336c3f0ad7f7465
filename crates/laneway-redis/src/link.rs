//! The connection: made anew with growing pauses when it breaks, and never used before the server said who it is.
//!
//! A call without an answer is `Unknown`: it may have happened, and its caller repeats it by its id.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::{Durability, FullReason, Incarnation, Result, StoreError};
use parking_lot::RwLock;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, ServerErrorKind, Value};

use crate::options::RedisOptions;
use crate::script::{Scripts, Source};
use crate::seam;
use crate::server::{READ_ONLY, Server, ServerReport, code_of, refused_entry};

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// An open connection and the life of the server that it leads to.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    connection: MultiplexedConnection,
    pub(crate) server: Server,
    number: u64,
}

/// The connection of a store.
#[derive(Debug)]
pub(crate) struct Links {
    options: RedisOptions,
    client: Client,
    current: RwLock<Option<Link>>,
    /// What the newest connection learned, also while there is none.
    last: RwLock<Server>,
    /// Held while a new connection is made: attempts in a row that failed.
    failed: tokio::sync::Mutex<u32>,
    /// Attempts ever, which also number connections.
    attempts: AtomicU64,
}

impl Links {
    pub(crate) async fn open(options: RedisOptions, scripts: &Scripts) -> Result<Self> {
        let client = options.client()?;
        let first = connect(&options, &client, scripts, 0).await?;
        tracing::info!(namespace = options.namespace, server = %first.server.report, "the store is on this server");
        Ok(Self {
            options,
            client,
            last: RwLock::new(first.server.clone()),
            current: RwLock::new(Some(first)),
            failed: tokio::sync::Mutex::new(0),
            attempts: AtomicU64::new(1),
        })
    }

    /// What a server says of itself, for those who want no more of it.
    pub(crate) async fn examine(options: &RedisOptions) -> Result<ServerReport> {
        let mut connection = meet(options, &options.client()?).await?;
        Ok(Server::ask(&mut connection, options).await?.report)
    }

    pub(crate) fn last(&self) -> Server {
        self.last.read().clone()
    }

    /// How safe answers are, and the life of the server, by what the newest connection learned.
    pub(crate) fn life(&self) -> (Durability, Incarnation) {
        let last = self.last.read();
        (last.report.durability, last.incarnation)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The connection there is, or a new one. Whoever waited while an attempt failed shares its failure: attempts stay one
    /// at a time, and nobody stands in line for one of his own.
    pub(crate) async fn get(&self, scripts: &Scripts) -> Result<Link> {
        if let Some(link) = self.current.read().clone() {
            return Ok(link);
        }
        let before = self.attempts.load(Ordering::SeqCst);
        let mut failed = self.failed.lock().await;
        if let Some(link) = self.current.read().clone() {
            return Ok(link);
        }
        if self.attempts.load(Ordering::SeqCst) != before {
            let source = format!("{} attempts in a row failed", *failed).into();
            return Err(StoreError::Unknown { action: "connect to the Redis server", source });
        }
        if *failed > 0 {
            seam::sleep(pause(*failed)).await;
        }
        let number = self.attempts.fetch_add(1, Ordering::SeqCst);
        match connect(&self.options, &self.client, scripts, number).await {
            Ok(link) => {
                *failed = 0;
                self.learn(&link.server);
                *self.current.write() = Some(link.clone());
                Ok(link)
            }
            Err(error) => {
                *failed = failed.saturating_add(1);
                tracing::warn!(
                    failed = *failed,
                    error = &error as &dyn std::error::Error,
                    "no connection to the Redis server"
                );
                Err(lasting(error))
            }
        }
    }

    fn learn(&self, server: &Server) {
        let before = std::mem::replace(&mut *self.last.write(), server.clone());
        if before.incarnation != server.incarnation {
            let (before, now) = (before.incarnation, server.incarnation);
            tracing::warn!(?before, ?now, server = %server.report, "the Redis server is not what it was: shards will be adopted");
        } else if before.report.durability != server.report.durability {
            tracing::warn!(server = %server.report, "answers are not as durable as before, or more");
        } else {
            tracing::info!(server = %server.report, "connected again");
        }
    }

    /// Runs a script and waits for its answer, and for the replicas asked for.
    pub(crate) async fn run(
        &self,
        link: &Link,
        source: &Source,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> Result<Value> {
        let answer = self.evaluate(link, source, keys, arguments).await;
        let value = answer.map_err(|error| self.judge(link, error))?;
        if self.options.wait_replicas > 0 && source.writes {
            self.wait_for_replicas(link).await?;
        }
        Ok(value)
    }

    async fn evaluate(
        &self,
        link: &Link,
        source: &Source,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> Result<Value, RedisError> {
        let mut connection = link.connection.clone();
        let mut command = redis::cmd("EVALSHA");
        command.arg(&source.hash).arg(keys.len()).arg(keys).arg(arguments);
        match command.query_async(&mut connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let mut command = redis::cmd("EVAL");
                command.arg(&source.code).arg(keys.len()).arg(keys).arg(arguments);
                command.query_async(&mut connection).await
            }
            answer => answer,
        }
    }

    async fn wait_for_replicas(&self, link: &Link) -> Result<()> {
        let wanted = self.options.wait_replicas;
        let millis = u64::try_from(self.options.answer_within.as_millis() / 2).unwrap_or(u64::MAX).max(1);
        let mut connection = link.connection.clone();
        let asked = redis::cmd("WAIT").arg(wanted).arg(millis).query_async::<u64>(&mut connection).await;
        let had = asked.map_err(|error| self.judge(link, error))?;
        if had < u64::from(wanted) {
            let source = format!("{had} of {wanted} replicas have it").into();
            return Err(StoreError::Unknown { action: "write to the replicas", source });
        }
        Ok(())
    }

    fn judge(&self, link: &Link, error: RedisError) -> StoreError {
        if let Some(refused) = refused_entry(&error) {
            return refused;
        }
        let code = code_of(&error).to_owned();
        match (error.kind(), &code[..]) {
            (_, "OOM") => {
                let reason =
                    "the Redis server is at its maxmemory: raise it, or let retention free some".to_owned();
                StoreError::Full(FullReason::Store { reason })
            }
            (_, "MISCONF") => {
                StoreError::Down { reason: format!("the Redis server cannot write to its disk: {error}") }
            }
            (_, "NOREPLICAS") => {
                let reason =
                    format!("the Redis server has too few replicas for its min-replicas-to-write: {error}");
                StoreError::Down { reason }
            }
            (ErrorKind::Server(ServerErrorKind::ResponseError), code) if code != READ_ONLY => {
                StoreError::Corrupt { what: format!("a script failed: {error}") }
            }
            _ => {
                self.drop_link(link);
                StoreError::Unknown { action: "ask the Redis server", source: error.into() }
            }
        }
    }

    /// Forgets a connection that broke, unless there is a newer one already.
    fn drop_link(&self, link: &Link) {
        let mut current = self.current.write();
        if current.as_ref().is_some_and(|current| current.number == link.number) {
            *current = None;
        }
    }

    /// Tells something on a channel.
    pub(crate) async fn publish(&self, link: &Link, channel: &str, topic: &[u8]) -> Result<()> {
        let mut connection = link.connection.clone();
        let told = redis::cmd("PUBLISH").arg(channel).arg(topic).query_async::<()>(&mut connection).await;
        told.map_err(|error| self.judge(link, error))
    }
}

/// How long to wait after so many failures in a row.
pub(crate) fn pause(failed: u32) -> Duration {
    PAUSE_MIN.saturating_mul(1 << failed.min(10)).min(PAUSE_MAX)
}

/// What a server is refused for once a store is open, somebody may mend while it is: calls are not at fault.
fn lasting(error: StoreError) -> StoreError {
    match error {
        StoreError::Refused(refusal) => {
            StoreError::Down { reason: format!("the Redis server cannot be used as it is now: {refusal}") }
        }
        other => other,
    }
}

/// A connection, about which nothing is known yet.
async fn meet(options: &RedisOptions, client: &Client) -> Result<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(options.connect_within))
        .set_response_timeout(Some(options.answer_within));
    client.get_multiplexed_async_connection_with_config(&config).await.map_err(unconnected)
}

fn unconnected(error: RedisError) -> StoreError {
    refused_entry(&error).unwrap_or_else(|| StoreError::Unknown {
        action: "connect to the Redis server",
        source: error.into(),
    })
}

async fn connect(options: &RedisOptions, client: &Client, scripts: &Scripts, number: u64) -> Result<Link> {
    let mut connection = meet(options, client).await?;
    let server = Server::ask(&mut connection, options).await?;
    let mut load = redis::pipe();
    for source in scripts.all() {
        load.cmd("SCRIPT").arg("LOAD").arg(&source.code).ignore();
    }
    load.query_async::<()>(&mut connection).await.map_err(unconnected)?;
    Ok(Link { connection, server, number })
}
