//! Where the server is and what a store on it is asked for.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Clock, Incarnation, Refusal, check_name};

/// How to open a store on Redis.
///
/// ```
/// use laneway_redis::RedisOptions;
/// let options = RedisOptions { namespace: "shop".to_owned(), ..RedisOptions::new("redis://127.0.0.1:6379") };
/// assert_eq!(options.replicas, 0);
/// ```
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Where: `redis://` or `rediss://`, with user and password if the server wants them.
    pub url: String,
    /// Keeps several stores on one server apart; letters, digits, `.`, `_` and `-`. Default `laneway`.
    pub namespace: String,
    /// How many replicas must have a write before it is answered (`WAIT`). Default 0: none is waited for.
    pub replicas: u8,
    /// How long to wait for an answer before a call counts as unanswered. Default 10 seconds.
    pub answer_within: Duration,
    /// For tests: goes by this clock instead of the server's. Default none.
    pub clock: Option<Arc<dyn Clock>>,
    /// For tests: takes this for the life of the server. Default none: the server's own run.
    pub incarnation: Option<Incarnation>,
}

impl RedisOptions {
    /// A store on this server, with everything else as usual.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            namespace: "laneway".to_owned(),
            replicas: 0,
            answer_within: Duration::from_secs(10),
            clock: None,
            incarnation: None,
        }
    }

    /// Refuses what no server can be asked for.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_name("namespace", &self.namespace)?;
        if self.answer_within.is_zero() {
            return Err(Refusal::new("answer_within", "0", "more than nothing"));
        }
        Ok(())
    }
}
