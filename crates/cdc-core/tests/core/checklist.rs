//! Each statement of the feature checklist about SCD1, SCD2 and ties, on its plainest example.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use strandline_cdc_core::{CdcError, CdcOptions, CdcSpec, ChangeBatch, ColumnSelection, OnTie, StoredAs};
use strandline_testkit::reference::{Event, Row, Value};

use crate::{
    convert::Codec,
    flow::{Columns, Flow, delete, sorted, upsert},
    store::Store,
};

/// An upsert with `a`.
fn up(seq: i64, a: i64) -> Event {
    upsert("k", seq, &[("a", a.into()), ("b", 0.into())])
}

fn up_ab(seq: i64, a: impl Into<Value>, b: impl Into<Value>) -> Event {
    upsert("k", seq, &[("a", a.into()), ("b", b.into())])
}

fn down(seq: i64) -> Event {
    delete("k", seq)
}

fn scd1() -> Flow {
    Flow::new(Columns::plain(), StoredAs::Scd1, None)
}

fn scd2() -> Flow {
    Flow::new(Columns::plain(), StoredAs::Scd2, None)
}

/// The values of `a` in an SCD1 target, with the sequences that wrote them.
fn current(batches: &[&[Event]]) -> Vec<(i64, i64)> {
    let mut flow = scd1();
    for batch in batches {
        flow.apply(batch);
    }
    let int = |value: &Value| if let Value::Int(int) = value { *int } else { i64::MIN };
    flow.target().iter().map(|row| (int(&row["a"]), int(&row["__SEQUENCE_AT"]))).collect()
}

/// `(a, start, end)` of the versions after the batches, by start; no end is `None`.
fn versions_of(flow: &Flow) -> Vec<(i64, i64, Option<i64>)> {
    let int = |value: &Value| if let Value::Int(int) = value { Some(*int) } else { None };
    let version = |row: &Row| {
        (int(&row["a"]).unwrap_or(i64::MIN), int(&row["__START_AT"]).unwrap(), int(&row["__END_AT"]))
    };
    let mut versions: Vec<_> = flow.target().iter().map(version).collect();
    versions.sort_by_key(|version| version.1);
    versions
}

fn versions(batches: &[&[Event]]) -> Vec<(i64, i64, Option<i64>)> {
    let mut flow = scd2();
    for batch in batches {
        flow.apply(batch);
    }
    versions_of(&flow)
}

#[test]
fn c01_the_largest_sequence_decides() {
    assert_eq!(current(&[&[up(3, 3), up(1, 1)], &[up(2, 2)]]), [(3, 3)]);
}

#[test]
fn c02_a_newest_delete_removes_the_row() {
    assert_eq!(current(&[&[up(1, 1)], &[down(2)]]), []);
    assert_eq!(current(&[&[up(1, 1), down(2)]]), []);
}

#[test]
fn c03_a_newer_upsert_brings_the_key_back_with_nothing_from_before() {
    let mut flow = scd1();
    flow.apply(&[up_ab(1, 1, 1)]);
    flow.apply(&[down(2)]);
    flow.apply(&[up_ab(3, 7, Value::Null)]);
    assert_eq!(flow.target()[0]["b"], Value::Null);
    assert!(flow.side().is_empty(), "the tombstone is spent");
}

#[test]
fn c04_a_delete_of_an_unknown_key_defeats_an_older_upsert() {
    let mut flow = scd1();
    let done = flow.apply(&[down(5)]);
    assert_eq!((flow.target().len(), flow.side().len(), done.counts.deleted), (0, 1, 0));
    let done = flow.apply(&[up(4, 1)]);
    assert_eq!((flow.target().len(), done.counts.tombstone_defeated, done.counts.late), (0, 1, 1));
}

#[test]
fn c11_an_update_closes_and_opens_at_its_sequence() {
    assert_eq!(versions(&[&[up(1, 1)], &[up(4, 2)]]), [(1, 1, Some(4)), (2, 4, None)]);
}

#[test]
fn c12_a_delete_leaves_a_gap_until_the_next_upsert() {
    assert_eq!(versions(&[&[up(1, 1)], &[down(4)], &[up(6, 1)]]), [(1, 1, Some(4)), (1, 6, None)]);
}

