//! Do the predicates choose what a plain reading of the intervals chooses? Every interval and moment of small domains.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StructArray, cast::AsArray, types::Int64Type};
use arrow_schema::{Field, Fields, TimeUnit};
use datafusion::prelude::col;

use super::*;
use crate::query::session;

/// Numbers of the rows that meet a predicate.
async fn chosen(rows: &RecordBatch, predicate: Expr) -> Vec<i64> {
    let found =
        session().read_batch(rows.clone()).unwrap().filter(predicate).unwrap().sort_by(vec![col("n")]);
    let batches = found.unwrap().collect().await.unwrap();
    let numbers = batches.iter().map(|batch| batch.column_by_name("n").unwrap().as_primitive::<Int64Type>());
    numbers.flat_map(|column| column.values().to_vec()).collect()
}

fn numbered(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let rows = columns[0].1.len();
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..i64::try_from(rows).unwrap()));
    let all = columns.into_iter().map(|(name, column)| (name, column, true)).chain([("n", n, true)]);
    RecordBatch::try_from_iter_with_nullable(all).unwrap()
}

fn int(value: i64) -> ScalarValue {
    ScalarValue::Int64(Some(value))
}

/// `[start, end)`, an open end as `None`.
type Interval = (i64, Option<i64>);

fn covers_plainly((start, end): Interval, moment: Option<i64>) -> bool {
    moment.is_none_or(|moment| start <= moment && end.is_none_or(|end| end > moment))
}

#[tokio::test]
async fn c_67_both_axes_are_half_open_and_null_ends_are_open() {
    let intervals: Vec<Interval> = (0..3)
        .flat_map(|start| (start + 1..4).map(Some).chain([None]).map(move |end| (start, end)))
        .collect();
    let pairs: Vec<_> = intervals
        .iter()
        .flat_map(|business| intervals.iter().map(move |system| (*business, *system)))
        .collect();
    let starts = |of: fn(&(Interval, Interval)) -> Option<i64>| -> ArrayRef {
        Arc::new(pairs.iter().map(of).collect::<Int64Array>())
    };
    let rows = numbered(vec![
        (names::START_AT, starts(|(b, _)| Some(b.0))),
        (names::END_AT, starts(|(b, _)| b.1)),
        (names::SYSTEM_START_AT, starts(|(_, s)| Some(s.0))),
        (names::SYSTEM_END_AT, starts(|(_, s)| s.1)),
    ]);
    let moments: Vec<Option<i64>> = (-1..5).map(Some).chain([None]).collect();
    for &business in &moments {
        for &system in &moments {
            let as_of =
                AsOf::default().business(ScalarValue::Int64(business)).system(ScalarValue::Int64(system));
            let expected: Vec<i64> = (0..)
                .zip(&pairs)
                .filter(|(_, (b, s))| covers_plainly(*b, business) && covers_plainly(*s, system))
                .map(|(n, _)| n)
                .collect();
            let found = chosen(&rows, as_of.predicate(&rows.schema()).unwrap()).await;
            assert_eq!(found, expected, "business {business:?}, system {system:?}");
        }
    }
    let open = |(_, (b, s)): &(i64, &(Interval, Interval))| b.1.is_none() && s.1.is_none();
    let expected: Vec<i64> = (0..).zip(&pairs).filter(open).map(|(n, _)| n).collect();
    assert_eq!(History::of(&rows.schema()), Some(History::Beliefs));
    assert_eq!(chosen(&rows, History::Beliefs.current()).await, expected);
}

type TwoFields = (Option<i64>, Option<i64>);
type Pair = Option<TwoFields>;

fn structs(values: &[Pair]) -> StructArray {
    let fields: Fields =
        vec![Field::new("ts", DataType::Int64, true), Field::new("lsn", DataType::Int64, true)].into();
    let column = |of: fn(&TwoFields) -> Option<i64>| -> ArrayRef {
        Arc::new(values.iter().map(|value| value.as_ref().and_then(of)).collect::<Int64Array>())
    };
    let nulls = values.iter().map(Option::is_some).collect::<Vec<_>>().into();
    StructArray::new(fields, vec![column(|pair| pair.0), column(|pair| pair.1)], Some(nulls))
}

#[tokio::test]
async fn c_29_structs_compare_field_by_field_with_null_fields_lowest() {
    let domain = [None, Some(1), Some(2)];
    let values: Vec<_> = domain.iter().flat_map(|&ts| domain.iter().map(move |&lsn| (ts, lsn))).collect();
    let ends: Vec<Pair> = values.iter().map(|&value| Some(value)).chain([None]).collect();
    // An interval may be empty or upside down here: the predicate is about each end.
    let intervals: Vec<_> =
        values.iter().flat_map(|&start| ends.iter().map(move |&end| (start, end))).collect();
    let rows = numbered(vec![
        (names::START_AT, Arc::new(structs(&intervals.iter().map(|i| Some(i.0)).collect::<Vec<_>>()))),
        (names::END_AT, Arc::new(structs(&intervals.iter().map(|i| i.1).collect::<Vec<_>>()))),
    ]);
    for &moment in &values {
        let literal = ScalarValue::Struct(Arc::new(structs(&[Some(moment)])));
        let expected: Vec<i64> = (0..)
            .zip(&intervals)
            .filter(|(_, (start, end))| *start <= moment && end.is_none_or(|end| end > moment))
            .map(|(n, _)| n)
            .collect();
        let predicate = AsOf::default().business(literal).predicate(&rows.schema()).unwrap();
        assert_eq!(chosen(&rows, predicate).await, expected, "{moment:?}");
    }
}

