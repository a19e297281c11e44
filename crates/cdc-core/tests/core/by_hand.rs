//! What becomes of rows that somebody wrote, changed or deleted by hand? And of rows that contradict themselves?

use strandline_cdc_core::{CdcError, StoredAs};
use strandline_testkit::reference::{Event, Row, Value};

use crate::{
    convert::array,
    flow::{Columns, Flow, delete, upsert},
    store::Table,
};

fn up(seq: i64, a: i64) -> Event {
    upsert("k", seq, &[("a", a.into()), ("b", 0.into())])
}

/// Replaces all target rows; the side rows stay.
fn write(flow: &mut Flow, rows: &[Row]) {
    flow.store.target = Table::of(batch_of(flow, rows, flow.spec.target_schema()));
}

fn batch_of(flow: &Flow, rows: &[Row], schema: &arrow_schema::SchemaRef) -> arrow_array::RecordBatch {
    let column = |field: &arrow_schema::FieldRef| {
        let values: Vec<Value> = rows.iter().map(|row| row[field.name()].clone()).collect();
        match flow.columns.keys.iter().chain(&flow.columns.payload).find(|(name, _)| name == field.name()) {
            Some((_, codec)) => codec.array(&values),
            None if field.data_type() == &arrow_schema::DataType::Int8 => {
                arrow_cast::cast(&array(&arrow_schema::DataType::Int64, &values), field.data_type()).unwrap()
            }
            None => flow.columns.sequence.array(&values),
        }
    };
    let columns = schema.fields().iter().map(column).collect();
    arrow_array::RecordBatch::try_new(std::sync::Arc::clone(schema), columns).unwrap()
}