#[test]
fn c13_a_late_event_recuts_both_neighbours() {
    let expected = [(1, 1, Some(3)), (2, 3, Some(5)), (3, 5, None)];
    assert_eq!(versions(&[&[up(1, 1), up(5, 3)], &[up(3, 2)]]), expected);
}

#[test]
fn c14_a_late_event_before_the_first_version_comes_first() {
    assert_eq!(versions(&[&[up(5, 3)], &[up(3, 2)]]), [(2, 3, Some(5)), (3, 5, None)]);
}

#[test]
fn c15_a_late_delete_splits_a_closed_version() {
    assert_eq!(versions(&[&[up(1, 1), up(5, 3)], &[down(3)]]), [(1, 1, Some(3)), (3, 5, None)]);
}

#[test]
fn c16_an_equal_resend_opens_no_version() {
    let mut flow = scd2();
    flow.apply(&[up(1, 1)]);
    let done = flow.apply(&[up(2, 1)]);
    assert!(done.target.is_empty(), "the row stays as it is");
    assert_eq!(versions_of(&flow), [(1, 1, None)]);
}

#[test]
fn c17_a_late_event_bisects_a_run() {
    let run = [up(5, 1), up(10, 1), up(15, 1), up(20, 3)];
    let expected = [(1, 5, Some(12)), (2, 12, Some(15)), (1, 15, Some(20)), (3, 20, None)];
    assert_eq!(versions(&[&run, &[up(12, 2)]]), expected);
    let one_by_one: Vec<&[Event]> = run.chunks(1).collect();
    assert_eq!(versions(&[one_by_one.as_slice(), &[&[up(12, 2)]]].concat()), expected);
}

#[test]
fn c18_a_late_event_equal_to_both_neighbours_merges_them() {
    // A delete at 2 keeps the equal versions apart; an upsert at the same sequence takes its place.
    let batches: [&[Event]; 2] = [&[up(1, 1), down(2), up(3, 1)], &[up(2, 1)]];
    assert_eq!(versions(&batches[..1]), [(1, 1, Some(2)), (1, 3, None)]);
    assert_eq!(versions(&batches), [(1, 1, None)]);
    // The smaller of two tied upserts gives way to one that equals the neighbours.
    assert_eq!(versions(&[&[up(1, 5), up(2, 4), up(3, 5)], &[up(2, 5)]]), [(5, 1, None)]);
}

#[test]
fn c19_no_version_is_empty() {
    assert_eq!(versions(&[&[up(1, 1), down(1)], &[up(1, 2), down(1)]]), [(2, 1, None)]);
}

#[test]
fn c20_null_equals_null() {
    let mut flow = scd2();
    flow.apply(&[up_ab(1, Value::Null, Value::Null)]);
    flow.apply(&[up_ab(2, Value::Null, Value::Null)]);
    assert_eq!(flow.target().len(), 1);
    flow.apply(&[up_ab(3, 0, Value::Null)]);
    assert_eq!(flow.target().len(), 2);
}

#[test]
fn c21_an_untracked_change_updates_the_version_in_place() {
    let only = Flow::new(Columns::plain(), StoredAs::Scd2, Some(&["a"]));
    let mut except = only.clone();
    except.spec = spec(&CdcOptions {
        track_history: ColumnSelection::Except(vec!["b".to_owned()]),
        stored_as: StoredAs::Scd2,
        ..keyed()
    })
    .unwrap();
    for mut flow in [only, except] {
        flow.apply(&[up_ab(1, 1, 1)]);
        flow.apply(&[up_ab(2, 1, 2)]);
        let target = flow.target();
        assert_eq!((target.len(), &target[0]["b"], &target[0]["__START_AT"]), (1, &2.into(), &1.into()));
    }
}

