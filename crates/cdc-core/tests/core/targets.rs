//! Which flows may share a target, what a target records, and how its columns become wider.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Float32Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
    cast::AsArray,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use strandline_cdc_core::{
    CdcError, CdcOptions, CdcSpec, ChangeBatch, ColumnSelection, Disagreement, Fact, FlowTerms,
    SequenceTypes, StoredAs, Target,
};

use crate::store::Store;

fn schema(columns: &[(&str, DataType)]) -> Schema {
    Schema::new(columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect::<Vec<_>>())
}

fn keyed(keys: &[&str], stored_as: StoredAs) -> CdcOptions {
    let keys = keys.iter().map(|&key| key.to_owned()).collect();
    CdcOptions { keys, stored_as, ..CdcOptions::default() }
}

fn spec(options: &CdcOptions, sequence: &DataType) -> CdcSpec {
    let source = schema(&[
        ("id", DataType::Int64),
        ("ID", DataType::Int64),
        ("b", DataType::Utf8),
        ("a", DataType::Utf8),
    ]);
    let system = (options.stored_as == StoredAs::Bitemporal).then_some(DataType::Int64);
    CdcSpec::new(options, &source, SequenceTypes { sequence: sequence.clone(), system }).unwrap()
}

fn flow(name: &str, options: &CdcOptions) -> FlowTerms {
    FlowTerms {
        name: name.to_owned(),
        spec: spec(options, &DataType::Int64),
        is_snapshot: false,
        has_expectations: false,
        is_continuous: false,
    }
}

fn snapshot(name: &str, options: &CdcOptions) -> FlowTerms {
    FlowTerms { is_snapshot: true, ..flow(name, options) }
}

fn conditions(flows: &[FlowTerms]) -> Vec<&'static str> {
    let refused = Target::admit(flows).err().unwrap_or_default();
    refused.iter().map(|problem: &Disagreement| problem.condition).collect()
}

#[test]
fn g09_change_flows_that_agree_share_a_target_whatever_their_columns() {
    let all = keyed(&["id"], StoredAs::Scd2);
    let narrow =
        CdcOptions { columns: ColumnSelection::Only(vec!["id".to_owned(), "a".to_owned()]), ..all.clone() };
    let flows = [flow("seed", &narrow), flow("live", &all)];
    let target = Target::admit(&flows).unwrap();
    let names: Vec<&str> = target.columns().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["id", "a", "ID", "b"], "the columns of both");
    assert_eq!(
        target.spec_of(&flows[0]).unwrap().absent_names(),
        ["ID", "b"],
        "the seed does not author them"
    );
    assert_eq!(target.definition().stored_as, StoredAs::Scd2);
}

#[test]
fn g09_each_disagreement_is_refused_with_both_values() {
    let base = keyed(&["id"], StoredAs::Scd2);
    let tracked = ColumnSelection::Only(vec!["a".to_owned()]);
    let others = [
        (CdcOptions { keys: vec!["ID".to_owned()], ..base.clone() }, "ID Int64"),
        (keyed(&["id", "b"], StoredAs::Scd2), "id Int64, b Utf8"),
        (keyed(&["id"], StoredAs::Scd1), "SCD TYPE 1"),
        (CdcOptions { track_history: tracked, ..base.clone() }, "every kept column and a"),
    ];
    for (other, text) in others {
        let problems = Target::admit(&[flow("one", &base), flow("two", &other)]).unwrap_err();
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|told| told.contains(text) && told.contains("one and two")), "{told:?}");
    }
    let texts = FlowTerms { spec: spec(&base, &DataType::Utf8), ..flow("two", &base) };
    let told = Target::admit(&[flow("one", &base), texts]).unwrap_err();
    assert!(told[0].to_string().contains("type of SEQUENCE BY: Int64 and Utf8"), "{told:?}");
}