fn versions(data_type: &DataType) -> Schema {
    let field = |name| Field::new(name, data_type.clone(), true);
    Schema::new(vec![field(names::START_AT), field(names::END_AT)])
}

fn written(value: impl Into<ScalarValue>, data_type: &DataType) -> Result<String> {
    Ok(AsOf::default().business(value.into()).predicate(&versions(data_type))?.to_string())
}

#[test]
fn literals_become_values_of_the_columns_type() {
    let micros = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    let cases = [
        (ScalarValue::from("20"), DataType::Int64, "Int64(20)"),
        (ScalarValue::from(20_i64), DataType::Int16, "Int16(20)"),
        (ScalarValue::from(20.5), DataType::Decimal128(10, 2), "Decimal128(20.50,10,2)"),
        (ScalarValue::from(20_i64), DataType::Float64, "Float64(20)"),
        (ScalarValue::from("b"), DataType::Utf8, "Utf8(\"b\")"),
        (ScalarValue::from("2025-01-03"), DataType::Date32, "Date32(\"2025-01-03\")"),
        (ScalarValue::from("1970-01-01T00:00:00.000002"), micros(None), "TimestampMicrosecond(2, None)"),
        (ScalarValue::from("1970-01-01"), micros(Some("UTC")), "TimestampMicrosecond(0, Some(\"UTC\"))"),
        (
            ScalarValue::from("1970-01-01T01:00:00+01:00"),
            micros(Some("UTC")),
            "TimestampMicrosecond(0, Some(\"UTC\"))",
        ),
    ];
    for (value, data_type, expected) in cases {
        let found = written(value.clone(), &data_type).unwrap();
        assert!(found.contains(&format!("__START_AT <= {expected} ")), "{value:?} as {data_type}: {found}");
    }
}

#[test]
fn moments_finer_than_their_column_fall_on_the_point_before() {
    let micros = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    let nanos = |nanos: i64| ScalarValue::TimestampNanosecond(Some(nanos), Some("+00:00".into()));
    let cases = [
        (nanos(1_999), micros(Some("UTC")), "TimestampMicrosecond(1, Some(\"UTC\"))"),
        (nanos(-1), micros(Some("UTC")), "TimestampMicrosecond(-1, Some(\"UTC\"))"),
        (nanos(-1_000), micros(None), "TimestampMicrosecond(-1, None)"),
        (nanos(-1), DataType::Date32, "Date32(\"1969-12-31\")"),
        (ScalarValue::from("1970-01-02T23:59:59.5"), DataType::Date32, "Date32(\"1970-01-02\")"),
        (ScalarValue::from("1969-12-31T23:59:59.9999999"), micros(None), "TimestampMicrosecond(-1, None)"),
        (ScalarValue::from("0001-01-01"), DataType::Date32, "Date32(\"0001-01-01\")"),
    ];
    for (value, data_type, expected) in cases {
        let found = written(value.clone(), &data_type).unwrap();
        assert!(found.contains(&format!("__START_AT <= {expected} ")), "{value:?} as {data_type}: {found}");
    }
}

#[test]
fn literals_that_are_no_value_of_the_type_are_refused_with_it() {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let pair = structs(&[Some((Some(1), Some(2)))]);
    let day = DataType::Struct(vec![Field::new("day", DataType::Date32, true)].into());
    let noon: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["2025-01-03T12:00:00"]));
    let noon = StructArray::from(vec![(Arc::new(Field::new("c0", DataType::Utf8, true)), noon)]);
    let three: Fields = (0..3).map(|n| Field::new(format!("f{n}"), DataType::Int64, true)).collect();
    let cases = [
        (ScalarValue::from("soon"), DataType::Int64),
        (ScalarValue::from("20.5"), DataType::Int64),
        (ScalarValue::from(20.5), DataType::Int64),
        (ScalarValue::from(70_000_i64), DataType::Int16),
        (ScalarValue::from(20_i64), DataType::Utf8),
        (ScalarValue::from(20_250_103_i64), DataType::Date32),
        (ScalarValue::from(1_i64), micros.clone()),
        (ScalarValue::from("not a day"), micros.clone()),
        (ScalarValue::from("text"), DataType::Binary),
        (ScalarValue::from("1"), pair.data_type().clone()),
        (ScalarValue::Struct(Arc::new(pair)), DataType::Struct(three)),
        (ScalarValue::Struct(Arc::new(noon)), day),
    ];
    for (value, data_type) in cases {
        let error = written(value.clone(), &data_type).expect_err(&format!("{value:?} as {data_type}"));
        assert_eq!(error.kind(), ErrorKind::Definition);
        let named = match &data_type {
            DataType::Struct(fields) if fields.len() == 1 => fields[0].data_type().to_string(),
            whole => whole.to_string(),
        };
        assert!(error.to_string().contains(&named), "{error}");
        assert!(error.help_text().is_some(), "{error}");
    }
}

#[test]
fn an_axis_that_a_table_lacks_is_refused() {
    let schema = versions(&DataType::Int64);
    assert_eq!(History::of(&schema), Some(History::Versions));
    let error = AsOf::default().system(int(1)).predicate(&schema).unwrap_err();
    assert!(error.to_string().contains("no system time"), "{error}");
    let plain = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
    assert_eq!(History::of(&plain), None);
    assert!(AsOf::default().business(int(1)).predicate(&plain).is_err());
    // NULL restricts nothing, so it asks for nothing.
    let nothing = AsOf::default().system(ScalarValue::Null).predicate(&plain).unwrap();
    assert_eq!(nothing, lit(true));
}
