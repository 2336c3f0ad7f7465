//! How often one token may call: so many calls at once, and as many per second.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::code::Code;
use super::error::{Failure, Result};
use crate::access::Caller;
use crate::seam;

const SECOND: u64 = 1_000_000;

/// The calls of every token. There are no more entries than tokens.
#[derive(Debug)]
pub(super) struct Rates {
    per_second: Option<u32>,
    /// Microseconds of the steady clock at which a token has all its calls again.
    full_at: Mutex<HashMap<Arc<str>, u64>>,
}

impl Rates {
    pub(super) fn new(per_second: Option<u32>) -> Self {
        Self { per_second, full_at: Mutex::default() }
    }

    /// Takes one call of this caller.
    pub(super) fn take(&self, caller: Option<&Caller>) -> Result<()> {
        match (self.per_second, caller) {
            (Some(per_second), Some(caller)) => self.take_at(per_second, caller, seam::steady().0),
            _ => Ok(()),
        }
    }

    fn take_at(&self, per_second: u32, caller: &Caller, now: u64) -> Result<()> {
        let mut full_at = self.full_at.lock();
        let full_at = full_at.entry(Arc::clone(&caller.name)).or_insert(now);
        let after = (*full_at).max(now) + SECOND / u64::from(per_second);
        if after > now + SECOND {
            let name = &caller.name;
            let detail =
                format!("token {name:?} calls more often than {per_second} times per second (http.rate_max)");
            return Err(Failure::new(Code::RateLimited, detail));
        }
        *full_at = after;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scopes;

    #[test]
    fn a_token_has_so_many_calls_per_second_and_others_have_theirs() {
        let rates = Rates::new(Some(4));
        let caller = |name: &str| Caller { name: name.into(), scopes: Scopes::all() };
        let take = |name: &str, now| rates.take_at(4, &caller(name), now).is_ok();
        assert_eq!([0, 1, 2, 3, 4].map(|now| take("a", now)), [true, true, true, true, false]);
        assert!(take("b", 4));
        assert!(!take("a", SECOND / 8) && take("a", SECOND / 4 + 4) && !take("a", SECOND / 4 + 5));
        assert_eq!([0; 5].map(|_| take("a", 10 * SECOND)), [true, true, true, true, false]);
    }
}
