//! Statements about truncates, partial updates, snapshots and two clocks, each on tables written by hand: those of the
//! scenario files, in their own arrival and in others, and a few small ones of its own.

mod partial;
mod refusals;
mod state;

use strandline_testkit::scenario;

use crate::scenarios::outcomes;

const FOLDERS: [&str; 3] = ["worked", "reports", "spark"];

/// The scenario files hold, whichever folder they lie in.
fn hold(names: &[&str]) {
    for name in names {
        let paths = FOLDERS.map(|folder| scenario::directory(folder).join(format!("{name}.scn")));
        let path = paths.iter().find(|path| path.exists()).unwrap_or_else(|| panic!("no scenario {name}"));
        holds(&std::fs::read_to_string(path).unwrap());
    }
}

/// A scenario holds, in every arrival that it is tried in.
fn holds(text: &str) {
    let found = outcomes(&scenario::parse(text).unwrap());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn c23_a_truncate_defeats_older_events_of_keys_never_seen() {
    hold(&["scd1-truncate", "trunc-03"]);
}

#[test]
fn c25_a_late_truncate_leaves_newer_rows() {
    hold(&["scd1-truncate-late", "trunc-05", "trunc-06"]);
}

#[test]
fn c26_c27_ties_of_a_bitemporal_target() {
    hold(&["bitemporal-tie"]);
}

#[test]
fn c41_ignore_null_keeps_what_an_update_does_not_provide() {
    hold(&["scd1-partial-none", "scd1-partial-ignore-null", "scd1-partial-first"]);
}

#[test]
fn c42_ignore_null_on_a_list_affects_those_columns() {
    hold(&["scd1-partial-on"]);
}

#[test]
fn c43_ignore_null_except_a_list_writes_null_there() {
    hold(&["scd1-partial-except"]);
}

#[test]
fn c46_each_column_has_its_own_newest_author() {
    hold(&["scd1-partial-late", "part-09", "part-11", "in-s1-late-fills-gap"]);
}

#[test]
fn c47_unset_columns_inherit_from_the_row_before() {
    hold(&["scd2-partial", "in-s2-inherit", "part-04"]);
}

#[test]
fn c48_a_late_author_fills_later_versions_that_inherit() {
    hold(&[
        "scd2-partial-late-author",
        "scd2-partial-late-partial-author",
        "in-s2-late-author-propagates",
        "part-12",
    ]);
}

#[test]
fn c49_a_delete_ends_inheritance() {
    hold(&["scd2-partial-delete", "scd2-partial-late-delete", "in-s2-delete-resets", "part-13"]);
}

#[test]
fn c50_an_update_that_provides_nothing_opens_no_version() {
    hold(&["in-s2-inherit-makes-noop", "part-17"]);
}

#[test]
fn c51_a_struct_resolves_by_leaf_and_a_list_as_a_whole() {
    hold(&["scd1-partial-nested", "part-14", "part-15"]);
}

#[test]
fn c52_columns_to_update_writes_what_is_listed_null_included() {
    hold(&["scd1-columns-to-update"]);
}

#[test]
fn c55_a_snapshot_inserts_changes_and_deletes() {
    hold(&["scd1-snapshots"]);
}

#[test]
fn c56_versions_of_snapshots_with_a_gap() {
    hold(&["scd2-snapshots"]);
}

#[test]
fn c59_a_snapshot_beside_changes_in_either_order() {
    hold(&["hybrid-snapshot-first", "hybrid-snapshot-last", "hybrid-snapshot-between"]);
}

#[test]
fn c60_an_older_event_of_a_key_never_seen_is_defeated_by_the_snapshot() {
    holds(
        "title An event that is older than the snapshot, of a key that nobody knows
stored as scd1
types id text, seq int, tier text
keys id
sequence by seq
columns except seq
permute yes

snapshot 100
| id | tier |
| c1 | gold |

batch
| id | seq | tier  |
| c8 | 95  | basic |

expect target
| id | tier |
| c1 | gold |
",
    );
}

#[test]
fn c61_at_an_equal_version_the_change_wins() {
    hold(&["hybrid-equal-version"]);
}

#[test]
fn c62_the_second_snapshot_rules_keys_without_newer_events() {
    hold(&["hybrid-two-snapshots"]);
}

#[test]
fn c63_a_correction_for_the_same_business_date() {
    hold(&["bitemporal-correction", "bitemporal-earlier-business-date"]);
}

#[test]
fn c64_five_rows_of_three_events() {
    hold(&["bitemporal-late-fact"]);
}

#[test]
fn c65_c66_six_rows_and_eight_once_past_beliefs_are_rewritten() {
    hold(&["bitemporal-out-of-order", "bitemporal-out-of-order-reversed"]);
}

#[test]
fn c68_an_event_that_changes_no_belief_adds_no_row() {
    hold(&["bitemporal-no-op"]);
}

#[test]
fn c10_c47_a25_a_correction_that_leaves_a_column_null_keeps_it() {
    hold(&["bitemporal-partial"]);
}
