//! Runs cases, each on a new store in a runtime of its own.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::bench::Bench;
use crate::fixture::Fixture;
use crate::seam;

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// The module it is in: the transition it is about.
    pub module: &'static str,
    /// The behaviour it holds.
    pub name: &'static str,
    /// The case itself.
    pub body: for<'a> fn(&'a Bench) -> BoxFuture<'a, ()>,
}

/// Runs one case on a new store; panics when it fails or hangs. For `#[test]` functions.
pub fn run(fixture: Arc<dyn Fixture>, case: Case) {
    seam::runtime().block_on(run_inside(fixture, case));
}

/// The same inside a runtime.
pub(crate) async fn run_inside(fixture: Arc<dyn Fixture>, case: Case) {
    let whole = async {
        let bench = Bench::open(fixture).await;
        (case.body)(&bench).await;
    };
    let done = seam::guarded(Box::pin(whole)).await;
    assert!(done.is_some(), "{}::{} hangs: no answer within {:?}", case.module, case.name, seam::CASE_GUARD);
}
