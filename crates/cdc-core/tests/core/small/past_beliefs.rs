//! How many stored rows does an event rewrite that was learned before what is known already?

use strandline_cdc_core::{CdcOptions, StoredAs};

use super::{Sent, Small, down, up};

/// The worked table: X1, X2, X3 out of order in business time, and a delete. Minutes after 12:00.
const LEARNED: fn() -> [Sent; 4] =
    || [up("k", 0, 1).known(1), up("k", 20, 2).known(21), up("k", 10, 3).known(24), down("k", 30).known(31)];

fn table() -> Small {
    Small::new(StoredAs::Bitemporal, CdcOptions::default())
}

fn learned() -> Small {
    let mut table = table();
    for event in LEARNED() {
        let done = table.send(&[event]);
        assert_eq!(done.counts.past_beliefs_rewritten, 0, "each is learned after what is known: {event:?}");
    }
    table
}

#[test]
fn a12_c66_rows_whose_past_changes_are_counted() {
    let mut table = learned();
    let done = table.send(&[up("k", 2, 9).known(5)]);
    // X1 as believed from 1, from 21 and from 24; the rows of X2 and X3 stay as they are.
    assert_eq!(done.counts.past_beliefs_rewritten, 3);
    assert_eq!((done.target.deletes.len(), done.target.inserts.num_rows()), (3, 5));
    assert_eq!(done.counts.late, 1);
    let expected = [
        [Some(1), Some(0), None, Some(1), Some(5)],
        [Some(1), Some(0), Some(2), Some(5), None],
        [Some(2), Some(20), None, Some(21), Some(31)],
        [Some(2), Some(20), Some(30), Some(31), None],
        [Some(3), Some(10), Some(20), Some(24), None],
        [Some(9), Some(2), None, Some(5), Some(21)],
        [Some(9), Some(2), Some(10), Some(24), None],
        [Some(9), Some(2), Some(20), Some(21), Some(24)],
    ];
    assert_eq!(table.beliefs(), expected);
}

#[test]
fn a12_what_is_learned_at_the_last_known_moment_rewrites_that_belief() {
    let mut table = learned();
    let done = table.send(&[up("k", 40, 5).known(31)]);
    assert_eq!(done.counts.past_beliefs_rewritten, 0, "it stands beside what was believed");
    let done = table.send(&[up("k", 25, 6).known(31)]);
    assert_eq!(done.counts.past_beliefs_rewritten, 1, "X2 ended at 30, and now at 25");
}

#[test]
fn a12_a_first_batch_rewrites_nothing_in_any_order() {
    let mut events = LEARNED().to_vec();
    events.push(up("k", 2, 9).known(5));
    events.reverse();
    let mut table = table();
    assert_eq!(table.send(&events).counts.past_beliefs_rewritten, 0);
}

#[test]
fn a12_an_older_event_that_changes_no_belief_is_not_counted() {
    let mut table = learned();
    let done = table.send(&[up("k", 5, 1).known(6)]);
    assert_eq!(done.counts.past_beliefs_rewritten, 0, "X1 was believed for 5 anyway");
    assert!(done.target.is_empty() && !done.side.is_empty(), "but the event is kept");
}

#[test]
fn a12_other_keys_are_not_concerned() {
    let mut table = learned();
    assert_eq!(table.send(&[up("other", 2, 9).known(5)]).counts.past_beliefs_rewritten, 0);
}
