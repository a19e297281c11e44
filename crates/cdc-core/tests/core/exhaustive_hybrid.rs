//! Does any small history beside a snapshot, in any arrival, give another target than its set of events?
//!
//! Every history x arrival order x batch split x place of the snapshot is a key of its own; the snapshot has the keys of one
//! half of the cases, and lacks those of the other.

use std::collections::BTreeMap;

use strandline_cdc_core::{OnStale, SnapshotRules, StoredAs};
use strandline_testkit::{
    generate::{Domain, Image, every_arrival, histories},
    reference::{self, Event, Row, Value},
};

use crate::{
    compare::without,
    flow::{delete, upsert},
    shapes::{Shape, is_nothing, rows},
};

const VERSION: i64 = 2;

const RULES: SnapshotRules = SnapshotRules {
    max_delete_fraction: 1.0,
    guard_from_rows: 0,
    accept_horizon: false,
    on_stale: OnStale::Skip,
};

/// An arrival of a history; whether the snapshot has its key.
struct Case {
    history: usize,
    batches: Vec<Vec<Event>>,
    in_snapshot: bool,
}

/// The row of a key in the snapshot.
fn image_row() -> Row {
    [("a".to_owned(), Value::Int(1))].into()
}

/// Upserts of two values and a delete: before the snapshot, at its version and after it.
fn universe() -> Vec<Event> {
    let at = |seq: i64| {
        let up = |a: i64| upsert("k", seq, &[("a", a.into())]);
        [up(1), up(2), delete("k", seq)]
    };
    (VERSION - 1..=VERSION + 1).flat_map(at).collect()
}

fn key(number: usize) -> Vec<Value> {
    vec![Value::Text(number.to_string())]
}

fn expected(history: &[Event], in_snapshot: bool) -> Vec<Row> {
    let image = if in_snapshot { vec![(history[0].key.clone(), image_row())] } else { vec![] };
    let events = [history.to_vec(), reference::snapshot(&VERSION.into(), image)].concat();
    without(reference::scd1(&["k"], &events), &["__SEQUENCE_AT"])
}

/// Delivers the batches of all cases, with the snapshot before the batch of this place.
fn targets(cases: &[Case], batches: usize, place: usize) -> BTreeMap<Value, Vec<Row>> {
    let domain = Domain { columns: vec!["a".to_owned()], ..Domain::default() };
    let mut flow = Shape::new(StoredAs::Scd1, &domain, None);
    let present = cases.iter().enumerate().filter(|(_, case)| case.in_snapshot);
    let image = Image {
        version: VERSION.into(),
        rows: present.map(|(number, _)| (key(number), image_row())).collect(),
    };
    let batch = |at: usize| -> Vec<Event> {
        let of_case = |(number, case): (usize, &Case)| {
            let events = case.batches[at].clone();
            events.into_iter().map(move |event| Event { key: key(number), ..event })
        };
        cases.iter().enumerate().flat_map(of_case).collect()
    };
    for at in 0..=batches {
        if at == place {
            drop(flow.snapshot(&image, &RULES).unwrap());
        }
        if at < batches {
            flow.apply(&batch(at));
            assert!(is_nothing(&flow.apply(&batch(at))), "C-08: a replay changes nothing");
        }
    }
    assert!(is_nothing(&flow.snapshot(&image, &RULES).unwrap()), "a version again changes nothing");
    for at in 0..batches {
        assert!(is_nothing(&flow.apply(&batch(at))), "C-08: all again changes nothing");
    }
    let mut targets: BTreeMap<Value, Vec<Row>> = BTreeMap::new();
    for mut row in without(rows(&flow.store.target.batch), &["__SEQUENCE_AT"]) {
        let key = row.insert("k".to_owned(), Value::text("k")).unwrap();
        targets.entry(key).or_default().push(row);
    }
    targets
}

#[test]
fn c59_c60_c61_every_small_history_beside_a_snapshot() {
    let most = if cfg!(slow) { 5 } else { 4 };
    let histories: Vec<Vec<Event>> = histories(&universe(), most).collect();
    let mut cases: BTreeMap<Vec<usize>, Vec<Case>> = BTreeMap::new();
    for (history, events) in histories.iter().enumerate() {
        for batches in every_arrival(events) {
            for in_snapshot in [false, true] {
                let sizes = batches.iter().map(Vec::len).collect();
                let case = Case { history, batches: batches.clone(), in_snapshot };
                cases.entry(sizes).or_default().push(case);
            }
        }
    }
    let mut tried = 0;
    for (sizes, cases) in &cases {
        for place in 0..=sizes.len() {
            let targets = targets(cases, sizes.len(), place);
            for (number, case) in cases.iter().enumerate() {
                let target = targets.get(&key(number)[0]).cloned().unwrap_or_default();
                let expected = expected(&histories[case.history], case.in_snapshot);
                assert_eq!(target, expected, "snapshot before batch {place} of {:#?}", case.batches);
            }
            tried += cases.len();
        }
    }
    assert_eq!((histories.len(), tried), if cfg!(slow) { (381, 2_117_556) } else { (255, 182_196) });
}
