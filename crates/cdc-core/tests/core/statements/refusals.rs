//! Definitions and batches that mean nothing.

use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use strandline_cdc_core::{
    CdcError, CdcOptions, CdcSpec, ColumnSelection, SequenceTypes, SnapshotRules, StoredAs, SystemTime,
};
use strandline_testkit::{
    generate::{Authoring, Domain, Image},
    reference::{Event, Op, Value},
};

use crate::{flow::upsert, shapes::Shape, store::Table};

fn define(options: CdcOptions, system: Option<DataType>) -> Result<CdcSpec, CdcError> {
    let names = DataType::new_list(DataType::Utf8, true);
    let columns = [("k", DataType::Utf8), ("a", DataType::Int64), ("b", DataType::Int64), ("mask", names)];
    let fields = columns.map(|(name, kind)| Field::new(name, kind, true));
    let options = CdcOptions { keys: vec!["k".to_owned()], ..options };
    let sequences = SequenceTypes { sequence: DataType::Int64, system };
    CdcSpec::new(&options, &Schema::new(fields.to_vec()), sequences)
}

fn condition(result: Result<CdcSpec, CdcError>) -> &'static str {
    match result {
        Err(CdcError::ConflictingClauses { condition, .. }) => condition,
        other => panic!("{other:?}"),
    }
}

fn ignoring(selection: ColumnSelection) -> CdcOptions {
    CdcOptions { ignore_null_updates: Some(selection), ..CdcOptions::default() }
}

fn only(names: &[&str]) -> ColumnSelection {
    ColumnSelection::Only(names.iter().map(|&name| name.to_owned()).collect())
}

fn except(names: &[&str]) -> ColumnSelection {
    ColumnSelection::Except(names.iter().map(|&name| name.to_owned()).collect())
}

#[test]
fn c24_a_truncate_is_refused_but_in_scd1() {
    let truncate = Event { key: vec![], op: Op::Truncate, ..upsert("k", 5, &[]) };
    for (stored_as, systems) in [(StoredAs::Scd2, None), (StoredAs::Bitemporal, Some(4))] {
        let flow = Shape::new(stored_as, &Domain { systems, ..Domain::default() }, None);
        let event = Event { sys: systems.map(Value::Int), ..truncate.clone() };
        let error = flow.batch(&[event]).unwrap_err();
        let expected = "AUTOCDC_TRUNCATE_REQUIRES_SCD1";
        assert!(
            matches!(&error, CdcError::EventOfOtherShape { condition, row: 0, .. } if *condition == expected),
            "{error}"
        );
    }
}

#[test]
fn a14_a_retraction_is_refused_but_in_a_bitemporal_target() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let flow = Shape::new(stored_as, &Domain::default(), None);
        let error = flow.batch(&[Event { op: Op::Retract, ..upsert("k", 5, &[]) }]).unwrap_err();
        let expected = "AUTOCDC_RETRACT_REQUIRES_BITEMPORAL";
        assert!(
            matches!(&error, CdcError::EventOfOtherShape { condition, .. } if *condition == expected),
            "{error}"
        );
    }
}

#[test]
fn c44_an_empty_include_list_is_refused_and_an_empty_except_list_means_all() {
    let error = define(ignoring(only(&[])), None).unwrap_err();
    assert!(error.to_string().contains("AUTOCDC_IGNORE_NULL_EMPTY_COLUMN_LIST: IGNORE NULL UPDATES ON"));
    let all = define(ignoring(ColumnSelection::All), None).unwrap();
    assert_eq!(define(ignoring(except(&[])), None).unwrap(), all);
}

#[test]
fn c45_ignore_null_on_a_key_is_refused() {
    for selection in [only(&["a", "k"]), except(&["k"])] {
        let error = define(ignoring(selection), None).unwrap_err();
        assert!(matches!(&error, CdcError::PartialKey { column, .. } if column == "k"), "{error}");
    }
    super::hold(&["part-20"]);
}

#[test]
fn c38_ignore_null_on_an_unknown_column_names_it() {
    for selection in [only(&["nope"]), except(&["nope"])] {
        let error = define(ignoring(selection), None).unwrap_err();
        assert!(matches!(&error, CdcError::UnknownColumn { column, .. } if column == "nope"), "{error}");
    }
}

fn masked(options: CdcOptions) -> CdcOptions {
    CdcOptions { columns_to_update: Some("mask".to_owned()), ..options }
}

