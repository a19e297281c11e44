//! Which targets does a source not fit?

use arrow_schema::{DataType, Field, Schema};
use strandline_cdc_core::{CdcError, CdcOptions, CdcSpec, ColumnSelection, StoredAs};

fn schema(columns: &[(&str, DataType)]) -> Schema {
    Schema::new(columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect::<Vec<_>>())
}

fn spec(stored_as: StoredAs) -> CdcSpec {
    let options = CdcOptions { keys: vec!["k".to_owned()], stored_as, ..CdcOptions::default() };
    let source = schema(&[("k", DataType::Utf8), ("a", DataType::Int64)]);
    CdcSpec::new(&options, &source, &DataType::Int64).unwrap()
}

#[test]
fn a20_a_target_without_further_columns_changes_nothing() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let spec = spec(stored_as);
        assert_eq!(spec.with_target_columns(spec.target_schema()), Ok(spec.clone()));
        assert_eq!(spec.with_target_columns(&schema(&[("k", DataType::Utf8)])), Ok(spec.clone()));
        assert_eq!(spec.absent_names(), Vec::<&str>::new());
    }
}

#[test]
fn a20_absent_columns_follow_in_the_order_of_the_target() {
    let target = schema(&[
        ("z", DataType::Boolean),
        ("k", DataType::Utf8),
        ("b", DataType::Utf8),
        ("__SEQUENCE_AT", DataType::Int64),
    ]);
    let spec = spec(StoredAs::Scd1).with_target_columns(&target).unwrap();
    assert_eq!(spec.absent_names(), ["z", "b"]);
    let names = |schema: &Schema| schema.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    assert_eq!(names(spec.target_schema()), ["k", "a", "z", "b", "__SEQUENCE_AT"]);
    let side = ["k", "a", "z", "b", "__SEQUENCE_AT", "__strandline_kind", "__strandline_authored"];
    assert_eq!(names(spec.side_schema()), side);
    assert_eq!(spec.with_target_columns(spec.target_schema()), Ok(spec.clone()), "again");
}

#[test]
fn a20_a_column_of_another_type_is_refused_by_name() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let error = spec(stored_as).with_target_columns(&schema(&[("a", DataType::Utf8)])).unwrap_err();
        let expected = CdcError::TargetColumnType {
            column: "a".to_owned(),
            found: DataType::Int64,
            expected: DataType::Utf8,
        };
        assert_eq!(error, expected);
        let text = error.to_string();
        assert!(["`a`", "Int64", "Utf8", "full refresh"].iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn a19_a20_an_absent_column_is_tracked_unless_a_list_leaves_it_out() {
    let target = schema(&[("k", DataType::Utf8), ("a", DataType::Int64), ("b", DataType::Utf8)]);
    let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
    for (track_history, tracked) in [
        (ColumnSelection::All, &["a", "b"][..]),
        (ColumnSelection::Except(vec![]), &["a", "b"]),
        (ColumnSelection::Except(names(&["a"])), &["b"]),
        (ColumnSelection::Only(names(&["a"])), &["a"]),
    ] {
        let options = CdcOptions {
            keys: names(&["k"]),
            stored_as: StoredAs::Scd2,
            track_history,
            ..CdcOptions::default()
        };
        let source = schema(&[("k", DataType::Utf8), ("a", DataType::Int64)]);
        let spec = CdcSpec::new(&options, &source, &DataType::Int64).unwrap();
        assert_eq!(spec.with_target_columns(&target).unwrap().tracked_names(), tracked, "{options:?}");
    }
}
