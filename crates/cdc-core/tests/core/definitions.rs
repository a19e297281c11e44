//! Which definitions and batches are refused, by which error?

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema};
use strandline_cdc_core::{
    CdcError, CdcOptions, CdcSpec, ChangeBatch, ColumnSelection, Prior, Rows, SequenceColumn, StoredAs,
};

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

fn only(list: &[&str]) -> ColumnSelection {
    ColumnSelection::Only(names(list))
}

fn except(list: &[&str]) -> ColumnSelection {
    ColumnSelection::Except(names(list))
}

fn schema(columns: &[&str]) -> Schema {
    Schema::new(columns.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect::<Vec<_>>())
}

fn keyed(list: &[&str]) -> CdcOptions {
    CdcOptions { keys: names(list), ..CdcOptions::default() }
}

fn spec(options: &CdcOptions, columns: &[&str]) -> Result<CdcSpec, CdcError> {
    CdcSpec::new(options, &schema(columns), &DataType::Int64)
}

fn map_type() -> DataType {
    let entry = vec![Field::new("key", DataType::Int64, false), Field::new("value", DataType::Int64, true)];
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry.into()), false)), false)
}

#[test]
fn c32_a_sequence_without_an_order_is_refused() {
    let within: Fields =
        vec![Field::new("x", DataType::Int64, true), Field::new("m", map_type(), true)].into();
    let list = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
    let bad = [
        map_type(),
        DataType::Struct(within),
        DataType::Struct(Fields::empty()),
        list,
        DataType::Interval(IntervalUnit::DayTime),
        DataType::Null,
    ];
    for data_type in bad {
        let error = CdcSpec::new(&keyed(&["k"]), &schema(&["k"]), &data_type).unwrap_err();
        assert_eq!(error, CdcError::NonOrderableSequence { data_type });
    }
    let within: Fields =
        vec![Field::new("x", DataType::Int64, true), Field::new("y", DataType::Utf8, true)].into();
    CdcSpec::new(&keyed(&["k"]), &schema(&["k"]), &DataType::Struct(within)).unwrap();
}

#[test]
fn a_key_without_equality_is_refused() {
    let source = Schema::new(vec![Field::new("k", map_type(), true)]);
    let error = CdcSpec::new(&keyed(&["k"]), &source, &DataType::Int64).unwrap_err();
    assert!(matches!(error, CdcError::UnhashableKey { key, .. } if key == "k"));
}

#[test]
fn c36_include_and_exclude_lists_select_the_same_columns_in_source_order() {
    let columns = ["k", "a", "b", "c"];
    let kept = |columns: ColumnSelection| {
        let spec = spec(&CdcOptions { columns, ..keyed(&["k"]) }, &["k", "a", "b", "c"]).unwrap();
        spec.kept_schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
    };
    assert_eq!(kept(only(&["b", "k"])), ["k", "b"]);
    assert_eq!(kept(except(&["c", "a"])), ["k", "b"]);
    assert_eq!(kept(ColumnSelection::All), columns);
}

#[test]
fn c37_a_key_that_the_selection_removes_is_refused() {
    for columns in [only(&["a"]), except(&["k"])] {
        let error = spec(&CdcOptions { columns, ..keyed(&["k"]) }, &["k", "a"]).unwrap_err();
        assert_eq!(error, CdcError::KeyNotSelected { key: "k".to_owned() });
    }
}

#[test]
fn c38_an_unknown_column_in_any_list_is_named_with_those_that_exist() {
    let scd2 = CdcOptions { stored_as: StoredAs::Scd2, ..keyed(&["k"]) };
    let bad = [
        keyed(&["z"]),
        CdcOptions { columns: only(&["k", "z"]), ..keyed(&["k"]) },
        CdcOptions { columns: except(&["z"]), ..keyed(&["k"]) },
        CdcOptions { track_history: only(&["z"]), ..scd2.clone() },
        CdcOptions { track_history: except(&["z"]), ..scd2 },
        CdcOptions { sequence_column: SequenceColumn::KeptColumn("z".to_owned()), ..keyed(&["k"]) },
    ];
    for options in bad {
        let error = spec(&options, &["k", "a"]).unwrap_err();
        let CdcError::UnknownColumn { column, available, .. } = error else { panic!("{error:?}") };
        assert_eq!((column.as_str(), available), ("z", names(&["k", "a"])));
    }
}

#[test]
fn c38_tracking_a_column_that_is_not_kept_is_an_unknown_column() {
    let options = CdcOptions {
        stored_as: StoredAs::Scd2,
        columns: except(&["b"]),
        track_history: only(&["b"]),
        ..keyed(&["k"])
    };
    assert!(
        matches!(spec(&options, &["k", "a", "b"]), Err(CdcError::UnknownColumn { column, .. }) if column == "b")
    );
}

