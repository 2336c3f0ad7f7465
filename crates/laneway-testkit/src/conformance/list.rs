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
                jobs_of_the_ten_thousandth_stream_are_found_by_their_id
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
            clocks {
                a_clock_that_is_wrong_for_a_moment_deletes_nothing
                a_jump_that_lasts_is_believed_once_it_has_settled
                dates_wait_for_a_clock_that_has_settled
                dates_follow_a_jump_that_lasts
                a_time_to_live_ends_in_time_after_a_jump
                events_grow_old_while_log_time_is_ahead
                a_slewed_clock_is_a_right_one
                a_clock_that_is_wrong_at_a_start_deletes_nothing
                a_wrong_clock_after_a_reboot_deletes_nothing
                what_needs_no_clock_is_deleted_while_it_is_wrong
                jumps_are_reported
                what_was_over_stays_over_while_the_clock_is_wrong
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
                a_call_beyond_a_partitions_part_is_refused_for_good
                depth_counts_what_waits_in_sidings
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
                dedup_ids_that_go_early_are_counted
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
            read {
                events_come_in_order_after_an_id
                an_empty_shard_has_an_empty_page
                a_page_ends_at_its_limit
                a_page_ends_at_its_bytes_but_has_one_event
                a_page_is_bounded_by_the_store
                chosen_ids_are_read
                reading_below_the_trim_says_where_to_go_on
                superseded_events_come_without_payload
                queue_streams_show_every_event
                a_page_tells_when_the_next_draft_is_due
                a_page_tells_the_request_number
                a_page_brings_the_states_of_its_keys
                a_page_ends_where_its_states_get_too_large
                an_event_never_changes
                reading_an_unknown_shard_is_not_found
            }
            seize {
                the_first_owner_expects_nobody
                a_seat_is_taken_only_from_the_expected_owner
                an_owner_that_never_was_is_not_expected
                every_owner_has_a_higher_term
                a_term_is_not_below_the_clock
                a_repeated_seize_answers_the_same
                a_seizure_refuses_every_older_fence
                a_new_owner_begins_where_the_old_one_stopped
                a_new_owner_learns_how_the_old_one_ended
                a_commit_takes_back_the_clean_mark
                a_seizure_from_another_incarnation_must_adopt
                seats_are_owned_apart
                an_unknown_seat_is_not_found
            }
            lanes {
                a_plain_lane_has_no_record
                every_kind_of_record_is_kept
                a_changed_record_moves_between_lists
                due_lanes_come_soonest_first
                due_lanes_follow_both_clocks
                blocked_lanes_are_paged_by_name
                a_keyless_events_lane_is_named_by_its_id
                a_lane_with_a_state_only_has_an_empty_record
                states_of_lanes_come_when_asked_for
                a_siding_is_read_in_order
                records_belong_to_their_processor
                lanes_of_an_unknown_seat_are_not_found
            }
            commit {
                a_commit_raises_the_version_by_one
                an_empty_commit_counts
                the_floor_follows_from_what_is_passed
                every_part_of_the_fence_is_compared
                an_unowned_seat_accepts_no_commit
                everything_of_a_commit_is_there_together
                nothing_of_a_refused_commit_is_there
                a_repeated_commit_answers_the_same_and_applies_nothing
                a_repeat_is_told_before_the_commit_is_judged
                only_the_last_commit_can_be_repeated
                a_repeat_needs_the_same_grant
                a_state_counts_its_changes
                emits_stay_in_the_outbox_until_forwarded
                ends_other_than_done_are_recorded
                dead_letters_are_kept_until_revived
                a_redriven_event_has_not_ended
                a_status_stays_until_it_is_changed
                a_note_stays_until_it_is_changed
                processors_settle_apart
                a_commit_touches_no_event_and_no_tail
                a_commit_of_an_unknown_seat_is_not_found
            }
            ahead {
                a_lane_is_sided_beyond_the_window_as_far_as_it_is_ahead
                what_is_run_ahead_ends_beyond_the_window_and_once
                a_lane_stays_ahead_until_the_floor_is_there
            }
            commit_refused {
                an_id_above_the_head_is_not_passed
                an_id_above_the_window_is_not_passed
                endings_need_a_passed_event
                sidings_are_checked
                a_lane_with_a_siding_keeps_its_record
                the_number_of_emits_is_bounded
                an_emit_that_no_shard_accepts_is_refused
                sizes_in_a_commit_are_bounded
                applied_requests_only_grow
                answers_are_for_requests_that_wait
                forwarded_emits_only_grow
                a_job_end_needs_a_job_of_its_own
                a_job_end_needs_an_event_that_is_there
            }
            commit_reset {
                a_reset_begins_a_new_life
                a_reset_keeps_outbox_and_dead_letters
                a_reset_keeps_or_clears_states
                a_reset_begins_where_it_is_told
                a_reset_begins_at_a_time
                a_reset_keeps_applied_requests
                a_replay_does_not_touch_job_ends
                a_replay_does_not_end_a_forgotten_job_again
            }
            request {
                requests_are_numbered_at_their_seat
                every_wish_is_stored_as_given
                a_repeated_token_answers_the_first_number
                an_applied_request_is_not_filed_again
                an_applied_token_is_remembered_for_a_day
                a_request_changes_nothing_by_itself
                the_owner_learns_of_requests
                waiting_requests_are_paged
                requests_are_answered_in_any_order
                an_answer_is_told_by_its_token
                a_request_to_an_unknown_seat_is_not_found
            }
            jobs {
                a_job_in_its_lane_is_pending
                a_pending_job_shows_its_lane
                a_sided_job_is_pending
                an_ended_job_shows_its_end
                results_come_when_asked_for
                the_first_end_of_a_job_stays
                no_result_without_its_commit
                a_job_that_never_was_is_unknown
                jobs_are_answered_in_order
                an_end_is_gone_after_its_time
                take_shortens_the_life_of_a_result
                take_never_lengthens_a_life
                an_unfinished_job_is_neither_taken_nor_forgotten
                a_forgotten_job_is_gone
                taking_an_unknown_job_says_so
                a_scheduled_job_can_be_cancelled
                a_joined_job_is_not_cancelled_in_the_schedule
                a_plain_timer_can_be_cancelled
                a_scheduled_job_is_found_by_its_ticket
                jobs_of_an_unknown_shard_are_not_found
            }
            stash {
                named_chunks_are_the_result
                chunks_are_invisible_until_named
                two_runs_do_not_mix_their_chunks
                a_chunk_may_be_sent_again
                a_chunk_is_bounded
                unnamed_chunks_expire_and_named_ones_do_not
                stashing_in_an_unknown_shard_is_not_found
            }
            query {
                lists_by_id_are_paged
                lists_by_key_are_paged
                keys_are_opaque_bytes
                a_lane_without_events_is_none
                streams_come_with_their_processors
                counts_agree_with_the_lists
                lists_of_the_unknown_are_not_found
            }
            export {
                the_store_tells_its_clocks_and_numbers
                stored_events_are_listed_by_id
                superseded_events_are_listed_whole
                stored_events_go_on_after_a_gap
                objects_are_listed_with_removed_ones
                dedup_ids_are_listed_with_their_receipts
                the_dedup_id_of_a_joined_draft_names_its_event
                sources_are_listed_with_their_numbers
            }
            export_work {
                tickets_tell_what_became_of_scheduled_jobs
                ends_are_listed_with_their_life
                ends_past_their_life_are_listed_while_their_event_is_there
                sided_ids_are_listed_with_their_lanes
                tokens_are_listed_with_their_requests
                lists_of_a_new_shard_are_empty
                copies_of_the_unknown_are_not_found
            }
            import {
                everything_imported_reads_the_same
                the_chain_goes_on_after_an_import
                imported_jobs_keep_their_ids
                numbers_go_on_above_what_was_imported
                an_imported_seat_has_no_owner_and_a_higher_term
                repeats_are_told_after_an_import
                imported_drafts_join_when_they_are_due
                an_imported_siding_holds_the_trim
                nothing_imported_goes_by_age_before_the_clock_has_settled
                gaps_and_missing_adoptions_come_over
                every_piece_may_come_twice
                an_import_goes_on_after_reopening
            }
            import_refused {
                nobody_works_on_a_shard_that_is_being_imported
                numbers_and_names_in_use_are_not_imported
                a_shard_in_use_takes_no_piece
                events_with_a_hole_are_not_imported
                an_import_does_not_finish_before_its_events
                pieces_must_fit_their_place
            }
            trim {
                unprocessed_events_are_never_trimmed
                the_slowest_processor_holds_the_trim
                a_sided_event_holds_the_trim
                processed_events_stay_for_their_time
                without_a_processor_age_decides
                the_chain_goes_on_over_a_trim
                trimming_twice_is_harmless
                endings_go_with_their_events
                a_dead_letter_outlives_its_event
                a_job_end_outlives_its_event
                a_trimmed_job_is_gone
                a_new_processor_holds_the_trim_at_once
                rows_that_went_are_counted_and_job_ends_are_not
                trimming_an_unknown_shard_is_not_found
            }
            documents {
                a_missing_document_is_none
                a_document_counts_its_changes
                a_put_against_another_version_conflicts
                versions_go_on_after_a_removal
                documents_are_listed_by_prefix
                one_of_many_writers_wins
                document_names_are_bounded
                the_clock_is_the_stores
            }
            wakeups {
                an_announcement_before_the_wait_is_not_missed
                an_announcement_between_two_waits_is_not_missed
                everybody_who_waits_is_woken
                delayed_draft_wakes_the_owner_of_its_shard
                a_dropped_wait_is_harmless
            }
            adoption {
                a_foreign_shard_must_be_adopted_first
                adopting_raises_the_ids_and_counts
                the_chain_goes_on_after_an_adoption
                adopting_twice_is_fine
                a_shard_is_adopted_only_from_what_was_found
                an_adoption_fences_the_old_owner
                the_floor_goes_over_the_gap
                a_seizure_goes_over_the_gap
                nobody_misses_anything_in_a_gap
                every_new_life_is_adopted_once
                sources_are_remembered_over_an_adoption
                an_emit_keeps_its_origin_over_an_adoption
                shards_are_adopted_one_by_one
            }
            idle {
                a_lane_that_was_idle_for_long_begins_anew
                what_was_forgotten_stays_forgotten
                lanes_are_kept_with_their_events_and_by_default
                lanes_before_a_gap_are_forgotten
                lanes_with_objects_are_kept
                a_forgotten_lane_has_no_state
                a_forgotten_lane_takes_any_generation
                many_idle_lanes_are_forgotten_in_turns
            }
            retention {
                a_reopened_store_has_everything_or_nothing
                numbers_go_on_after_reopening
                repeats_are_told_after_reopening
                delays_go_on_after_reopening
                a_trim_stays_after_reopening
            }
            histories {
                rivals_keep_every_invariant
                lost_answers_keep_every_invariant
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
        let listed: Vec<String> =
            all().iter().map(|case| format!("{}::{}", case.module, case.name)).collect();
        let unique: BTreeSet<String> = listed.iter().cloned().collect();
        assert_eq!(listed.len(), unique.len(), "a case is listed twice");
        assert_eq!(unique, written());
        assert!(unique.len() >= 120, "only {} cases", unique.len());
    }
}