#[test]
fn c22_an_untracked_late_change_updates_its_version_if_it_is_its_newest_event() {
    let mut flow = Flow::new(Columns::plain(), StoredAs::Scd2, Some(&["a"]));
    flow.apply(&[up_ab(1, 1, 1), up_ab(5, 1, 5), up_ab(9, 2, 9)]);
    flow.apply(&[up_ab(3, 1, 3)]);
    let shown = |flow: &Flow| -> Vec<Value> { flow.target().iter().map(|row| row["b"].clone()).collect() };
    assert_eq!(shown(&flow), [9.into(), 5.into()], "the open version sorts first");
    flow.apply(&[up_ab(7, 1, 7)]);
    assert_eq!(shown(&flow), [9.into(), 7.into()]);
}

#[test]
fn c26_upsert_and_delete_at_one_sequence_keep_the_upsert() {
    for batches in [[[up(1, 1)], [down(1)]], [[down(1)], [up(1, 1)]]] {
        let batches: Vec<&[Event]> = batches.iter().map(|batch| &batch[..]).collect();
        assert_eq!(current(&batches), [(1, 1)]);
        assert_eq!(versions(&batches), [(1, 1, None)]);
    }
    // An update delivered as delete and insert continues the run, or closes and opens.
    assert_eq!(versions(&[&[up(1, 1)], &[down(2), up(2, 1)]]), [(1, 1, None)]);
    assert_eq!(versions(&[&[up(1, 1)], &[down(2), up(2, 2)]]), [(1, 1, Some(2)), (2, 2, None)]);
}

#[test]
fn c27_of_two_different_upserts_the_larger_wins_in_every_order() {
    for batches in [[[up(1, 1)], [up(1, 2)]], [[up(1, 2)], [up(1, 1)]]] {
        let batches: Vec<&[Event]> = batches.iter().map(|batch| &batch[..]).collect();
        assert_eq!(current(&batches), [(2, 1)]);
        assert_eq!(current(&[&batches.concat()]), [(2, 1)]);
        assert_eq!(versions(&batches), [(2, 1, None)]);
        assert_eq!(versions(&[&batches.concat()]), [(2, 1, None)]);
    }
}

#[test]
fn c27_payloads_compare_in_the_order_of_column_names() {
    let mut columns = Columns::plain();
    columns.payload.reverse();
    let mut flow = Flow::new(columns, StoredAs::Scd1, None);
    flow.apply(&[up_ab(1, 1, 9), up_ab(1, 2, 0)]);
    assert_eq!(flow.target()[0]["a"], 2.into());
}

#[test]
fn c28_ties_are_counted_or_refused() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let columns = Columns::plain();
        let counted = columns.spec(stored_as, None);
        let refused = spec(&CdcOptions { stored_as, on_tie: OnTie::Error, ..keyed() }).unwrap();
        for batches in [vec![vec![up(1, 1), up(1, 2)]], vec![vec![up(1, 1)], vec![up(1, 2)]]] {
            let (mut tied, mut store, mut error) = (0, Store::new(&counted), None);
            let mut strict = Store::new(&refused);
            for events in &batches {
                let batch = columns.batch(&counted, events).unwrap();
                tied += store.apply(&counted, &batch, 1).unwrap().counts.tied;
                let batch = columns.batch(&refused, events).unwrap();
                error = strict.apply(&refused, &batch, 1).err();
            }
            assert_eq!(tied, 1);
            assert_eq!(
                error,
                Some(CdcError::Tie { key: "k=k".to_owned(), sequence: "1".to_owned(), count: 1 }),
                "{stored_as}"
            );
        }
        let mut strict = Store::new(&refused);
        for events in [[up(1, 1), up(1, 1)], [up(1, 1), down(1)]] {
            strict.apply(&refused, &columns.batch(&refused, &events).unwrap(), 1).unwrap();
        }
    }
}

#[test]
fn c28_a_superseded_tie_is_none_whatever_the_order() {
    let columns = Columns::plain();
    let refused = spec(&CdcOptions { on_tie: OnTie::Error, ..keyed() }).unwrap();
    for events in
        [[up(1, 1), up(1, 2), up(2, 0)], [up(1, 1), up(2, 0), up(1, 2)], [up(2, 0), up(1, 2), up(1, 1)]]
    {
        let mut store = Store::new(&refused);
        let done = store.apply(&refused, &columns.batch(&refused, &events).unwrap(), 1).unwrap();
        assert_eq!(done.counts.tied, 0);
        let again = store.apply(&refused, &columns.batch(&refused, &events[..2]).unwrap(), 1).unwrap();
        assert_eq!(again.counts.tied, 0);
    }
}

