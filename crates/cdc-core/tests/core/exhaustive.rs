//! Does any small history, in any arrival, give another target than its set of events?
//!
//! Every history x arrival order x batch split is a key of its own, so that thousands of cases share one batch. Each
//! batch is delivered twice in a row, and all of them once more at the end: none of that may change anything.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use strandline_cdc_core::{CdcSpec, ChangeBatch, StoredAs, names};
use strandline_testkit::reference::{Event, Row, Value};

use crate::{
    convert::Codec,
    flow::{Columns, Flow, delete, upsert},
    store::{Reading, Store},
};

/// A small event: a sequence, and the values of `v` and `w` or a delete.
type Small = (i64, Option<(i64, i64)>);

/// A row as numbers, NULL as the least of them: its payload, then its system columns.
type Numbers = Vec<i64>;

fn columns() -> Columns {
    let column = |name: &str| (name.to_owned(), Codec::Plain(DataType::Int64));
    Columns {
        keys: vec![column("k")],
        payload: vec![column("v"), column("w")],
        sequence: Codec::Plain(DataType::Int64),
    }
}

fn event(&(seq, values): &Small) -> Event {
    match values {
        Some((v, w)) => upsert(0, seq, &[("v", v.into()), ("w", w.into())]),
        None => delete(0, seq),
    }
}

/// What one set of events must leave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State {
    target: Vec<Numbers>,
    side: Vec<Numbers>,
}

fn expected(flow: &Flow, history: &[Small]) -> State {
    let events: Vec<Event> = history.iter().map(event).collect();
    let numbers = |rows: Vec<Row>, names: &[&str]| -> Vec<Numbers> {
        let number = |value: &Value| if let Value::Int(number) = value { *number } else { i64::MIN };
        let mut rows: Vec<Numbers> =
            rows.iter().map(|row| names.iter().map(|&name| number(&row[name])).collect()).collect();
        rows.sort();
        rows
    };
    let shown: &[&str] = match flow.spec.stored_as() {
        StoredAs::Bitemporal => panic!("one clock only"),
        StoredAs::Scd1 => &["v", "w", names::SEQUENCE_AT],
        StoredAs::Scd2 => &["v", "w", names::START_AT, names::END_AT],
    };
    State {
        target: numbers(flow.expected_target(&events), shown),
        side: numbers(flow.expected_side(&events), &["v", "w", names::SEQUENCE_AT, names::SIDE_KIND]),
    }
}

/// The rows of each key.
fn by_key(batch: &RecordBatch, cases: usize) -> Vec<Vec<Numbers>> {
    let columns: Vec<Int64Array> = batch
        .columns()
        .iter()
        .map(|column| arrow_cast::cast(column, &DataType::Int64).unwrap().as_primitive::<Int64Type>().clone())
        .collect();
    let mut rows = vec![Vec::new(); cases];
    for row in 0..batch.num_rows() {
        let number = |column: &Int64Array| {
            if arrow_array::Array::is_null(column, row) { i64::MIN } else { column.value(row) }
        };
        let key = usize::try_from(number(&columns[0])).unwrap();
        rows[key].push(columns[1..].iter().map(number).collect::<Numbers>());
    }
    for rows in &mut rows {
        rows.sort();
    }
    rows
}

/// The events of some cases as one batch.
fn change_batch(spec: &CdcSpec, events: &[(usize, Small)]) -> ChangeBatch {
    let int = |value: &dyn Fn(&(usize, Small)) -> Option<i64>| -> ArrayRef {
        Arc::new(events.iter().map(value).collect::<Int64Array>())
    };
    let schema = Schema::new(["k", "v", "w"].map(|name| Field::new(name, DataType::Int64, true)).to_vec());
    let columns = vec![
        int(&|(key, _)| i64::try_from(*key).ok()),
        int(&|(_, (_, values))| values.map(|(v, _)| v)),
        int(&|(_, (_, values))| values.map(|(_, w)| w)),
    ];
    let rows = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let deletes: BooleanArray = events.iter().map(|(_, (_, values))| Some(values.is_none())).collect();
    ChangeBatch::new(spec, &rows, &int(&|(_, (seq, _))| Some(*seq)), Some(&deletes)).unwrap()
}

