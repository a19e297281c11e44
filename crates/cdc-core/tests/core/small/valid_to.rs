//! Rows of a legacy history that say where they end: a version without a successor is closed there.

use strandline_cdc_core::{CdcOptions, StoredAs};

use super::{Small, down, up};

fn table(stored_as: StoredAs) -> Small {
    Small::new(stored_as, CdcOptions::default())
}

#[test]
fn a_version_without_a_successor_ends_where_it_says() {
    let mut table = table(StoredAs::Scd2);
    table.send(&[up("k", 1, 1).until(5), up("l", 2, 7)]);
    assert_eq!(table.versions(), [[Some(1), Some(1), Some(5)], [Some(7), Some(2), None]]);
}

#[test]
fn a_successor_at_the_end_follows_without_a_gap() {
    let mut table = table(StoredAs::Scd2);
    table.send(&[up("k", 1, 1).until(5), up("k", 5, 2).until(9), up("k", 12, 3)]);
    let expected = [[Some(1), Some(1), Some(5)], [Some(2), Some(5), Some(9)], [Some(3), Some(12), None]];
    assert_eq!(table.versions(), expected);
    assert_eq!(table.store.side.batch.num_rows(), 0, "every end shows");
}

#[test]
fn an_equal_successor_at_the_end_is_the_same_version() {
    let mut table = table(StoredAs::Scd2);
    table.send(&[up("k", 1, 1).until(5), up("k", 5, 1)]);
    assert_eq!(table.versions(), [[Some(1), Some(1), None]]);
}

#[test]
fn the_live_feed_goes_on_after_the_end_and_cuts_before_it() {
    let mut table = table(StoredAs::Scd2);
    table.send(&[up("k", 1, 1).until(5)]);
    table.send(&[up("k", 8, 4)]);
    assert_eq!(table.versions(), [[Some(1), Some(1), Some(5)], [Some(4), Some(8), None]]);
    table.send(&[up("k", 3, 2)]);
    let expected = [[Some(1), Some(1), Some(3)], [Some(2), Some(3), Some(5)], [Some(4), Some(8), None]];
    assert_eq!(table.versions(), expected);
}

#[test]
fn an_ended_row_is_gone_from_scd1_and_stays_gone() {
    let mut table = table(StoredAs::Scd1);
    table.send(&[up("k", 1, 1).until(5), up("l", 2, 7)]);
    assert_eq!(table.shown(["v"]), [[Some(7)]]);
    table.send(&[up("k", 4, 9)]);
    assert_eq!(table.shown(["v"]), [[Some(7)]], "4 is older than the end");
    table.send(&[up("k", 6, 9)]);
    assert_eq!(table.shown(["v"]), [[Some(7)], [Some(9)]]);
}

#[test]
fn a_bitemporal_row_ends_as_it_was_learned() {
    let mut table = table(StoredAs::Bitemporal);
    table.send(&[up("k", 1, 1).known(10).until(5)]);
    assert_eq!(table.beliefs(), [[Some(1), Some(1), Some(5), Some(10), None]]);
}

#[test]
fn the_end_of_a_delete_means_nothing() {
    let mut table = table(StoredAs::Scd2);
    table.send(&[up("k", 1, 1), down("k", 3).until(9), up("k", 6, 2)]);
    assert_eq!(table.versions(), [[Some(1), Some(1), Some(3)], [Some(2), Some(6), None]]);
}
