//! From a URL to a store.

use laneway_core::StoreError;
use laneway_engine::{DefineError, Env, Stores};

use super::options::StoreOptions;
#[cfg(feature = "embedded")]
use crate::seam;

/// Why there is no store.
///
/// ```
/// use laneway::Laneway;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let refused = Laneway::open("files:./data").await.unwrap_err();
/// assert!(refused.to_string().starts_with(r#"store url "files:./data": unknown scheme "files", known are memory:, file:PATH"#));
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL names no store that this program was built with: correct it.
    #[error("store url {url:?}: {wrong}")]
    Url {
        /// What was given, without who signs in.
        url: String,
        /// What is wrong with it.
        wrong: String,
    },
    /// What was said of this node is out of range: correct it.
    #[error(transparent)]
    Node(DefineError),
    /// The store is there and cannot be opened.
    #[error("store {url:?} cannot be opened")]
    Store {
        /// What was given, without who signs in.
        url: String,
        /// Why.
        source: StoreError,
    },
}

#[cfg(all(feature = "embedded", feature = "redis"))]
const KNOWN: &str = "memory:, file:PATH, redis://HOST:PORT, rediss://HOST:PORT, unix:PATH";
#[cfg(all(feature = "embedded", not(feature = "redis")))]
const KNOWN: &str = "memory:, file:PATH (the feature `redis` brings redis://HOST:PORT)";
#[cfg(all(not(feature = "embedded"), feature = "redis"))]
const KNOWN: &str =
    "redis://HOST:PORT, rediss://HOST:PORT, unix:PATH (the feature `embedded` brings memory: and file:PATH)";
#[cfg(not(any(feature = "embedded", feature = "redis")))]
const KNOWN: &str =
    "none (the feature `embedded` brings memory: and file:PATH, `redis` brings redis://HOST:PORT)";

/// A store that was opened.
pub(super) struct Opened {
    pub(super) stores: Stores,
    /// The same store, if it is a folder.
    #[cfg(feature = "embedded")]
    pub(super) files: Option<laneway_embedded::FileStore>,
}

#[cfg(any(feature = "embedded", feature = "redis"))]
impl Opened {
    fn new(stores: Stores) -> Self {
        Self {
            stores,
            #[cfg(feature = "embedded")]
            files: None,
        }
    }
}

/// Opens the store that a URL names.
pub(super) async fn open(url: &str, options: &StoreOptions, env: &Env) -> Result<Opened, OpenError> {
    let wrong = |wrong: String| OpenError::Url { url: without_user(url), wrong };
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(wrong(format!("has no scheme, known are {KNOWN}")));
    };
    if !matches!(scheme, "redis" | "rediss" | "unix")
        && let Some(given) = options.given()
    {
        return Err(wrong(format!("{given} is only for a store that several processes share")));
    }
    match scheme {
        #[cfg(feature = "embedded")]
        "memory" if rest.is_empty() => Ok(Opened::new(memory(env, options.clock_settle))),
        #[cfg(feature = "embedded")]
        "memory" => Err(wrong("memory: takes nothing behind it".to_owned())),
        #[cfg(feature = "embedded")]
        "file" if rest.is_empty() => Err(wrong("file: needs a folder, such as file:./data".to_owned())),
        #[cfg(feature = "embedded")]
        "file" => {
            let folder = std::path::PathBuf::from(rest.strip_prefix("//").unwrap_or(rest));
            let clock_settle = options.clock_settle.unwrap_or(laneway_core::CLOCK_SETTLE);
            let file = laneway_embedded::FileOptions { clock_settle, ..Default::default() };
            let clock = std::sync::Arc::new(laneway_core::SystemClock);
            let opened = move || laneway_embedded::FileStore::open_with(folder, file, clock);
            let opened = seam::blocking(opened).await;
            let files = opened.map_err(|source| OpenError::Store { url: without_user(url), source })?;
            let store = std::sync::Arc::new(files.clone());
            let stores = Stores { store: store.clone(), documents: store.clone(), wakeups: store };
            Ok(Opened { stores, files: Some(files) })
        }
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "unix" => {
            let options = crate::redis::options(url, options).await?;
            let opened = laneway_redis::RedisStore::open(options).await;
            let store = std::sync::Arc::new(
                opened.map_err(|source| OpenError::Store { url: without_user(url), source })?,
            );
            Ok(Opened::new(Stores { store: store.clone(), documents: store.clone(), wakeups: store }))
        }
        _ => {
            // Without any store in this build there is nothing that could need them.
            let _ = (rest, env);
            Err(wrong(format!("unknown scheme {scheme:?}, known are {KNOWN}")))
        }
    }
}

/// A URL as people may see it: without who signs in, and without what is behind a question mark.
///
/// ```
/// use laneway::without_user;
///
/// assert_eq!(without_user("redis://user:word@host:6379/0?password=word"), "redis://***@host:6379/0?***");
/// assert_eq!(without_user("file:./data"), "file:./data");
/// ```
pub fn without_user(url: &str) -> String {
    let (url, query) = url.split_once('?').map_or((url, ""), |(url, _)| (url, "?***"));
    let shown = url.split_once("//").and_then(|(scheme, rest)| {
        let (authority, path) =
            rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
        let (_, host) = authority.rsplit_once('@')?;
        Some(format!("{scheme}//***@{host}{path}"))
    });
    format!("{}{query}", shown.as_deref().unwrap_or(url))
}

/// An empty store in memory, on the clock of the engine.
#[cfg(feature = "embedded")]
pub(crate) fn memory(env: &Env, clock_settle: Option<std::time::Duration>) -> Stores {
    let settle = clock_settle.unwrap_or(laneway_core::CLOCK_SETTLE);
    let store = std::sync::Arc::new(laneway_embedded::MemoryStore::with_clock_settle(env.clock(), settle));
    Stores { store: store.clone(), documents: store.clone(), wakeups: store }
}
