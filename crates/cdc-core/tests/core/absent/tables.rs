//! The rules by example.

use strandline_cdc_core::{CdcError, CdcOptions, CdcSpec, ColumnSelection, OnTie, StoredAs};
use strandline_testkit::{
    reference::{Row, Value},
    scenario::Type,
};

use super::{SHAPES, Sent, apply, flow, lacking, sent};
use crate::{
    convert::{Codec, data_type},
    flow::{Flow, delete, upsert},
};

fn row(seq: i64, a: i64, b: i64) -> Sent {
    sent(upsert("k", seq, &[("a", a.into()), ("b", b.into()), ("c", 0.into())]), SHAPES[0])
}

fn without_b(seq: i64, a: i64) -> Sent {
    sent(upsert("k", seq, &[("a", a.into()), ("c", 0.into())]), SHAPES[1])
}

fn gone(seq: i64) -> Sent {
    sent(delete("k", seq), SHAPES[1])
}

fn shown(flow: &Flow) -> Vec<[Value; 3]> {
    let parts = |row: Row| ["a", "b", "__SEQUENCE_AT"].map(|name| row[name].clone());
    flow.target().into_iter().map(parts).collect()
}

fn after(batches: &[&[Sent]]) -> Flow {
    let mut flow = flow();
    for batch in batches {
        apply(&mut flow, batch);
    }
    flow
}

fn is(a: i64, b: impl Into<Value>, seq: i64) -> Vec<[Value; 3]> {
    vec![[a.into(), b.into(), seq.into()]]
}

#[test]
fn a20_an_update_keeps_the_column_and_a_new_row_has_null() {
    assert_eq!(shown(&after(&[&[row(1, 1, 7)], &[without_b(2, 5)]])), is(5, 7, 2));
    assert_eq!(shown(&after(&[&[without_b(2, 5)]])), is(5, Value::Null, 2));
}

#[test]
fn a20_a_late_author_gives_what_nobody_authored_since() {
    assert_eq!(shown(&after(&[&[without_b(3, 5)], &[row(1, 1, 7)]])), is(5, 7, 3));
    assert_eq!(shown(&after(&[&[row(1, 1, 7)], &[without_b(3, 5)], &[row(2, 2, 8)]])), is(5, 8, 3));
}

#[test]
fn a20_a_delete_resets_the_column_whenever_it_comes() {
    assert_eq!(shown(&after(&[&[row(1, 1, 7)], &[gone(2)], &[without_b(3, 5)]])), is(5, Value::Null, 3));
    let late = after(&[&[row(1, 1, 7)], &[without_b(3, 5)], &[gone(2)]]);
    assert_eq!(shown(&late), is(5, Value::Null, 3));
    let side = late.side();
    assert_eq!(side.len(), 2, "the delete stays known beside the row: {side:?}");
    let mut flow = late;
    apply(&mut flow, &[row(1, 1, 9)]);
    assert_eq!(shown(&flow), is(5, Value::Null, 3), "or else an older value would come back");
}

#[test]
fn a20_the_side_rows_go_when_a_newer_whole_row_comes() {
    let mut flow = after(&[&[row(1, 1, 7)], &[without_b(3, 5)]]);
    assert_eq!(flow.side().len(), 2);
    apply(&mut flow, &[row(4, 6, 9)]);
    assert_eq!((shown(&flow), flow.side()), (is(6, 9, 4), vec![]));
}

#[test]
fn a20_a_spec_without_absent_columns_reads_whole_rows_only_for_keys_with_author_rows() {
    let flow = after(&[&[row(1, 1, 7)], &[without_b(3, 5)]]);
    let spec = lacking(&flow.columns, &[]);
    let batch = flow.columns.batch(&spec, &[row(2, 2, 8).event]).unwrap();
    assert!(spec.read_plan(&batch).unwrap().visible.columns.is_some());
    let narrow = lacking(&flow.columns, SHAPES[1]);
    assert!(narrow.read_plan(&batch).unwrap().visible.columns.is_none());
}

