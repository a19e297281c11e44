//! `system_time = monotonic`: what was believed never changes after the fact.

use arrow_array::{Array, cast::AsArray, types::Int64Type};
use proptest::{collection::vec, prelude::*};
use strandline_cdc_core::{BarrierKind, CdcOptions, StoredAs, SystemTime};

use super::{Moment, Sent, Small, down, numbers, up};
use crate::shapes::is_nothing;

fn table(system_time: SystemTime) -> Small {
    Small::new(StoredAs::Bitemporal, CdcOptions { system_time, ..CdcOptions::default() })
}

/// The greatest system sequence that the table has seen: what a caller fixes in the plan of a batch.
fn seen(table: &Small) -> Option<i64> {
    let greatest = table.store.barriers.greatest(BarrierKind::SystemTime)?;
    assert_eq!(greatest.len(), 1);
    Some(greatest.as_primitive::<Int64Type>().value(0))
}

fn floor(system_floor: Option<i64>) -> Moment {
    Moment { system_floor, ..Moment::default() }
}

fn send(table: &mut Small, rows: &[Sent]) {
    let moment = floor(seen(table));
    table.send_at(rows, &moment);
}

/// X1 and X2, learned in order.
fn two(system_time: SystemTime) -> Small {
    let mut table = table(system_time);
    send(&mut table, &[up("k", 0, 1).known(1)]);
    send(&mut table, &[up("k", 20, 2).known(21)]);
    table
}

#[test]
fn a12_a_late_learned_fact_counts_from_the_last_moment_that_was_seen() {
    let mut table = two(SystemTime::Monotonic);
    assert_eq!(seen(&table), Some(21));
    send(&mut table, &[up("k", 2, 9).known(5)]);
    let expected = [
        [Some(1), Some(0), None, Some(1), Some(21)],
        [Some(1), Some(0), Some(2), Some(21), None],
        [Some(2), Some(20), None, Some(21), None],
        [Some(9), Some(2), Some(20), Some(21), None],
    ];
    assert_eq!(table.beliefs(), expected, "what was believed from 1 to 21 stays");
    assert_eq!(seen(&table), Some(21));
}

#[test]
fn a12_the_same_fact_taken_at_its_word_rewrites_the_past() {
    let mut table = two(SystemTime::Declared);
    send(&mut table, &[up("k", 2, 9).known(5)]);
    assert_eq!(table.beliefs()[0], [Some(1), Some(0), None, Some(1), Some(5)]);
}

#[test]
fn a12_the_moment_that_the_event_came_with_is_kept_beside_it() {
    let mut table = two(SystemTime::Monotonic);
    send(&mut table, &[up("k", 2, 9).known(5), up("k", 30, 3).known(40)]);
    let side = numbers(
        &table.store.side.batch,
        ["__SEQUENCE_AT", "__SYSTEM_SEQUENCE_AT", "__strandline_system_given"],
    );
    let expected = [
        [Some(0), Some(1), Some(1)],
        [Some(2), Some(21), Some(5)],
        [Some(20), Some(21), Some(21)],
        [Some(30), Some(40), Some(40)],
    ];
    assert_eq!(side, expected);
    assert_eq!(seen(&table), Some(40));
}

#[test]
fn a12_events_that_come_again_later_are_known() {
    let mut table = two(SystemTime::Monotonic);
    let late = [up("k", 2, 9).known(5), down("k", 25).known(7)];
    send(&mut table, &late);
    send(&mut table, &[up("k", 50, 5).known(60)]);
    let before = table.beliefs();
    for moment in [floor(Some(21)), floor(Some(60)), floor(Some(70))] {
        let done = table.send_at(&late, &moment);
        assert!(is_nothing(&done), "{moment:?}");
    }
    assert_eq!(table.beliefs(), before);
}

#[test]
fn a12_a_floor_means_nothing_where_system_time_is_declared() {
    let mut table = two(SystemTime::Declared);
    table.send_at(&[up("k", 2, 9).known(5)], &floor(Some(21)));
    assert_eq!(table.beliefs()[0], [Some(1), Some(0), None, Some(1), Some(5)]);
}

/// Rows that were believed at a moment, without their system bounds.
fn believed(table: &Small, at: i64) -> Vec<[Option<i64>; 3]> {
    let holds = |row: &&[Option<i64>; 5]| row[3] <= Some(at) && row[4].is_none_or(|end| end > at);
    table.beliefs().iter().filter(holds).map(|row| [row[0], row[1], row[2]]).collect()
}

fn events() -> impl Strategy<Value = Vec<Vec<Sent>>> {
    let event = (0..5_i64, 0..2_i64, 0..8_i64, proptest::bool::weighted(0.2));
    let event = event.prop_map(
        |(seq, v, sys, gone)| {
            if gone { down("k", seq).known(sys) } else { up("k", seq, v).known(sys) }
        },
    );
    vec(vec(event, 0..4), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a12_what_was_believed_before_the_floor_never_changes(batches in events()) {
        let mut table = table(SystemTime::Monotonic);
        for batch in &batches {
            let seen = seen(&table).unwrap_or(0);
            let before: Vec<_> = (0..seen).map(|at| believed(&table, at)).collect();
            send(&mut table, batch);
            let after: Vec<_> = (0..seen).map(|at| believed(&table, at)).collect();
            prop_assert_eq!(before, after);
        }
    }
}

#[test]
fn a12_a_floor_that_rose_after_the_plan_holds_when_the_batch_is_applied() {
    let mut table = two(SystemTime::Monotonic);
    let planned = table.batch(&[up("k", 2, 9).known(5)], &floor(seen(&table)));
    // Before it is applied, another flow learns something.
    send(&mut table, &[up("k", 30, 3).known(40)]);
    let before = table.beliefs();
    let moved_on = table.store.barriers.greatest(BarrierKind::SystemTime).unwrap();
    let planned = planned.learned_from(&table.spec, &moved_on).unwrap();
    table.store.apply(&table.spec, &planned, 1).unwrap();
    let ended = |row: &&[Option<i64>; 5]| row[4].is_some_and(|end| end <= 40);
    for row in before.iter().filter(ended) {
        assert!(table.beliefs().contains(row), "{row:?} was believed, and that stays");
    }
    let late = table.beliefs().into_iter().find(|row| row[0] == Some(9)).unwrap();
    assert_eq!(late[3], Some(40), "it counts from when the table knew more");
}
