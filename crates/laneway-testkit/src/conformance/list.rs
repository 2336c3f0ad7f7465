//! The list of all cases: a case that is not here does not run, so a test below compares it with the sources.

use super::run::Case;

/// Hands every case, by module, to another macro, after the tokens given.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_case {
    ($then:path, $($given:tt)*) => {
        $then! {
            [$($given)*]
            define {
                a_created_stream_is_listed_with_its_shards
                creating_a_stream_twice_conflicts
                changing_a_stream_needs_its_version
                changing_a_missing_stream_conflicts
                partitions_and_mode_never_change
                stream_and_processor_names_are_checked
                stream_settings_are_checked
                stream_numbers_are_never_reused
                a_removed_stream_is_gone
                a_processor_is_listed_with_its_stream
                registering_again_changes_the_settings_only
                a_processor_name_belongs_to_one_stream
                a_processor_of_a_missing_stream_is_not_found
                a_removed_processor_begins_anew
                a_fence_does_not_outlive_its_processor
                a_processor_begins_where_it_is_told
                a_processor_begins_at_a_time
                a_late_processor_begins_above_the_trim
                a_sealed_shard_refuses_appends
                removing_a_missing_processor_is_not_found
            }
            append {
                ids_grow_from_one_in_order
                each_lane_has_its_own_chain
                a_keyless_event_has_no_chain
                an_event_keeps_what_it_was_given
                log_time_never_goes_back
                time_to_live_counts_from_joining
                an_append_says_how_durable_it_is
                the_number_of_drafts_is_bounded
                sizes_over_the_limit_are_refused
                delays_are_checked
                a_held_event_joins_its_lane_at_once
                an_unknown_shard_is_not_found
                another_layout_is_moved
                another_incarnation_must_adopt
                expect_prev_compares_with_the_lanes_last_event
                one_conflict_writes_nothing_of_the_call
                checks_are_made_in_the_stated_order
                a_repeat_is_told_before_expect_prev
                a_full_stream_refuses_appends
                emits_and_promotions_bypass_the_depth_limit
                depth_counts_for_the_slowest_processor
                urgent_events_are_indexed
                a_job_id_carries_its_place
                extreme_dedup_windows_are_accepted
            }
            append_again {
                a_repeated_dedup_id_answers_the_first_receipt
                a_dedup_id_with_another_body_conflicts
                dedup_ids_are_scoped_by_lane
                dedup_works_inside_one_call
                duplicates_do_not_hinder_their_neighbours
                a_dedup_id_is_remembered_for_its_window
                the_number_of_dedup_ids_is_bounded
                a_delayed_draft_is_deduplicated_from_acceptance
                an_origin_number_is_taken_once
                an_older_holder_of_a_source_is_refused
                sources_count_apart
                origin_numbers_are_checked
                a_conflict_does_not_move_the_source
                a_delayed_draft_takes_its_origin_number
                an_object_changes_with_its_events
                another_object_version_conflicts
                a_removed_object_keeps_its_version
                an_object_needs_one_key
                a_repeated_append_does_not_write_its_object_again
            }
            append_latest {
                a_lower_generation_is_stale
                a_missing_generation_is_one_more
                incarnations_are_compared_first
                a_new_incarnation_without_generation_starts_at_one
                a_delete_ends_its_incarnation
                generations_are_judged_in_order_inside_a_call
                latest_streams_need_keys
                a_stale_draft_leaves_no_trace
                queue_streams_do_not_judge_generations
            }
            promote {
                a_delayed_draft_is_not_in_the_log
                a_date_is_kept_as_a_date
                a_delay_shows_its_date
                a_due_draft_joins_the_end_of_its_lane
                promoting_twice_moves_nothing_twice
                drafts_join_in_order_of_due_time
                promote_moves_no_more_than_its_limit
                delays_ignore_the_wall_clock_and_dates_follow_it
                a_date_in_the_past_is_due_now
                the_generation_is_judged_at_promotion
                a_scheduled_job_keeps_its_id
                a_promoted_event_keeps_its_options
                promoting_an_unknown_shard_is_not_found
            }
        }
    };
}

/// One `#[test]` per case of the suite, in modules named after the transitions, for the store that this
/// [`Fixture`](crate::Fixture) opens. The expression is evaluated once per test.
#[macro_export]
macro_rules! conformance {
    ($fixture:expr) => {
        fn laneway_fixture() -> ::std::sync::Arc<dyn $crate::Fixture> {
            ::std::sync::Arc::new($fixture)
        }
        $crate::__each_case! { $crate::__case_tests, super::laneway_fixture }
    };
}

/// The tests of [`conformance!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __case_tests {
    ([$fixture:path] $($module:ident { $($case:ident)* })*) => {
        $(mod $module {
            $(#[test]
            fn $case() {
                let case = $crate::conformance::Case {
                    module: stringify!($module),
                    name: stringify!($case),
                    body: |bench| ::std::boxed::Box::pin($crate::conformance::$module::$case(bench)),
                };
                $crate::conformance::run($fixture(), case);
            })*
        })*
    };
}

macro_rules! values {
    ([] $($module:ident { $($case:ident)* })*) => {
        vec![$($(Case {
            module: stringify!($module),
            name: stringify!($case),
            body: |bench| Box::pin(super::$module::$case(bench)),
        },)*)*]
    };
}

/// Every case, in the order of the modules.
pub fn all() -> Vec<Case> {
    crate::__each_case! { values, }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::all;

    /// Cases as the sources have them: `module::name`.
    fn written() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
        let mut cases = BTreeSet::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
            let names = names.filter_map(|line| line.strip_suffix("(bench: &Bench) {"));
            cases.extend(names.map(|name| format!("{module}::{name}")));
        }
        cases
    }

    #[test]
    fn every_case_is_listed_once() {
        let listed: Vec<String> = all().iter().map(|case| format!("{}::{}", case.module, case.name)).collect();
        let unique: BTreeSet<String> = listed.iter().cloned().collect();
        assert_eq!(listed.len(), unique.len(), "a case is listed twice");
        assert_eq!(unique, written());
        assert!(unique.len() >= 120, "only {} cases", unique.len());
    }
}
