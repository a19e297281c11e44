//! R-TIE on bare events: a row handle is its own payload here.

use super::{Event, Op, Relation, relate, settle};

fn upsert(at: u64, payload: u32) -> Event<u32> {
    Event { at, op: Op::Upsert, row: payload }
}

fn delete(at: u64) -> Event<u32> {
    Event { at, op: Op::Delete, row: 0 }
}

#[test]
fn sequence_decides_before_rank_and_payload() {
    let never = |_: u32, _: u32| panic!("the sequence decides");
    assert_eq!(relate(upsert(1, 9), delete(2), never), (Relation::Before, false));
    assert_eq!(relate(delete(3), upsert(2, 9), never), (Relation::After, false));
}

#[test]
fn c26_a_delete_loses_to_an_upsert_at_its_sequence() {
    let never = |_: u32, _: u32| panic!("the rank decides");
    assert_eq!(relate(delete(2), upsert(2, 0), never), (Relation::Before, false));
    assert_eq!(relate(upsert(2, 0), delete(2), never), (Relation::After, false));
    assert_eq!(relate(delete(2), delete(2), never), (Relation::Same, false));
}

#[test]
fn c27_of_two_different_upserts_the_larger_wins_in_any_order() {
    let cmp = |a: u32, b: u32| a.cmp(&b);
    for events in [[upsert(1, 3), upsert(1, 7), delete(1)], [delete(1), upsert(1, 7), upsert(1, 3)]] {
        assert_eq!(settle(events, cmp), Some((upsert(1, 7), 1)));
    }
}

#[test]
fn c08_an_event_received_twice_is_no_tie() {
    assert_eq!(settle([upsert(1, 3), upsert(1, 3)], |a, b| a.cmp(&b)), Some((upsert(1, 3), 0)));
    assert_eq!(settle([] as [Event<u32>; 0], |a, b| a.cmp(&b)), None);
}
