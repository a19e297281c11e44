//! What is kept beside the rows survives being stored, and being read in another order.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int8Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::take;
use proptest::prelude::*;
use strandline_cdc_core::{Barriers, CdcError, CdcOptions, CdcSpec, ChangeBatch, StoredAs};
use strandline_testkit::{
    generate::{Authoring, Domain, arrivals, history},
    reference::{Event, Op},
};

use crate::{
    flow::upsert,
    shapes::Shape,
    store::{Store, Table},
};

/// The rows of a table in another order, with ids of their own: what comes from files that were written anew.
fn rewritten(table: &Table) -> Table {
    let rows = u32::try_from(table.batch.num_rows()).unwrap();
    let order = UInt32Array::from_iter_values((0..rows).rev());
    let columns = table.batch.columns().iter().map(|column| take(column, &order, None).unwrap()).collect();
    Table::of(RecordBatch::try_new(table.batch.schema(), columns).unwrap())
}

fn restarted(flow: &mut Shape) {
    flow.store.target = rewritten(&flow.store.target);
    flow.store.side = rewritten(&flow.store.side);
    if let Some(rows) = flow.store.barriers.rows() {
        flow.store.barriers = Barriers::from_rows(&flow.spec, rows).unwrap();
    }
}

fn domains() -> [(StoredAs, Domain); 4] {
    [
        (StoredAs::Scd1, Domain { truncates: true, ..Domain::partial(Authoring::Leaves) }),
        (StoredAs::Scd2, Domain::default()),
        (StoredAs::Scd2, Domain::partial(Authoring::Leaves)),
        (StoredAs::Bitemporal, Domain::partial_two_clocks(Authoring::Leaves)),
    ]
}

fn deliveries() -> impl Strategy<Value = (usize, Vec<Vec<Event>>)> {
    (0..domains().len()).prop_flat_map(|which| {
        let domain = domains()[which].1.clone();
        history(&domain, 0..10).prop_flat_map(arrivals).prop_map(move |batches| (which, batches))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c72_side_rows_and_barriers_survive_a_restart_between_any_two_batches((which, batches) in deliveries()) {
        let (stored_as, domain) = &domains()[which];
        let mut flow = Shape::new(*stored_as, domain, None);
        let mut known = Vec::new();
        for batch in &batches {
            flow.apply(batch);
            restarted(&mut flow);
            known.extend(batch.iter().cloned());
            prop_assert_eq!(flow.target(), flow.expected(&known));
        }
    }
}

#[test]
fn c72_barriers_of_another_kind_or_schema_are_refused() {
    let mut flow = Shape::new(StoredAs::Scd1, &Domain::truncated(), None);
    assert_eq!(flow.store.barriers.rows(), None, "there is nothing to store yet");
    flow.apply(&[Event { key: vec![], op: Op::Truncate, ..upsert("k", 5, &[]) }]);
    let rows = flow.store.barriers.rows().unwrap();
    assert_eq!(Barriers::from_rows(&flow.spec, rows).as_ref(), Ok(&flow.store.barriers));
    let mut columns = rows.columns().to_vec();
    columns[0] = Arc::new(Int8Array::from(vec![77])) as ArrayRef;
    let unknown = RecordBatch::try_new(rows.schema(), columns).unwrap();
    let narrow = rows.project(&[0]).unwrap();
    for rows in [unknown, narrow] {
        let refused = Barriers::from_rows(&flow.spec, &rows);
        assert!(matches!(refused, Err(CdcError::SchemaMismatch { .. })), "{refused:?}");
    }
}

/// The number of rows that keys of one type leave in an SCD1 target.
fn distinct(keys: &ArrayRef) -> usize {
    let source = RecordBatch::try_from_iter([("k", Arc::clone(keys))]).unwrap();
    let options = CdcOptions { keys: vec!["k".to_owned()], ..CdcOptions::default() };
    let spec = CdcSpec::new(&options, &source.schema(), &DataType::Int64).unwrap();
    let sequence: ArrayRef = Arc::new(Int64Array::from_iter_values(0..i64::try_from(keys.len()).unwrap()));
    let changes = ChangeBatch::new(&spec, &source, &sequence, None).unwrap();
    let mut store = Store::new(&spec);
    store.apply(&spec, &changes, 1).unwrap();
    store.target.batch.num_rows()
}

#[test]
fn c73_texts_are_equal_by_their_bytes_and_decimals_by_value() {
    // Case, trailing space, and an accent composed or on its own make other texts.
    let texts: ArrayRef =
        Arc::new(StringArray::from(vec!["a", "A", "a ", "\u{e9}", "e\u{301}", "a", "", " "]));
    assert_eq!(distinct(&texts), 7);
    for kind in [DataType::LargeUtf8, DataType::Utf8View, DataType::Binary] {
        assert_eq!(distinct(&cast(&texts, &kind).unwrap()), 7, "{kind}");
    }
    let numbers: ArrayRef = Arc::new(StringArray::from(vec!["1", "1.0", "1.00", "01", "1.01"]));
    assert_eq!(distinct(&cast(&numbers, &DataType::Decimal128(10, 2)).unwrap()), 2);
    let moments: ArrayRef = Arc::new(StringArray::from(vec![
        "2024-01-01T00:00:00Z",
        "2024-01-01T02:00:00+02:00",
        "2023-12-31T19:00:00-05:00",
        "2024-01-01T00:00:00+02:00",
    ]));
    for zone in ["+00:00", "+02:00"] {
        let kind = DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
        assert_eq!(distinct(&cast(&moments, &kind).unwrap()), 2, "{kind}");
    }
}