fn pair_sequence() -> Columns {
    let fields: Fields =
        vec![Field::new("ts", DataType::Int64, true), Field::new("n", DataType::Int64, true)].into();
    Columns { sequence: Codec::Plain(DataType::Struct(fields)), ..Columns::plain() }
}

fn pair(ts: impl Into<Value>, n: impl Into<Value>) -> Value {
    Value::fields([("ts", ts.into()), ("n", n.into())])
}

#[test]
fn c29_struct_sequences_compare_first_field_first() {
    let columns = pair_sequence();
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let mut flow = Flow::new(columns.clone(), stored_as, None);
        let event = |ts: i64, n: i64, a: i64| upsert("k", pair(ts, n), &[("a", a.into())]);
        let events = [event(1, 9, 1), event(2, 1, 3), event(2, 0, 2)];
        for event in &events {
            flow.apply(std::slice::from_ref(event));
        }
        flow.check(&events);
        let newest = sorted(flow.target()).into_iter().map(|row| row["a"].clone()).max();
        assert_eq!(newest, Some(3.into()));
    }
}

#[test]
fn c30_a_null_field_of_a_struct_sequence_rejects_the_batch() {
    let columns = pair_sequence();
    let spec = columns.spec(StoredAs::Scd1, None);
    for seq in [pair(1, Value::Null), pair(Value::Null, 1), Value::Null] {
        let events = [upsert("k", pair(1, 1), &[]), upsert("k", seq, &[])];
        let error = columns.batch(&spec, &events).unwrap_err();
        assert!(matches!(error, CdcError::NullSequence { count: 1, rows: 2, row: 1, .. }), "{error:?}");
    }
}

#[test]
fn c31_c33_a_null_key_or_sequence_rejects_the_batch() {
    let columns = Columns::plain();
    let spec = columns.spec(StoredAs::Scd2, None);
    let error = columns.batch(&spec, &[up(1, 1), upsert("k", Value::Null, &[])]).unwrap_err();
    assert!(matches!(error, CdcError::NullSequence { count: 1, rows: 2, row: 1, .. }), "{error:?}");
    let error = columns.batch(&spec, &[upsert(Value::Null, 1, &[]), delete(Value::Null, 2)]).unwrap_err();
    assert!(
        matches!(&error, CdcError::NullKey { column, count: 2, row: 0, .. } if column == "k"),
        "{error:?}"
    );
}

#[test]
fn c34_a_delete_flag_of_null_or_false_means_upsert() {
    let columns = Columns::plain();
    let spec = columns.spec(StoredAs::Scd1, None);
    let events = ["x", "y", "z"].map(|key| upsert(key, 1, &[]));
    let (rows, sequence, _) = columns.source(&events);
    let flags = BooleanArray::from(vec![None, Some(false), Some(true)]);
    let batch = ChangeBatch::new(&spec, &rows, &sequence, Some(&flags)).unwrap();
    let mut store = Store::new(&spec);
    store.apply(&spec, &batch, 0).unwrap();
    assert_eq!((store.target.batch.num_rows(), store.side.batch.num_rows()), (2, 1));
    let all = ChangeBatch::new(&spec, &rows, &sequence, None).unwrap();
    assert_eq!(Store::new(&spec).apply(&spec, &all, 0).unwrap().counts.upserted, 3);
}

#[test]
fn a08_the_values_of_a_delete_are_ignored() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let mut flow = Flow::new(Columns::plain(), stored_as, None);
        let with_data = Event { op: strandline_testkit::reference::Op::Delete, ..up_ab(2, 7, 7) };
        flow.apply(&[with_data]);
        assert!(flow.side().iter().all(|row| row["a"].is_null() && row["b"].is_null()));
        let done = flow.apply(&[down(2)]);
        assert!(done.side.is_empty() && done.target.is_empty(), "the same delete without data");
    }
}