#[test]
fn c53_columns_to_update_excludes_ignore_null_and_bitemporal() {
    let expected = "AUTOCDC_COLUMNS_TO_UPDATE_CONFLICT";
    for selection in [ColumnSelection::All, only(&["a"]), except(&["a"])] {
        assert_eq!(condition(define(masked(ignoring(selection)), None)), expected);
    }
    let bitemporal = CdcOptions { stored_as: StoredAs::Bitemporal, ..CdcOptions::default() };
    assert_eq!(condition(define(masked(bitemporal), Some(DataType::Int64))), expected);
    super::hold(&["part-19"]);
}

#[test]
fn c54_the_mask_must_be_a_list_of_names() {
    let options = CdcOptions { columns_to_update: Some("a".to_owned()), ..CdcOptions::default() };
    let error = define(options, None).unwrap_err();
    assert!(matches!(&error, CdcError::ColumnsToUpdateType { column, .. } if column == "a"), "{error}");
}

#[test]
fn c52_the_mask_is_no_column_of_the_target() {
    let spec = define(masked(CdcOptions::default()), None).unwrap();
    assert!(spec.target_schema().field_with_name("mask").is_err());
    assert_eq!(spec.columns_to_update(), Some("mask"));
}

#[test]
fn c69_bitemporal_and_a_system_sequence_need_each_other() {
    let stored = |stored_as| CdcOptions { stored_as, ..CdcOptions::default() };
    assert_eq!(
        condition(define(stored(StoredAs::Bitemporal), None)),
        "AUTOCDC_BITEMPORAL_REQUIRES_SYSTEM_SEQUENCE"
    );
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let expected = "AUTOCDC_SYSTEM_SEQUENCE_REQUIRES_BITEMPORAL";
        assert_eq!(condition(define(stored(stored_as), Some(DataType::Int64))), expected);
        let monotonic = CdcOptions { system_time: SystemTime::Monotonic, ..stored(stored_as) };
        assert_eq!(condition(define(monotonic, None)), expected);
    }
    assert!(define(stored(StoredAs::Bitemporal), Some(DataType::Int64)).is_ok());
}

#[test]
fn a24_bitemporal_tracks_every_column() {
    let options =
        CdcOptions { stored_as: StoredAs::Bitemporal, track_history: only(&["a"]), ..CdcOptions::default() };
    let error = define(options, Some(DataType::Int64)).unwrap_err();
    assert!(matches!(error, CdcError::TrackHistoryRequiresScd2 { .. }), "{error}");
}

#[test]
fn c32_c69_a_system_sequence_without_an_order_is_refused() {
    let options = CdcOptions { stored_as: StoredAs::Bitemporal, ..CdcOptions::default() };
    let error = define(options, Some(DataType::new_list(DataType::Int64, true))).unwrap_err();
    assert!(matches!(error, CdcError::NonOrderableSequence { .. }), "{error}");
}

#[test]
fn c70_a_null_system_sequence_refuses_the_batch() {
    let domain = Domain { authoring: Authoring::Whole, ..Domain::two_clocks() };
    let mut flow = Shape::new(StoredAs::Bitemporal, &domain, None);
    let known = Event { sys: Some(1.into()), ..upsert("k", 5, &[("a", 1.into())]) };
    flow.apply(std::slice::from_ref(&known));
    let error = flow.batch(&[known.clone(), Event { sys: Some(Value::Null), ..known.clone() }]).unwrap_err();
    assert!(
        matches!(&error, CdcError::NullSequence { count: 1, rows: 2, row: 1, .. })
            && error.to_string().contains("NULL_SYSTEM_SEQUENCE"),
        "{error}"
    );
    assert_eq!(flow.target(), flow.expected(&[known]), "nothing of it is applied");
    super::hold(&["bi-07"]);
}

#[test]
fn c57_a_target_with_a_key_twice_takes_no_snapshot() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let mut flow = Shape::new(stored_as, &Domain::default(), None);
        flow.apply(&[upsert("k", 1, &[("a", 1.into()), ("b", 1.into())])]);
        let row = &flow.store.target.batch;
        let twice = concat_batches(&row.schema(), [row, row]).unwrap();
        flow.store.target = Table::of(twice);
        let image = Image { version: 2.into(), rows: vec![] };
        let error = flow.snapshot(&image, &SnapshotRules::default()).unwrap_err();
        let of_target =
            matches!(&error, CdcError::DuplicateKey { what, count: 1, .. } if what.contains("target"));
        assert!(of_target, "{error}");
        assert_eq!(flow.target().len(), 2, "nothing of it is applied");
    }
}