#[test]
fn c39_a_dotted_name_is_a_name_and_nothing_else() {
    let spec = spec(&keyed(&["a.b"]), &["a.b", "c"]).unwrap();
    assert_eq!(spec.key_names(), ["a.b"]);
}

#[test]
fn c40_reserved_names_are_refused() {
    let reserved = [
        "__START_AT",
        "__END_AT",
        "__SYSTEM_START_AT",
        "__SYSTEM_END_AT",
        "__SEQUENCE_AT",
        "__strandline_kind",
        "__strandline_anything",
    ];
    for name in reserved {
        let error = spec(&keyed(&["k"]), &["k", name]).unwrap_err();
        assert_eq!(error, CdcError::ReservedColumn { column: name.to_owned() });
    }
}

#[test]
fn keys_are_needed_and_listed_once() {
    assert_eq!(spec(&keyed(&[]), &["k"]), Err(CdcError::EmptyKeys));
    let twice = Err(CdcError::DuplicateColumn { clause: "KEYS", column: "k".to_owned() });
    assert_eq!(spec(&keyed(&["k", "k"]), &["k"]), twice);
    assert_eq!(spec(&keyed(&["k", "K"]), &["k"]), twice);
}

#[test]
fn a_source_with_two_columns_of_one_name_is_refused() {
    let error = spec(&keyed(&["k"]), &["k", "a", "a"]).unwrap_err();
    assert_eq!(error, CdcError::AmbiguousSource { column: "a".to_owned() });
}

#[test]
fn empty_lists_are_refused() {
    let error = spec(&CdcOptions { columns: only(&[]), ..keyed(&["k"]) }, &["k"]).unwrap_err();
    assert!(matches!(error, CdcError::EmptyColumnList { .. }));
    let options = CdcOptions { stored_as: StoredAs::Scd2, track_history: only(&[]), ..keyed(&["k"]) };
    assert!(matches!(spec(&options, &["k", "a"]), Err(CdcError::EmptyColumnList { .. })));
}

#[test]
fn tracked_columns_belong_to_scd2_and_are_no_keys() {
    let options = CdcOptions { track_history: only(&["a"]), ..keyed(&["k"]) };
    let error = spec(&options, &["k", "a"]).unwrap_err();
    assert_eq!(error, CdcError::TrackHistoryRequiresScd2 { stored_as: StoredAs::Scd1 });
    for track_history in [only(&["k"]), except(&["k"])] {
        let options = CdcOptions { stored_as: StoredAs::Scd2, track_history, ..keyed(&["k"]) };
        assert_eq!(spec(&options, &["k", "a"]), Err(CdcError::TrackedKey { column: "k".to_owned() }));
    }
}

#[test]
fn c21_include_and_except_track_the_same_columns() {
    let tracked = |track_history: ColumnSelection| {
        let options = CdcOptions { stored_as: StoredAs::Scd2, track_history, ..keyed(&["k"]) };
        spec(&options, &["k", "a", "b"]).unwrap()
    };
    // They part only when a column comes that neither names.
    let (listed, rest) = (tracked(only(&["a"])), tracked(except(&["b"])));
    assert_eq!(listed.tracked_names(), rest.tracked_names());
    assert_eq!(tracked(ColumnSelection::All).tracked_names(), ["a", "b"]);
    assert_eq!(tracked(except(&["a", "b"])).tracked_names(), [""; 0]);
}

#[test]
fn a33_names_resolve_exactly_then_without_case_where_that_is_unambiguous() {
    assert_eq!(spec(&keyed(&["ID"]), &["id", "a"]).unwrap().key_names(), ["id"]);
    assert_eq!(spec(&keyed(&["Id"]), &["id", "Id"]).unwrap().key_names(), ["Id"]);
    let error = spec(&keyed(&["ID"]), &["id", "Id"]).unwrap_err();
    let CdcError::AmbiguousColumn { column, candidates, .. } = error else { panic!("{error:?}") };
    assert_eq!((column.as_str(), candidates), ("ID", names(&["id", "Id"])));
}

#[test]
fn a_sequence_column_of_another_type_is_refused() {
    let source =
        Schema::new(vec![Field::new("k", DataType::Int64, true), Field::new("s", DataType::Utf8, true)]);
    let options = CdcOptions { sequence_column: SequenceColumn::KeptColumn("s".to_owned()), ..keyed(&["k"]) };
    let error = CdcSpec::new(&options, &source, &DataType::Int64).unwrap_err();
    assert!(matches!(error, CdcError::SequenceColumnType { column, .. } if column == "s"));
}