#[test]
fn c35_sequence_and_delete_may_come_from_columns_that_are_dropped() {
    let source = RecordBatch::try_from_iter([
        ("k", Arc::new(StringArray::from(vec!["k", "l"])) as ArrayRef),
        ("a", Arc::new(Int64Array::from(vec![1, 2]))),
        ("seq", Arc::new(Int64Array::from(vec![4, 5]))),
        ("gone", Arc::new(BooleanArray::from(vec![false, true]))),
    ])
    .unwrap();
    let columns = ColumnSelection::Except(vec!["seq".to_owned(), "gone".to_owned()]);
    let spec = CdcSpec::new(&CdcOptions { columns, ..keyed() }, &source.schema(), &DataType::Int64).unwrap();
    let flags = source.column(3).as_any().downcast_ref::<BooleanArray>();
    let batch = ChangeBatch::new(&spec, &source, source.column(2), flags).unwrap();
    let mut store = Store::new(&spec);
    store.apply(&spec, &batch, 0).unwrap();
    let names: Vec<String> = spec.target_schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["k", "a", "__SEQUENCE_AT"]);
    assert_eq!(store.target.batch.num_rows(), 1);
}

#[test]
fn a28_the_sequence_may_live_in_a_kept_column() {
    let columns = Columns::plain();
    let options = CdcOptions {
        sequence_column: strandline_cdc_core::SequenceColumn::KeptColumn("b".to_owned()),
        ..keyed()
    };
    let spec = spec(&options).unwrap();
    assert_eq!(spec.target_schema().fields().len(), 3);
    let mut store = Store::new(&spec);
    for (seq, a) in [(5, 1), (9, 2), (7, 3), (9, 1)] {
        let event = up_ab(seq, a, seq);
        store.apply(&spec, &columns.batch(&spec, &[event]).unwrap(), 3).unwrap();
    }
    let rows = columns.rows(&store.target.batch);
    assert_eq!((rows.len(), &rows[0]["a"], &rows[0]["b"]), (1, &2.into(), &9.into()));
}

#[test]
fn counts_say_what_happened() {
    let mut flow = scd2();
    let done = flow.apply(&[up(1, 1), up(5, 2), down(7), up(3, 9), up(3, 8)]);
    assert_eq!((done.counts.events, done.counts.upserted, done.counts.deleted), (5, 3, 1));
    assert_eq!((done.counts.tied, done.counts.late), (1, 0));
    let done = flow.apply(&[up(2, 2), down(8)]);
    assert_eq!((done.counts.upserted, done.counts.deleted, done.counts.late), (2, 0, 1));
}

#[test]
fn an_empty_batch_reads_and_changes_nothing() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let mut flow = Flow::new(Columns::plain(), stored_as, None);
        flow.apply(&[up(1, 1)]);
        let done = flow.apply(&[]);
        assert!(done.target.is_empty() && done.side.is_empty());
        assert_eq!(done.counts, strandline_cdc_core::Counts::default());
    }
}

#[test]
fn a_struct_sequence_that_is_null_as_a_whole_is_null_in_its_fields() {
    let fields: Fields = vec![Field::new("ts", DataType::Int64, true)].into();
    let parts: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let nulls = arrow_buffer::NullBuffer::from(vec![true, false]);
    let sequence: ArrayRef = Arc::new(StructArray::new(fields, vec![parts], Some(nulls)));
    let columns = Columns { sequence: Codec::Plain(sequence.data_type().clone()), ..Columns::plain() };
    let (rows, _, _) = columns.source(&[upsert("k", Value::Null, &[]), upsert("k", Value::Null, &[])]);
    let error = ChangeBatch::new(&columns.spec(StoredAs::Scd1, None), &rows, &sequence, None).unwrap_err();
    assert!(matches!(error, CdcError::NullSequence { row: 1, .. }));
    assert_eq!(sequence.null_count(), 1);
}

fn keyed() -> CdcOptions {
    CdcOptions { keys: vec!["k".to_owned()], ..CdcOptions::default() }
}

fn spec(options: &CdcOptions) -> Result<CdcSpec, CdcError> {
    CdcSpec::new(options, &Columns::plain().schema(), &DataType::Int64)
}