fn row(values: &[(&str, Value)]) -> Row {
    values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn scd1_row(key: &str, a: i64, seq: impl Into<Value>) -> Row {
    row(&[("k", key.into()), ("a", a.into()), ("b", 0.into()), ("__SEQUENCE_AT", seq.into())])
}

fn version(a: i64, start: impl Into<Value>, end: impl Into<Value>) -> Row {
    row(&[
        ("k", "k".into()),
        ("a", a.into()),
        ("b", 0.into()),
        ("__START_AT", start.into()),
        ("__END_AT", end.into()),
    ])
}

fn scd1() -> Flow {
    Flow::new(Columns::plain(), StoredAs::Scd1, None)
}

fn scd2() -> Flow {
    Flow::new(Columns::plain(), StoredAs::Scd2, None)
}

fn refused(flow: &mut Flow, events: &[Event]) -> bool {
    let batch = flow.columns.batch(&flow.spec, events).unwrap();
    matches!(flow.store.apply(&flow.spec, &batch, 7), Err(CdcError::InvalidState { .. }))
}

#[test]
fn a27_a_row_without_a_sequence_is_older_than_everything() {
    for event in [up(i64::MIN, 5), delete("k", i64::MIN)] {
        let mut flow = scd1();
        write(&mut flow, &[scd1_row("k", 1, Value::Null), scd1_row("l", 2, Value::Null)]);
        let done = flow.apply(std::slice::from_ref(&event));
        assert_eq!(done.counts.late, 0);
        let mut rest = flow.expected_target(&[event]);
        rest.push(scd1_row("l", 2, Value::Null));
        assert_eq!(flow.target(), crate::flow::sorted(rest));
    }
}

#[test]
fn a27_an_scd1_row_stands_at_its_stored_sequence() {
    let mut flow = scd1();
    write(&mut flow, &[scd1_row("k", 1, 10)]);
    assert!(flow.apply(&[up(9, 5)]).target.is_empty());
    flow.apply(&[up(11, 6)]);
    assert_eq!(flow.target(), [scd1_row("k", 6, 11)]);
}

#[test]
fn a27_an_older_event_brings_a_deleted_scd1_row_back() {
    let mut flow = scd1();
    flow.apply(&[up(10, 1)]);
    write(&mut flow, &[]);
    flow.apply(&[up(5, 2)]);
    assert_eq!(flow.target(), [scd1_row("k", 2, 5)]);
}

#[test]
fn a27_a_row_by_hand_beside_a_tombstone_gives_way_to_what_is_newer_than_both() {
    let mut flow = scd1();
    flow.apply(&[delete("k", 10)]);
    write(&mut flow, &[scd1_row("k", 1, Value::Null)]);
    assert!(flow.apply(&[up(9, 2)]).target.is_empty(), "the tombstone defeats it");
    flow.apply(&[up(11, 3)]);
    assert_eq!((flow.target(), flow.side().len()), (vec![scd1_row("k", 3, 11)], 0));
}

#[test]
fn a27_a_version_by_hand_is_an_upsert_at_its_start() {
    let mut flow = scd2();
    write(&mut flow, &[version(1, 5, 10), version(2, 10, Value::Null)]);
    flow.apply(&[up(7, 3)]);
    assert_eq!(flow.target(), [version(2, 10, Value::Null), version(1, 5, 7), version(3, 7, 10)]);
}

#[test]
fn a27_a_changed_end_is_a_delete_there() {
    let mut flow = scd2();
    flow.apply(&[up(5, 1)]);
    write(&mut flow, &[version(1, 5, 8)]);
    flow.apply(&[up(6, 2)]);
    assert_eq!(flow.target(), [version(1, 5, 6), version(2, 6, 8)]);
}

#[test]
fn a27_side_rows_of_a_version_deleted_by_hand_are_no_events() {
    // The run 5, 6, 7 leaves interior rows at 5 and 6, and a tail at 7.
    for (late, expected) in [
        (up(3, 2), vec![version(2, 3, Value::Null)]),
        (up(5, 2), vec![version(2, 5, Value::Null)]),
        (up(6, 2), vec![version(2, 6, Value::Null)]),
        (up(9, 2), vec![version(2, 9, Value::Null)]),
    ] {
        let mut flow = scd2();
        flow.apply(&[up(5, 1), up(6, 1), up(7, 1)]);
        assert_eq!(flow.side().len(), 3);
        write(&mut flow, &[]);
        flow.apply(&[late]);
        assert_eq!(flow.target(), expected);
        // Nor do they come back when a later batch makes a version that spans them.
        flow.apply(&[up(1, 4)]);
        flow.apply(&[up(20, 4)]);
        flow.apply(&[up(2, 4)]);
        assert!(
            flow.side().iter().all(|row| row["a"] == Value::Int(4) || row["a"].is_null()),
            "{:?}",
            flow.side()
        );
        let starts: Vec<Value> = flow.target().iter().map(|row| row["__START_AT"].clone()).collect();
        assert_eq!(starts.len(), 3, "{starts:?}");
    }
}

#[test]
fn versions_that_overlap_are_an_invalid_state() {
    for (at, rows) in [
        (6, [version(1, 5, 10), version(2, 8, Value::Null)]),
        (6, [version(1, 5, Value::Null), version(2, 8, Value::Null)]),
        (1, [version(1, 5, 9), version(2, 5, 12)]),
        (1, [version(1, 5, 5), version(2, 8, Value::Null)]),
        (1, [version(1, 9, 5), version(2, 9, Value::Null)]),
        (1, [version(1, Value::Null, 5), version(2, 5, Value::Null)]),
    ] {
        let mut flow = scd2();
        write(&mut flow, &rows);
        assert!(refused(&mut flow, &[up(at, 7)]), "{rows:?}");
        assert_eq!(flow.target().len(), 2, "nothing changes");
    }
}

#[test]
fn several_rows_or_tombstones_of_a_key_are_an_invalid_state() {
    let mut flow = scd1();
    write(&mut flow, &[scd1_row("k", 1, 1), scd1_row("k", 2, 2)]);
    assert!(refused(&mut flow, &[up(9, 7)]));
    assert!(!refused(&mut flow, &[upsert("other", 9, &[])]), "other keys are not concerned");
}

#[test]
fn a_side_row_of_an_unknown_kind_or_without_a_sequence_is_an_invalid_state() {
    let side = |kind: i64, seq: Value| {
        row(&[
            ("k", "k".into()),
            ("a", Value::Null),
            ("b", Value::Null),
            ("__SEQUENCE_AT", seq),
            ("__strandline_kind", kind.into()),
        ])
    };
    for mut flow in [scd1(), scd2()] {
        for bad in [side(77, 5.into()), side(1, Value::Null)] {
            flow.store.side = Table::of(batch_of(&flow, &[bad], flow.spec.side_schema()));
            assert!(refused(&mut flow, &[up(1, 7)]));
        }
        flow.store.side = Table::of(batch_of(&flow, &[side(1, 5.into())], flow.spec.side_schema()));
        assert!(!refused(&mut flow, &[up(1, 7)]));
    }
}
