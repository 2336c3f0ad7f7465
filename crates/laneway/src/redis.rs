//! A `redis://` store beside its app: what its server says of itself.
//!
//! ```no_run
//! use laneway::StoreOptions;
//! use laneway::redis::examine;
//!
//! # async fn run() -> laneway::Result<()> {
//! // Redis 7.0.15, appendonly yes, appendfsync everysec, …: answers are buffered
//! println!("{}", examine("redis://127.0.0.1:6379", &StoreOptions::default()).await?);
//! # Ok(()) }
//! ```

use std::path::Path;

pub use laneway_redis::ServerReport;
use laneway_redis::{RedisOptions, RedisStore, RedisTls};

use crate::{OpenError, StoreOptions, seam, without_user};

/// Asks a server what it says of itself, and whether a store may be on it. Changes nothing there.
pub async fn examine(url: &str, given: &StoreOptions) -> Result<ServerReport, OpenError> {
    let options = options(url, given).await?;
    let examined = RedisStore::examine(&options).await;
    examined.map_err(|source| OpenError::Store { url: without_user(url), source })
}

/// Says what is wrong with a URL and options, as far as no server has to be asked. Reads the files that they name.
pub fn check(url: &str, given: &StoreOptions) -> Result<(), OpenError> {
    let wrong = |wrong| OpenError::Url { url: without_user(url), wrong };
    let options = read_options(url, given).map_err(wrong)?;
    options.check().map_err(|refusal| wrong(refusal.to_string()))
}

pub(crate) async fn options(url: &str, given: &StoreOptions) -> Result<RedisOptions, OpenError> {
    let (to, given) = (url.to_owned(), given.clone());
    let read = seam::blocking(move || read_options(&to, &given)).await;
    read.map_err(|wrong| OpenError::Url { url: without_user(url), wrong })
}

fn read_options(url: &str, given: &StoreOptions) -> Result<RedisOptions, String> {
    let mut options = RedisOptions::new(url);
    if let Some(namespace) = &given.namespace {
        options.namespace.clone_from(namespace);
    }
    options.wait_replicas = given.wait_replicas.unwrap_or(options.wait_replicas);
    options.answer_within = given.answer_within.unwrap_or(options.answer_within);
    options.connect_within = given.connect_within.unwrap_or(options.connect_within);
    options.clock_settle = given.clock_settle.unwrap_or(options.clock_settle);
    let identity = match (&given.tls_cert, &given.tls_key) {
        (Some(cert), Some(key)) => Some((read(cert)?, read(key)?)),
        (None, None) => None,
        _ => {
            return Err(
                "tls_cert and tls_key: one is given without the other, must be both or none".to_owned()
            );
        }
    };
    options.tls = RedisTls { ca: given.tls_ca.as_deref().map(read).transpose()?, identity };
    Ok(options)
}

fn read(file: impl AsRef<Path>) -> Result<Vec<u8>, String> {
    let file = file.as_ref();
    std::fs::read(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))
}
