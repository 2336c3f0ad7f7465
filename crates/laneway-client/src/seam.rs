//! This crate's one seam to timers and chance.

use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::BuildHasher as _;
use std::time::Duration;

/// The answer, unless time runs out first.
#[expect(clippy::disallowed_methods, reason = "this crate's seam to timers")]
pub(crate) async fn within<A>(length: Duration, answer: impl Future<Output = A>) -> Option<A> {
    tokio::time::timeout(length, answer).await.ok()
}

/// A number that nobody else has: the standard library seeds it from the system.
pub(crate) fn unique() -> u128 {
    let chance = RandomState::new();
    u128::from(chance.hash_one(0_u8)) << 64 | u128::from(chance.hash_one(1_u8))
}