/// Runs every arrival (events in order of arrival) with every batch split; gives the number of cases.
fn try_all(flow: &Flow, arrivals: &[Vec<Small>]) -> usize {
    let mut known: BTreeMap<Vec<Small>, State> = BTreeMap::new();
    let expected: Vec<State> = arrivals
        .iter()
        .map(|arrival| {
            let mut history = arrival.clone();
            history.sort_unstable();
            history.dedup();
            match known.entry(history) {
                Entry::Occupied(state) => state.get().clone(),
                Entry::Vacant(state) => {
                    let computed = expected(flow, state.key());
                    state.insert(computed).clone()
                }
            }
        })
        .collect();
    let length = arrivals[0].len();
    let splits = 1_usize << (length - 1);
    for split in 0..splits {
        let mut store = Store::new(&flow.spec);
        let mut batches: Vec<Vec<(usize, Small)>> = vec![Vec::new()];
        for at in 0..length {
            if at > 0 && split & (1 << (at - 1)) != 0 {
                batches.push(Vec::new());
            }
            batches.last_mut().unwrap().extend(arrivals.iter().map(|arrival| arrival[at]).enumerate());
        }
        let batches: Vec<ChangeBatch> =
            batches.iter().map(|events| change_batch(&flow.spec, events)).collect();
        for batch in &batches {
            store.apply_read(&flow.spec, batch, Reading::Generous).unwrap();
            changes_nothing(&store, &flow.spec, batch);
        }
        for batch in &batches {
            changes_nothing(&store, &flow.spec, batch);
        }
        let (target, side) =
            (by_key(&store.target.batch, arrivals.len()), by_key(&store.side.batch, arrivals.len()));
        for (case, (target, side)) in target.into_iter().zip(side).enumerate() {
            assert_eq!(
                State { target, side },
                expected[case],
                "arrival {:?}, split {split:b}",
                arrivals[case]
            );
        }
    }
    arrivals.len() * splits
}

fn changes_nothing(store: &Store, spec: &CdcSpec, batch: &ChangeBatch) {
    let again = store.reconcile(spec, batch, Reading::Generous).unwrap();
    assert!(again.target.is_empty() && again.side.is_empty(), "C-08: a replay changes nothing");
}

/// All sequences of `length` items.
fn sequences<T: Copy>(items: &[T], length: usize) -> Vec<Vec<T>> {
    let Some(shorter) = length.checked_sub(1) else { return vec![vec![]] };
    let longer = |head: Vec<T>| items.iter().map(move |item| [head.as_slice(), &[*item]].concat());
    sequences(items, shorter).into_iter().flat_map(longer).collect()
}

fn orders(length: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..length).collect();
    let distinct = |order: &Vec<usize>| all.iter().all(|i| order.contains(i));
    sequences(&all, length).into_iter().filter(distinct).collect()
}

/// Every history of five distinct sequences x {upsert a, upsert b, delete}, in every arrival order. `w` is what the
/// second column of an upsert at a sequence holds.
fn five_distinct(w: impl Fn(i64) -> i64) -> Vec<Vec<Small>> {
    let orders = orders(5);
    let mut arrivals = Vec::new();
    for history in sequences(&[Some(1), Some(2), None], 5) {
        let small = |&at: &usize| -> Small {
            let seq = i64::try_from(at).unwrap() + 1;
            (seq, history[at].map(|v| (v, w(seq))))
        };
        arrivals.extend(orders.iter().map(|order| order.iter().map(small).collect::<Vec<_>>()));
    }
    arrivals
}

/// Every arrival of four events at three sequences.
fn four_tied(kinds: &[Option<(i64, i64)>]) -> Vec<Vec<Small>> {
    let events: Vec<Small> = (1..=3).flat_map(|seq| kinds.iter().map(move |&kind| (seq, kind))).collect();
    sequences(&events, 4)
}

#[test]
fn c01_to_c08_scd1_every_history_of_five_sequences() {
    let flow = Flow::new(columns(), StoredAs::Scd1, None);
    assert_eq!(try_all(&flow, &five_distinct(|seq| seq % 2)), 466_560);
}

#[test]
fn c06_to_c19_scd2_every_history_of_five_sequences() {
    let flow = Flow::new(columns(), StoredAs::Scd2, None);
    assert_eq!(try_all(&flow, &five_distinct(|_| 0)), 466_560);
}

#[test]
fn c21_c22_scd2_every_history_of_five_sequences_with_a_tracked_subset() {
    let flow = Flow::new(columns(), StoredAs::Scd2, Some(&["v"]));
    assert_eq!(try_all(&flow, &five_distinct(|seq| seq % 3)), 466_560);
}

const TIED: [Option<(i64, i64)>; 4] = [Some((1, 1)), Some((1, 2)), Some((2, 1)), None];

#[test]
fn c26_c27_scd1_every_arrival_of_four_tied_events() {
    let flow = Flow::new(columns(), StoredAs::Scd1, None);
    assert_eq!(try_all(&flow, &four_tied(&TIED)), 165_888);
}

#[test]
fn c26_c27_scd2_every_arrival_of_four_tied_events() {
    let flow = Flow::new(columns(), StoredAs::Scd2, None);
    assert_eq!(try_all(&flow, &four_tied(&TIED)), 165_888);
}

#[test]
fn c26_c27_scd2_every_arrival_of_four_tied_events_with_a_tracked_subset() {
    let flow = Flow::new(columns(), StoredAs::Scd2, Some(&["v"]));
    assert_eq!(try_all(&flow, &four_tied(&TIED)), 165_888);
}
