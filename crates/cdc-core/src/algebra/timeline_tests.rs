//! The fold on bare events, written as a string: a letter is an upsert with that value, `-` is a delete.

use super::{Found, Version, fold};
use crate::algebra::order::Op;

fn folded(events: &str) -> Vec<Found> {
    let events = events.as_bytes();
    let mut all = Vec::new();
    fold(
        0..events.len(),
        |i| if events[i] == b'-' { Op::Delete } else { Op::Upsert },
        |i| i.checked_sub(1).is_some_and(|before| events[i] == events[before]),
        |found| all.push(found),
    );
    all
}

fn version(first: usize, tail: usize, end: impl Into<Option<usize>>) -> Found {
    Found::Version(Version { first, tail, end: end.into() })
}

#[test]
fn c11_an_update_ends_the_version_where_it_begins_one() {
    assert_eq!(folded("ab"), [version(0, 0, 1), version(1, 1, None)]);
}

#[test]
fn c12_a_delete_ends_and_opens_nothing() {
    assert_eq!(folded("a-a"), [version(0, 0, 1), version(2, 2, None)]);
}

#[test]
fn c16_equal_neighbours_are_one_version_with_the_values_of_the_last() {
    assert_eq!(folded("aaab"), [version(0, 2, 3), version(3, 3, None)]);
}

#[test]
fn only_the_delete_after_an_upsert_is_spent() {
    assert_eq!(
        folded("-a--b"),
        [Found::UnmatchedDelete(0), version(1, 1, 2), Found::UnmatchedDelete(3), version(4, 4, None)]
    );
    assert_eq!(folded("--"), [Found::UnmatchedDelete(0), Found::UnmatchedDelete(1)]);
    assert_eq!(folded(""), []);
}