#[test]
fn schemas_follow_from_the_shape() {
    let columns = |schema: &Schema| schema.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let scd1 = spec(&keyed(&["k"]), &["a", "k"]).unwrap();
    assert_eq!(columns(scd1.target_schema()), ["a", "k", "__SEQUENCE_AT"]);
    assert_eq!(columns(scd1.side_schema()), ["a", "k", "__SEQUENCE_AT", "__strandline_kind"]);
    let scd2 = spec(&CdcOptions { stored_as: StoredAs::Scd2, ..keyed(&["k"]) }, &["a", "k"]).unwrap();
    assert_eq!(columns(scd2.target_schema()), ["a", "k", "__START_AT", "__END_AT"]);
    assert_eq!(scd2.sequence_type(), &DataType::Int64);
}

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

#[test]
fn a_batch_of_another_schema_is_refused() {
    let spec = spec(&keyed(&["k"]), &["k", "a"]).unwrap();
    let source = RecordBatch::try_from_iter([("k", ints(&[1])), ("a", ints(&[1]))]).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    let other = RecordBatch::try_from_iter([("k", ints(&[1])), ("a", Arc::clone(&texts))]).unwrap();
    let narrow = RecordBatch::try_from_iter([("k", ints(&[1]))]).unwrap();
    let flags = arrow_array::BooleanArray::from(vec![true, false]);
    let refused = [
        ChangeBatch::new(&spec, &source, &texts, None),
        ChangeBatch::new(&spec, &source, &ints(&[1, 2]), None),
        ChangeBatch::new(&spec, &source, &ints(&[1]), Some(&flags)),
        ChangeBatch::new(&spec, &other, &ints(&[1]), None),
        ChangeBatch::new(&spec, &narrow, &ints(&[1]), None),
    ];
    for outcome in refused {
        assert!(matches!(outcome, Err(CdcError::SchemaMismatch { .. })), "{outcome:?}");
    }
    ChangeBatch::new(&spec, &source, &ints(&[1]), None).unwrap();
}

#[test]
fn a_source_may_have_more_columns_in_any_order() {
    let spec = spec(&keyed(&["k"]), &["k", "a"]).unwrap();
    let source =
        RecordBatch::try_from_iter([("z", ints(&[9])), ("a", ints(&[1])), ("k", ints(&[1]))]).unwrap();
    assert_eq!(ChangeBatch::new(&spec, &source, &ints(&[1]), None).unwrap().len(), 1);
}

#[test]
fn prior_rows_of_another_schema_are_refused() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let spec = spec(&CdcOptions { stored_as, ..keyed(&["k"]) }, &["k", "a"]).unwrap();
        let source = RecordBatch::try_from_iter([("k", ints(&[1])), ("a", ints(&[1]))]).unwrap();
        let batch = ChangeBatch::new(&spec, &source, &ints(&[1]), None).unwrap();
        let rows = |schema: &Arc<Schema>| Rows::empty(Arc::clone(schema));
        let good = || (rows(spec.target_schema()), rows(spec.side_schema()));
        let bad = || Rows::empty(Arc::new(schema(&["k", "a"])));
        let (visible, hidden) = good();
        for (visible, hidden) in [(bad(), hidden), (visible, bad())] {
            let prior = Prior { visible, hidden, ..Prior::empty(&spec) };
            let outcome = spec.reconcile(&prior, &batch);
            assert!(matches!(outcome, Err(CdcError::SchemaMismatch { .. })), "{outcome:?}");
        }
        let (visible, hidden) = good();
        drop(spec.reconcile(&Prior { visible, hidden, ..Prior::empty(&spec) }, &batch).unwrap());
    }
}

#[test]
fn a_stored_column_of_another_type_is_refused() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let spec = spec(&CdcOptions { stored_as, ..keyed(&["k"]) }, &["k", "a"]).unwrap();
        let source = RecordBatch::try_from_iter([("k", ints(&[1])), ("a", ints(&[1]))]).unwrap();
        let batch = ChangeBatch::new(&spec, &source, &ints(&[1]), None).unwrap();
        let mut fields: Vec<_> = spec.target_schema().fields().iter().map(|f| f.as_ref().clone()).collect();
        fields[1] = Field::new("a", DataType::Utf8, true);
        let prior = Prior {
            visible: Rows::empty(Arc::new(Schema::new(fields))),
            hidden: Rows::empty(Arc::clone(spec.side_schema())),
            ..Prior::empty(&spec)
        };
        let outcome = spec.reconcile(&prior, &batch);
        assert!(matches!(outcome, Err(CdcError::SchemaMismatch { .. })), "{outcome:?}");
    }
}