#[test]
fn g10_g11_a_hybrid_target_obeys_every_rule() {
    const PREFIX: &str = "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.";
    let base = keyed(&["id"], StoredAs::Scd1);
    assert!(Target::admit(&[flow("live", &base), snapshot("image", &base)]).is_ok());
    let upper = keyed(&["ID"], StoredAs::Scd1);
    assert!(Target::admit(&[flow("live", &base), snapshot("image", &upper)]).is_ok(), "names but for case");
    let check = |flows: &[FlowTerms], condition: &str| {
        let found = conditions(flows);
        assert!(
            found.iter().any(|found| found.strip_prefix(PREFIX) == Some(condition)),
            "{condition}: {found:?}"
        );
    };
    let scd2 = keyed(&["id"], StoredAs::Scd2);
    let ignoring = CdcOptions { ignore_null_updates: Some(ColumnSelection::All), ..base.clone() };
    let two = keyed(&["id", "b"], StoredAs::Scd1);
    let turned = keyed(&["b", "id"], StoredAs::Scd1);
    check(&[flow("live", &scd2), snapshot("image", &scd2)], "INTEROP_REQUIRES_SCD1");
    check(&[flow("live", &ignoring), snapshot("image", &base)], "INTEROP_IGNORE_NULL_UNSUPPORTED");
    check(&[flow("live", &base), snapshot("image", &two)], "INTEROP_KEYS_MISMATCH");
    check(&[flow("live", &turned), snapshot("image", &two)], "INTEROP_KEYS_MISMATCH");
    check(&[snapshot("one", &base), snapshot("two", &base)], "INTEROP_SEVERAL_SNAPSHOT_FLOWS");
    let texts = FlowTerms { spec: spec(&base, &DataType::Utf8), ..snapshot("image", &base) };
    check(&[flow("live", &base), texts], "INTEROP_SEQUENCE_TYPE_MISMATCH");
    let expecting = FlowTerms { has_expectations: true, ..snapshot("image", &base) };
    check(&[flow("live", &base), expecting], "INTEROP_EXPECTATIONS_NOT_SUPPORTED");
    let continuous = FlowTerms { is_continuous: true, ..flow("live", &base) };
    check(&[continuous, snapshot("image", &base)], "INTEROP_CONTINUOUS_NOT_SUPPORTED");
}

