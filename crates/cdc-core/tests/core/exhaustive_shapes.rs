//! Does any small history of a bitemporal target, or of partial updates, give another target than its set of events?
//!
//! Every history x arrival order x batch split is a key of its own, so that thousands of cases share one batch. Each batch
//! is delivered twice in a row, and all of them once more at the end: none of that may change anything.

use std::collections::BTreeMap;

use strandline_cdc_core::{ChangeBatch, StoredAs};
use strandline_testkit::{
    generate::{Authoring, Domain, bitemporal_events, every_arrival, histories, known_at, partial_events},
    reference::{Event, Op, Row, Value},
};

use crate::{
    flow::sorted,
    shapes::{Shape, is_nothing, rows},
    store::Reading,
};

/// An arrival: which history it is of, and its batches.
struct Case {
    history: usize,
    batches: Vec<Vec<Event>>,
}

/// Runs every arrival of every history of up to `most` events; gives the number of cases.
fn try_all(flow: &Shape, universe: &[Event], most: usize) -> usize {
    let histories: Vec<Vec<Event>> = histories(universe, most).collect();
    let expected: Vec<Vec<Row>> = histories.iter().map(|history| flow.expected(history)).collect();
    // Cases with batches of the same sizes share their batches.
    let mut cases: BTreeMap<Vec<usize>, Vec<Case>> = BTreeMap::new();
    for (history, events) in histories.iter().enumerate() {
        for batches in every_arrival(events) {
            let sizes = batches.iter().map(Vec::len).collect();
            cases.entry(sizes).or_default().push(Case { history, batches });
        }
    }
    let mut tried = 0;
    for (at, (sizes, cases)) in cases.iter().enumerate() {
        let reading = if at % 2 == 0 { Reading::Exact } else { Reading::Generous };
        let targets = targets(flow.clone(), cases, sizes.len(), reading);
        for (number, case) in cases.iter().enumerate() {
            let target = targets.get(&key(number)).cloned().unwrap_or_default();
            assert_eq!(target, expected[case.history], "{:#?}", case.batches);
        }
        tried += cases.len();
    }
    #[expect(clippy::print_stdout, reason = "how much was tried is worth knowing")]
    {
        println!("{} histories, {tried} cases", histories.len());
    }
    tried
}

fn key(number: usize) -> Value {
    Value::Text(number.to_string())
}

/// The rows of each case, with the key that its history has.
fn targets(mut flow: Shape, cases: &[Case], batches: usize, reading: Reading) -> BTreeMap<Value, Vec<Row>> {
    let batch = |at: usize| -> ChangeBatch {
        let events = cases.iter().enumerate().flat_map(|(number, case)| {
            case.batches[at].iter().map(move |event| Event { key: vec![key(number)], ..event.clone() })
        });
        flow.batch(&events.collect::<Vec<_>>()).unwrap()
    };
    let batches: Vec<ChangeBatch> = (0..batches).map(batch).collect();
    let unchanged = |flow: &Shape, batch: &ChangeBatch| {
        let again = flow.store.reconcile(&flow.spec, batch, reading).unwrap();
        assert!(is_nothing(&again), "C-08: a replay changes nothing");
    };
    for batch in &batches {
        flow.store.apply_read(&flow.spec, batch, reading).unwrap();
        unchanged(&flow, batch);
    }
    for batch in &batches {
        unchanged(&flow, batch);
    }
    let mut targets: BTreeMap<Value, Vec<Row>> = BTreeMap::new();
    for mut row in rows(&flow.store.target.batch) {
        let key = row.insert("k".to_owned(), Value::text("k")).unwrap();
        targets.entry(key).or_default().push(row);
    }
    targets.into_iter().map(|(key, rows)| (key, sorted(rows))).collect()
}

/// Events of a flow with partial updates: none of them is settled as a whole row.
fn in_parts(events: Vec<Event>, leaves: [&str; 2]) -> Vec<Event> {
    let all = || leaves.iter().map(|&leaf| leaf.to_owned()).collect();
    let event = |event: Event| match event.op {
        Op::Upsert => Event { authored: Some(event.authored.unwrap_or_else(all)), ..event },
        _ => event,
    };
    events.into_iter().map(event).collect()
}