#[test]
fn a2_an_author_beats_a_non_author_and_of_two_the_larger_value_wins() {
    for (batch, expected) in
        [([row(2, 1, 7), without_b(2, 5)], is(5, 7, 2)), ([row(2, 9, 7), without_b(2, 5)], is(9, 7, 2))]
    {
        assert_eq!(shown(&after(&[&batch])), expected);
        assert_eq!(shown(&after(&[&batch[1..], &batch[..1]])), expected);
    }
}

#[test]
fn a27_a_value_by_hand_in_a_column_that_the_newest_event_authored_stays() {
    let mut flow = after(&[&[row(1, 1, 7)], &[without_b(3, 5)]]);
    let written = after(&[&[row(3, 4, 7)]]).store.target;
    flow.store.target = written;
    apply(&mut flow, &[row(2, 2, 8)]);
    assert_eq!(shown(&flow), is(4, 8, 3));
}

#[test]
fn a27_author_rows_of_a_row_deleted_by_hand_are_no_events() {
    let mut flow = after(&[&[row(1, 1, 7)], &[without_b(3, 5)]]);
    flow.store.target = crate::store::Table::new(flow.spec.target_schema());
    apply(&mut flow, &[without_b(2, 4)]);
    assert_eq!(shown(&flow), is(4, Value::Null, 2));
    assert_eq!(flow.side().len(), 1);
}

#[test]
fn a20_columns_of_any_type_are_kept_and_come_back_from_the_side_rows() {
    let point = |x: i64| Value::fields([("x", Value::Int(x)), ("y", Value::Null)]);
    let list = |items: &[&str]| Value::List(items.iter().map(|item| Value::text(*item)).collect());
    let map = |key: &str, value: f64| Value::Map(vec![(key.into(), value.into())]);
    let mut columns = crate::flow::Columns::plain();
    let kinds = [
        Type::Struct(vec![("x".to_owned(), Type::Int), ("y".to_owned(), Type::Text)]),
        Type::List(Box::new(Type::Text)),
        Type::Map(Box::new(Type::Text), Box::new(Type::Float)),
    ];
    let named = ["a", "b", "c"].into_iter().zip(kinds);
    columns.payload = named.map(|(n, kind)| (n.to_owned(), Codec::Plain(data_type(&kind)))).collect();
    let whole = |seq: i64, n: i64, text: &str| {
        let values = [("a", point(n)), ("b", list(&[text, "z"])), ("c", map(text, 0.5))];
        sent(upsert("k", seq, &values), SHAPES[0])
    };
    let narrow =
        |seq: i64, n: i64| sent(upsert("k", seq, &[("a", point(n)), ("c", map("n", 1.0))]), SHAPES[1]);
    let history = [whole(1, 1, "old"), narrow(3, 5), narrow(3, 4), whole(2, 2, "late"), whole(3, 9, "tie")];
    for batches in strandline_testkit::generate::every_arrival(&history) {
        let mut flow = Flow::new(columns.clone(), StoredAs::Scd1, None);
        let mut known = Vec::new();
        for batch in batches {
            apply(&mut flow, &batch);
            known.extend(batch);
            super::check(&flow, &known);
        }
        assert!(apply(&mut flow, &known));
    }
}

#[test]
fn a_tie_in_a_column_is_refused_under_on_tie_error() {
    let flow = after(&[&[row(2, 1, 7)]]);
    let options = CdcOptions {
        keys: vec!["k".to_owned()],
        columns: ColumnSelection::Except(vec!["b".to_owned()]),
        on_tie: OnTie::Error,
        ..CdcOptions::default()
    };
    let source = flow.columns.schema();
    let sequence = flow.columns.sequence.data_type();
    let spec = CdcSpec::new(&options, &source, sequence).unwrap();
    let spec = spec.with_target_columns(&flow.store.target.batch.schema()).unwrap();
    for (a, refused) in [(1, false), (5, true)] {
        let mut store = flow.store.clone();
        store.side.widen(spec.side_schema());
        let batch = flow.columns.batch(&spec, &[without_b(2, a).event]).unwrap();
        let done = store.apply(&spec, &batch, 3);
        assert_eq!(matches!(done, Err(CdcError::Tie { count: 1, .. })), refused, "{done:?}");
    }
}
