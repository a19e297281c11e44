//! The fold on bare events: a row is a number, which is its value in every column.

use super::*;

const COLUMNS: usize = 2;

/// An event whose sequence stands in `row` and whose values are `values`.
fn event(at: Ordinal, op: Op, authored: Authored<'_>, row: u8, values: u8) -> Entry<'_, u8> {
    Entry { at: When::At(Position { at, op }), authored, row, values, new: false }
}

fn upsert(at: Ordinal, authored: Authored<'_>, row: u8, values: u8) -> Entry<'_, u8> {
    event(at, Op::Upsert, authored, row, values)
}

fn new(entry: Entry<'_, u8>) -> Entry<'_, u8> {
    Entry { new: true, ..entry }
}

fn folded(entries: &[Entry<'_, u8>]) -> State<u8> {
    let how = Fold { columns: COLUMNS, by_column: false, compare: |_: usize, a: u8, b: u8| a.cmp(&b) };
    fold(entries, &how).expect("an event")
}

fn live(entries: &[Entry<'_, u8>]) -> Live<u8> {
    let State::Live(live) = folded(entries) else { panic!("the newest event is an upsert") };
    live
}

#[test]
fn of_equal_events_the_first_given_is_known() {
    let delete = |row| event(3, Op::Delete, Authored::Whole, row, 0);
    let State::Gone(known) = folded(&[delete(1), delete(2)]) else { panic!("a delete is the newest event") };
    assert_eq!(known, Known { at: 3, row: 1 });
    for authored in [Authored::Whole, Authored::Columns(&[0])] {
        let live = live(&[upsert(3, authored, 1, 7), new(upsert(3, authored, 2, 7))]);
        assert_eq!(live.newest, Known { at: 3, row: 1 });
    }
}

#[test]
fn authors_of_a_column_at_different_sequences_are_no_tie() {
    let (first, both) = (Authored::Columns(&[0]), Authored::Columns(&[0, 1]));
    for (old, late) in [(first, first), (both, first), (Authored::Whole, first), (Authored::Whole, both)] {
        for entries in [
            [upsert(1, old, 1, 5), new(upsert(2, late, 2, 6))],
            [upsert(2, late, 1, 5), new(upsert(1, old, 2, 6))],
        ] {
            let live = live(&entries);
            assert_eq!((live.ties, live.tied), (0, None), "{entries:?}");
        }
    }
}

#[test]
fn a2_of_two_authors_of_a_column_at_one_sequence_the_smaller_is_tied() {
    let first = Authored::Columns(&[0]);
    for values in [[5, 6], [6, 5]] {
        let live = live(&[upsert(1, first, 1, values[0]), new(upsert(1, first, 2, values[1]))]);
        assert_eq!((live.values, live.ties, live.tied), (vec![Some(6), None], 1, Some(2)));
    }
    let equal = live(&[upsert(1, first, 1, 5), new(upsert(1, first, 2, 5))]);
    assert_eq!(equal.ties, 0);
    let known = live(&[upsert(1, first, 1, 5), upsert(1, first, 2, 6)]);
    assert_eq!(known.ties, 0, "a tie is counted when it is met");
}