fn flow(stored_as: StoredAs, domain: &Domain, tracked: Option<&[&str]>) -> Shape {
    Shape::new(stored_as, domain, tracked)
}

fn one_column(systems: Option<i64>) -> Domain {
    Domain { columns: vec!["a".to_owned()], systems, ..Domain::default() }
}

/// The columns `a` and `b`, set in parts.
fn two_columns(systems: Option<i64>) -> Domain {
    Domain { systems, authoring: Authoring::Leaves, ..Domain::default() }
}

/// The struct `s` of `x` and `y`, set in parts.
fn one_struct() -> Domain {
    let structs = vec!["s".to_owned()];
    Domain { columns: vec![], structs, authoring: Authoring::Leaves, ..Domain::default() }
}

const COLUMNS: [&str; 2] = ["a", "b"];
const FIELDS: [&str; 2] = ["s.x", "s.y"];

#[test]
fn c07_c63_to_c68_bitemporal_every_history_of_two_by_two_sequences() {
    let flow = flow(StoredAs::Bitemporal, &one_column(Some(2)), None);
    assert_eq!(try_all(&flow, &bitemporal_events(2, 2), 4), 363_376);
}

#[test]
fn c07_bitemporal_every_history_of_three_by_three_sequences() {
    let flow = flow(StoredAs::Bitemporal, &one_column(Some(3)), None);
    assert_eq!(try_all(&flow, &bitemporal_events(3, 3), 3), 173_916);
}

#[test]
fn c46_c52_scd1_every_history_of_partial_updates() {
    let flow = flow(StoredAs::Scd1, &two_columns(None), None);
    assert_eq!(try_all(&flow, &in_parts(partial_events(COLUMNS, 3), COLUMNS), 3), 71_631);
}

#[test]
fn c47_to_c50_scd2_every_history_of_partial_updates() {
    let flow = flow(StoredAs::Scd2, &two_columns(None), None);
    assert_eq!(try_all(&flow, &in_parts(partial_events(COLUMNS, 3), COLUMNS), 3), 71_631);
}

#[test]
fn c21_c50_scd2_every_history_of_partial_updates_with_a_tracked_subset() {
    let flow = flow(StoredAs::Scd2, &two_columns(None), Some(&["a"]));
    assert_eq!(try_all(&flow, &in_parts(partial_events(COLUMNS, 3), COLUMNS), 3), 71_631);
}

#[test]
fn c51_every_history_of_partial_updates_of_a_struct() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let flow = flow(stored_as, &one_struct(), None);
        assert_eq!(try_all(&flow, &in_parts(partial_events(FIELDS, 3), FIELDS), 3), 71_631);
    }
}

#[test]
fn c07_a25_bitemporal_every_history_of_partial_updates() {
    let flow = flow(StoredAs::Bitemporal, &two_columns(Some(2)), None);
    let universe = known_at(&in_parts(partial_events(COLUMNS, 2), COLUMNS), 2);
    assert_eq!(try_all(&flow, &universe, 3), 173_916);
}

/// Four events of the kinds that meet each other: NULL and 1 for the one leaf, 1 for the other, a whole row, a delete. All
/// kinds with `--cfg slow`.
#[test]
fn c46_c49_every_history_of_four_partial_updates_at_two_sequences() {
    let chosen = |(at, _): &(usize, Event)| cfg!(slow) || [1, 2, 4, 6, 8].contains(&(at % 9));
    let universe = partial_events(COLUMNS, 2).into_iter().enumerate().filter(chosen).map(|(_, event)| event);
    let universe = in_parts(universe.collect(), COLUMNS);
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let tried = try_all(&flow(stored_as, &two_columns(None), None), &universe, 4);
        assert_eq!(tried, if cfg!(slow) { 607_734 } else { 43_390 });
    }
}