#[test]
fn t11_drift_from_what_is_recorded_is_refused_with_both_sides() {
    let base = keyed(&["id"], StoredAs::Scd2);
    let recorded = spec(&base, &DataType::Int64).definition();
    let tracked = CdcOptions { track_history: ColumnSelection::Only(vec!["a".to_owned()]), ..base.clone() };
    let drifted = [
        (spec(&keyed(&["id", "b"], StoredAs::Scd2), &DataType::Int64), Fact::Keys),
        (spec(&keyed(&["id"], StoredAs::Scd1), &DataType::Int64), Fact::StoredAs),
        (spec(&keyed(&["id"], StoredAs::Bitemporal), &DataType::Int64), Fact::StoredAs),
        (spec(&base, &DataType::Int32), Fact::SequenceType),
        (spec(&tracked, &DataType::Int64), Fact::Tracked),
    ];
    for (now, expected) in drifted {
        let error = recorded.check(&now.definition()).unwrap_err();
        assert!(matches!(&error, CdcError::Drift { fact, .. } if *fact == expected), "{error}");
        assert!(error.to_string().contains(expected.condition()), "{error}");
    }
    let narrower = CdcOptions { columns: ColumnSelection::Except(vec!["b".to_owned()]), ..base };
    assert_eq!(
        recorded.check(&spec(&narrower, &DataType::Int64).definition()),
        Ok(()),
        "A-19: a default set follows the columns"
    );
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn pair(x: ArrayRef, y: Option<ArrayRef>) -> ArrayRef {
    let field = |name: &str, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
    let mut fields = vec![field("x", &x)];
    fields.extend(y.as_ref().map(|y| field("y", y)));
    Arc::new(StructArray::new(Fields::from(fields), std::iter::once(x).chain(y).collect(), None))
}

/// Feeds sources one after the other into one target, as a caller does whose store widens its columns.
fn feed(stored_as: StoredAs, sources: &[RecordBatch]) -> Result<RecordBatch, CdcError> {
    let mut store: Option<Store> = None;
    for (source, at) in sources.iter().zip(1_i64..) {
        let mut spec = CdcSpec::new(&keyed(&["id"], stored_as), &source.schema(), &DataType::Int64).unwrap();
        if let Some(store) = &store {
            spec = spec.with_target_columns(&store.target.batch.schema())?;
        }
        let store = store.get_or_insert_with(|| Store::new(&spec));
        store.target.widen(spec.target_schema());
        store.side.widen(spec.side_schema());
        let sequence = ints(&vec![at; source.num_rows()]);
        let changes = ChangeBatch::new(&spec, source, &sequence, None)?;
        store.apply(&spec, &changes, 3)?;
    }
    Ok(store.unwrap().target.batch)
}

#[test]
fn t10_columns_become_wider_in_either_direction() {
    let narrow = batch(vec![
        ("id", ints(&[1])),
        ("n", Arc::new(Int32Array::from(vec![7]))),
        ("f", Arc::new(Float32Array::from(vec![0.5]))),
        ("s", pair(Arc::new(Int32Array::from(vec![1])), None)),
    ]);
    let wide = batch(vec![
        ("id", ints(&[2])),
        ("n", ints(&[3_000_000_000])),
        ("f", Arc::new(arrow_array::Float64Array::from(vec![0.25]))),
        ("s", pair(ints(&[2]), Some(ints(&[5])))),
    ]);
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        for sources in [[narrow.clone(), wide.clone()], [wide.clone(), narrow.clone()]] {
            let target = feed(stored_as, &sources).unwrap();
            let ids = target.column_by_name("id").unwrap().as_primitive::<arrow_array::types::Int64Type>();
            let row = |id: i64| ids.values().iter().position(|found| *found == id).unwrap();
            let n = target.column_by_name("n").unwrap().as_primitive::<arrow_array::types::Int64Type>();
            assert_eq!((n.value(row(1)), n.value(row(2))), (7, 3_000_000_000));
            let s = target.column_by_name("s").unwrap().as_struct();
            let y = s.column_by_name("y").unwrap();
            assert!(y.is_null(row(1)) && y.is_valid(row(2)), "{target:?}");
        }
    }
}

#[test]
fn a20_a_field_that_vanished_from_a_struct_is_not_authored() {
    let both = batch(vec![("id", ints(&[1])), ("s", pair(ints(&[1]), Some(ints(&[5]))))]);
    let one = batch(vec![("id", ints(&[1])), ("s", pair(ints(&[2]), None))]);
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let target = feed(stored_as, &[both.clone(), one.clone()]).unwrap();
        let s = target.column_by_name("s").unwrap().as_struct();
        let last = (0..target.num_rows())
            .find(|&row| s.column(0).as_primitive::<arrow_array::types::Int64Type>().value(row) == 2)
            .unwrap();
        let y = s.column_by_name("y").unwrap().as_primitive::<arrow_array::types::Int64Type>();
        assert!(y.is_valid(last) && y.value(last) == 5, "kept: {target:?}");
    }
}

#[test]
fn t10_what_does_not_widen_is_refused_by_name() {
    let number = batch(vec![("id", ints(&[1])), ("n", ints(&[7]))]);
    let text = batch(vec![("id", ints(&[1])), ("n", Arc::new(StringArray::from(vec!["7"])))]);
    let error = feed(StoredAs::Scd1, &[number.clone(), text]).unwrap_err().to_string();
    assert!(
        ["CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE", "`n`", "Int64", "Utf8"]
            .iter()
            .all(|part| error.contains(part)),
        "{error}"
    );
    let key = batch(vec![("id", Arc::new(Int32Array::from(vec![1]))), ("n", ints(&[7]))]);
    let error = feed(StoredAs::Scd1, &[number, key]).unwrap_err();
    assert!(matches!(error, CdcError::Drift { fact: Fact::Keys, .. }), "{error}");
}
