//! Runs the suite on a store with a planted bug and says which cases notice it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;

use super::{Bug, Planted};
use crate::conformance::{self, Case, run_inside};
use crate::fixture::{Fixture, TestStore};
use crate::seam;

/// How many histories a planted bug may survive.
const HISTORY_RUNS_MAX: usize = 60;

/// Opens the stores of another fixture with a bug in them.
struct PlantedFixture {
    inner: Arc<dyn Fixture>,
    bug: Bug,
}

impl PlantedFixture {
    fn plant(&self, opened: TestStore) -> TestStore {
        TestStore {
            store: Arc::new(Planted::new(opened.store.clone(), self.bug)),
            documents: opened.documents.clone(),
            wakeups: opened.wakeups.clone(),
            clock: opened.clock.clone(),
            extra: Some(Arc::new(opened)),
        }
    }

    /// The store without the bug.
    fn dig_up(planted: TestStore) -> TestStore {
        let inner = planted.extra::<TestStore>().expect("planted by this fixture");
        drop(planted);
        Arc::unwrap_or_clone(inner)
    }
}

#[async_trait]
impl Fixture for PlantedFixture {
    async fn open(&self) -> TestStore {
        self.plant(self.inner.open().await)
    }

    async fn reopen(&self, opened: TestStore) -> TestStore {
        self.plant(self.inner.reopen(Self::dig_up(opened)).await)
    }

    async fn restored(&self, opened: TestStore) -> TestStore {
        self.plant(self.inner.restored(Self::dig_up(opened)).await)
    }

    fn clock_moves(&self) -> bool {
        self.inner.clock_moves()
    }
}

/// The stores of this fixture with a bug in them.
pub fn planted(inner: Arc<dyn Fixture>, bug: Bug) -> Arc<dyn Fixture> {
    Arc::new(PlantedFixture { inner, bug })
}

/// Whether a case fails on a store.
fn fails(fixture: Arc<dyn Fixture>, case: Case) -> bool {
    let run = async move { AssertUnwindSafe(run_inside(fixture, case)).catch_unwind().await.is_err() };
    seam::runtime().block_on(run)
}

/// The cases that notice this bug, up to the first so many.
pub fn caught(fixture: Arc<dyn Fixture>, bug: Bug, enough: usize) -> Vec<Case> {
    let planted = planted(fixture, bug);
    let cases = conformance::all().into_iter().filter(|case| case.module != "histories");
    cases.filter(|case| fails(planted.clone(), *case)).take(enough).collect()
}

/// Panics unless the suite notices the bug, and unless the cases that notice it pass on the store without it.
pub fn assert_caught(fixture: Arc<dyn Fixture>, bug: Bug) {
    let noticed = caught(fixture.clone(), bug, 3);
    assert!(!noticed.is_empty(), "no case of the suite notices {bug:?}");
    for case in noticed {
        let control = fails(fixture.clone(), case);
        assert!(!control, "{}::{} fails without {bug:?} too: it notices nothing", case.module, case.name);
    }
}

/// The same with the cases alone that are known to notice the bug: for stores on which the whole suite takes long.
/// Each of them must notice it.
pub fn assert_caught_by_known(fixture: Arc<dyn Fixture>, bug: Bug) {
    let planted = planted(fixture.clone(), bug);
    for name in bug.known() {
        let all = conformance::all().into_iter();
        let case = all.into_iter().find(|case| format!("{}::{}", case.module, case.name) == *name);
        let case = case.unwrap_or_else(|| panic!("{name}, which notices {bug:?}, is no case"));
        assert!(fails(planted.clone(), case), "{name} does not notice {bug:?}");
        assert!(!fails(fixture.clone(), case), "{name} fails without {bug:?} too: it notices nothing");
    }
}

/// Panics unless the concurrent histories notice the bug by themselves, without any case written for it.
pub fn assert_noticed_by_histories(fixture: Arc<dyn Fixture>, bug: Bug) {
    let planted = planted(fixture, bug);
    // Some bugs need two clients to meet; how tasks interleave is free, so they get several chances to.
    let histories = conformance::all().into_iter().filter(|case| case.module == "histories");
    let mut chances = histories.cycle().take(HISTORY_RUNS_MAX);
    assert!(chances.any(|case| fails(planted.clone(), case)), "no history notices {bug:?}");
}

/// One `#[test]` per planted bug: the suite must notice that the store of this fixture has it. With `known` after
/// the fixture only the cases run that are known to notice it.
#[macro_export]
macro_rules! planted {
    ($fixture:expr) => {
        $crate::planted! { @with $fixture, assert_caught }

        #[test]
        fn histories_notice_bugs_that_need_rivals_or_repeats() {
            use $crate::fault::Bug;
            let bugs = [
                Bug::SkipNonceCheck,
                Bug::SkipVersionCheck,
                Bug::SkipTermCheck,
                Bug::EmitOutsideTheCommit,
                Bug::ResultBeforeCommit,
                Bug::TermReused,
                Bug::RepeatAppliesTwice,
                Bug::ForgetDedup,
                Bug::ForgetOrigin,
                Bug::IgnoreExpectPrev,
                Bug::TrimPastUnprocessed,
                Bug::AckBeforeApply,
                Bug::InventEvents,
                Bug::ForgetTokens,
            ];
            for bug in bugs {
                $crate::fault::planted_cases::assert_noticed_by_histories(laneway_fixture(), bug);
            }
        }
    };
    ($fixture:expr, known) => {
        $crate::planted! { @with $fixture, assert_caught_by_known }
    };
    (@with $fixture:expr, $check:ident) => {
        fn laneway_fixture() -> ::std::sync::Arc<dyn $crate::Fixture> {
            ::std::sync::Arc::new($fixture)
        }
        $crate::planted! { @tests $check:
            skip_nonce_check SkipNonceCheck,
            skip_version_check SkipVersionCheck,
            skip_term_check SkipTermCheck,
            skip_adoption_check SkipAdoptionCheck,
            emit_outside_the_commit EmitOutsideTheCommit,
            result_before_commit ResultBeforeCommit,
            rescue_by_id_only RescueByIdOnly,
            term_reused TermReused,
            repeat_applies_twice RepeatAppliesTwice,
            ignore_dedup_body IgnoreDedupBody,
            forget_dedup ForgetDedup,
            forget_origin ForgetOrigin,
            ignore_expect_prev IgnoreExpectPrev,
            trim_past_unprocessed TrimPastUnprocessed,
            ack_before_apply AckBeforeApply,
            invent_events InventEvents,
            forget_tokens ForgetTokens,
            partial_append PartialAppend,
        }
    };
    (@tests $check:ident: $($name:ident $bug:ident,)*) => {
        $(#[test]
        fn $name() {
            $crate::fault::planted_cases::$check(laneway_fixture(), $crate::fault::Bug::$bug);
        })*

        #[test]
        fn every_bug_has_its_test() {
            assert_eq!([$(stringify!($bug)),*].len(), $crate::fault::Bug::ALL.len());
        }
    };
}
