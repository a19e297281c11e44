//! A NULL in a field of a struct sequence: refused, or below every value.

use arrow_schema::{DataType, Field, Fields};
use strandline_cdc_core::{CdcError, CdcOptions, CdcSpec, NullSequenceFields, StoredAs};
use strandline_testkit::{
    generate::every_arrival,
    reference::{Event, Value},
};

use crate::{
    convert::Codec,
    flow::{Columns, Flow, delete, upsert},
};

fn columns() -> Columns {
    let fields: Fields =
        vec![Field::new("ts", DataType::Int64, true), Field::new("n", DataType::Int64, true)].into();
    Columns { sequence: Codec::Plain(DataType::Struct(fields)), ..Columns::plain() }
}

fn at(ts: impl Into<Value>, n: impl Into<Value>) -> Value {
    Value::fields([("ts", ts.into()), ("n", n.into())])
}

fn flow(stored_as: StoredAs, null_sequence_fields: NullSequenceFields) -> Flow {
    let columns = columns();
    let options =
        CdcOptions { keys: columns.key_names(), stored_as, null_sequence_fields, ..CdcOptions::default() };
    let mut flow = Flow::new(columns, stored_as, None);
    flow.spec = CdcSpec::new(&options, &flow.columns.schema(), flow.columns.sequence.data_type()).unwrap();
    flow
}

fn up(seq: Value, a: i64) -> Event {
    upsert("k", seq, &[("a", a.into()), ("b", Value::Null)])
}

#[test]
fn a7_c30_a_null_field_is_refused_unless_nulls_come_first() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        for seq in [at(1, Value::Null), at(Value::Null, 1), at(Value::Null, Value::Null)] {
            let refusing = flow(stored_as, NullSequenceFields::Refused);
            let error = refusing.columns.batch(&refusing.spec, &[up(seq.clone(), 1)]).unwrap_err();
            assert!(matches!(error, CdcError::NullSequence { count: 1, row: 0, .. }), "{error}");
            let taking = flow(stored_as, NullSequenceFields::First);
            assert!(taking.columns.batch(&taking.spec, &[up(seq, 1)]).is_ok());
        }
    }
}

#[test]
fn a7_c31_a_sequence_that_is_null_as_a_whole_is_refused_all_the_same() {
    let flow = flow(StoredAs::Scd2, NullSequenceFields::First);
    let error = flow.columns.batch(&flow.spec, &[up(Value::Null, 1)]).unwrap_err();
    assert!(matches!(error, CdcError::NullSequence { count: 1, .. }), "{error}");
}

/// In order: (NULL, NULL), (NULL, 9), (1, NULL), (1, 0).
fn history() -> [Event; 4] {
    [
        up(at(Value::Null, Value::Null), 1),
        up(at(Value::Null, 9), 2),
        delete("k", at(1, Value::Null)),
        up(at(1, 0), 3),
    ]
}

#[test]
fn a7_c29_nulls_come_first_in_every_arrival() {
    let version = |a: i64, start: Value, end: Value| (Value::Int(a), start, end);
    for batches in every_arrival(&history()) {
        let mut scd2 = flow(StoredAs::Scd2, NullSequenceFields::First);
        let mut scd1 = flow(StoredAs::Scd1, NullSequenceFields::First);
        let mut known = Vec::new();
        for batch in &batches {
            known.extend(batch.iter().cloned());
            scd2.apply(batch);
            scd1.apply(batch);
            scd2.check(&known);
            scd1.check(&known);
        }
        let mut versions: Vec<_> = scd2
            .target()
            .into_iter()
            .map(|row| (row["a"].clone(), row["__START_AT"].clone(), row["__END_AT"].clone()))
            .collect();
        versions.sort();
        let expected = [
            version(1, at(Value::Null, Value::Null), at(Value::Null, 9)),
            version(2, at(Value::Null, 9), at(1, Value::Null)),
            version(3, at(1, 0), Value::Null),
        ];
        assert_eq!(versions, expected);
        assert_eq!(scd1.target()[0]["__SEQUENCE_AT"], at(1, 0));
    }
}
