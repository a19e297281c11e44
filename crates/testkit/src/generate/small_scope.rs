//! Which histories are there at all, as long as they are small?
//!
//! A universe is every event of a small world; a history is a set of its events. [`super::every_arrival`] delivers each
//! history in every way. No luck is needed to find what goes wrong with few events.

use std::collections::BTreeMap;

use crate::reference::{Event, Op, Value};

/// Every event of one key that sets two leaves in parts, at the sequences `0..sequences`: nine at each. An upsert sets
/// nothing; the first leaf to NULL, 1 or 2; the second to 1; both to 2 and NULL; the whole row to 1 and 2, or to 2 and 1.
/// The ninth is a delete. A leaf is a column, or a `column.field` of a struct, of which both leaves are then fields.
pub fn partial_events(leaves: [&str; 2], sequences: i64) -> Vec<Event> {
    let [first, second] = leaves;
    let (null, one, two) = (Value::Null, Value::Int(1), Value::Int(2));
    let whole = |x: &Value, y: &Value| kind(Op::Upsert, payload(leaves, [x, y]));
    // What an event does not set has a value that must not matter.
    let set = |authored: &[&str], x: &Value, y: &Value| Event {
        authored: Some(authored.iter().map(|&leaf| leaf.to_owned()).collect()),
        ..whole(x, y)
    };
    let kinds = [
        set(&[], &two, &two),
        set(&[first], &null, &two),
        set(&[first], &one, &two),
        set(&[first], &two, &two),
        set(&[second], &two, &one),
        set(&[first, second], &two, &null),
        whole(&one, &two),
        whole(&two, &one),
        kind(Op::Delete, BTreeMap::new()),
    ];
    at_each_sequence(&kinds, sequences)
}

/// An event of the key `k`, at no sequence yet.
fn kind(op: Op, values: BTreeMap<String, Value>) -> Event {
    Event { key: vec![Value::text("k")], seq: Value::Null, op, values, authored: None, sys: None }
}

fn at_each_sequence(kinds: &[Event], sequences: i64) -> Vec<Event> {
    let at = |seq: i64| move |kind: &Event| Event { seq: Value::Int(seq), ..kind.clone() };
    (0..sequences).flat_map(|seq| kinds.iter().map(at(seq))).collect()
}

fn payload(leaves: [&str; 2], values: [&Value; 2]) -> BTreeMap<String, Value> {
    let mut row = BTreeMap::new();
    for (leaf, value) in leaves.into_iter().zip(values) {
        let Some((column, field)) = leaf.split_once('.') else {
            row.insert(leaf.to_owned(), value.clone());
            continue;
        };
        let fields = row.entry(column.to_owned()).or_insert_with(|| Value::Struct(vec![]));
        if let Value::Struct(fields) = fields {
            fields.push((field.to_owned(), value.clone()));
        }
    }
    row
}

/// Every event of one key that is true from one of the sequences `0..sequences` and known from one of the system sequences
/// `0..systems`: the upsert of one of two values of `a`, the delete, the retraction.
pub fn bitemporal_events(sequences: i64, systems: i64) -> Vec<Event> {
    let upsert = |a: i64| kind(Op::Upsert, BTreeMap::from([("a".to_owned(), Value::Int(a))]));
    let nothing = BTreeMap::new;
    let kinds = [upsert(1), upsert(2), kind(Op::Delete, nothing()), kind(Op::Retract, nothing())];
    known_at(&at_each_sequence(&kinds, sequences), systems)
}

/// Every event once for each system sequence of `0..systems`.
pub fn known_at(events: &[Event], systems: i64) -> Vec<Event> {
    let at = |sys: i64| move |event: &Event| Event { sys: Some(Value::Int(sys)), ..event.clone() };
    (0..systems).flat_map(|sys| events.iter().map(at(sys))).collect()
}

/// Every set of at most so many items, each once, the small ones first. Of 16 events there are 2516 histories of up to
/// four, of 27 there are 3303 of up to three.
pub fn histories<T: Clone>(universe: &[T], most: usize) -> impl Iterator<Item = Vec<T>> {
    (1..=most.min(universe.len())).flat_map(move |size| sets(universe, size))
}

fn sets<T: Clone>(universe: &[T], size: usize) -> impl Iterator<Item = Vec<T>> {
    let mut next: Option<Vec<usize>> = Some((0..size).collect());
    std::iter::from_fn(move || {
        let places = next.take()?;
        next = following(&places, universe.len());
        places.iter().map(|place| universe.get(*place).cloned()).collect()
    })
}

/// The next rising list of places in the order of dictionaries.
fn following(places: &[usize], among: usize) -> Option<Vec<usize>> {
    let size = places.len();
    let (moved, place) = places.iter().enumerate().rev().find(|(at, place)| **place < among - size + at)?;
    Some(places.iter().take(moved).copied().chain(place + 1..=place + size - moved).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_set_is_there_once() {
        let all: Vec<Vec<i32>> = histories(&[1, 2, 3, 4, 5], 3).collect();
        assert_eq!(all.len(), 5 + 10 + 10);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(all.iter().all(|set| set.is_sorted_by(|left, right| left < right)));
        assert_eq!(histories(&[1, 2], 9).count(), 3);
        assert_eq!(histories(&bitemporal_events(2, 2), 4).count(), 2516);
        assert_eq!(histories(&partial_events(["a", "b"], 3), 3).count(), 3303);
    }

    #[test]
    fn no_event_of_a_universe_is_there_twice() {
        for universe in [
            partial_events(["a", "b"], 3),
            partial_events(["s.x", "s.y"], 2),
            bitemporal_events(2, 3),
            known_at(&partial_events(["a", "b"], 2), 2),
        ] {
            assert_eq!(universe.iter().collect::<BTreeSet<_>>().len(), universe.len());
        }
    }
}
