//! The formats' types: which are held, exactly; which are refused, by name; and that statistics in the log hide no row.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float64Array,
    Int8Array, Int64Array, RecordBatch, StringArray, StructArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use arrow_select::concat::concat_batches;
use futures::TryStreamExt;
use object_store::{memory::InMemory, path::Path};
use strandline_table_formats::{
    CommitOutcome, CommitStamp, DeltaFormat, ErrorKind, LookupPlan, StateVersion, Table, TableChange,
    TableDefinition, TableFormat, WriterId,
};

use super::conformance::{iceberg, tiny};

fn formats() -> [Box<dyn TableFormat>; 2] {
    let delta = DeltaFormat::new(Arc::new(InMemory::new()), Path::from("lake")).with_options(tiny());
    [Box::new(delta), Box::new(iceberg(Arc::new(InMemory::new())).with_options(tiny()))]
}

fn definition(schema: &SchemaRef, key: &str) -> TableDefinition {
    let keys = vec![key.to_owned()];
    TableDefinition {
        schema: Arc::clone(schema),
        keys,
        properties: BTreeMap::default(),
        comment: Some("c".into()),
    }
}

async fn insert(table: &dyn Table, number: u64, batch: RecordBatch) {
    let writer = WriterId { pipeline: "p".into(), flow: "f".into(), incarnation: 0 };
    let stamp = CommitStamp { writer, batch: number, state: StateVersion(0), epoch: 0 };
    let base = table.snapshot().await.unwrap();
    let change = TableChange::Rows { deletes: Vec::new(), inserts: vec![batch] };
    let outcome = table.commit(base.as_ref(), change, &stamp).await.unwrap();
    assert!(matches!(outcome, CommitOutcome::Committed(_)));
}

fn at_microseconds(values: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC"))
}

#[tokio::test]
async fn every_type_of_both_comes_back_exactly() {
    let sequence = Fields::from(vec![
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("n", DataType::Int64, true),
    ]);
    let parts =
        vec![at_microseconds(vec![-1, 1_700_000_000_123_456]), Arc::new(Int64Array::from(vec![7, 8])) as _];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX]))),
        ("__SEQUENCE_AT", Arc::new(StructArray::new(sequence, parts, None))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("float", Arc::new(Float64Array::from(vec![f64::NAN, -0.0]))),
        ("day", Arc::new(Date32Array::from(vec![-719_163, 2_932_896]))),
        ("bytes", Arc::new(BinaryArray::from(vec![&b"\xff\x00"[..], b""]))),
        ("local", Arc::new(TimestampMicrosecondArray::from(vec![-1, 1]))),
        (
            "money",
            Arc::new(
                Decimal128Array::from(vec![-5, i128::from(i64::MAX)])
                    .with_precision_and_scale(38, 4)
                    .unwrap(),
            ),
        ),
        ("text", Arc::new(StringArray::from(vec!["\"\u{10ffff}\"", "{\\"]))),
    ];
    for format in formats() {
        let mut columns = columns.clone();
        if format.name() == "delta" {
            columns.push(("tiny", Arc::new(Int8Array::from(vec![Some(-1), None]))));
        } else {
            let bytes = FixedSizeBinaryArray::try_from_iter([[1_u8, 2, 3], [255, 0, 9]].into_iter()).unwrap();
            columns.push(("fixed", Arc::new(bytes)));
            columns.push(("time", Arc::new(Time64MicrosecondArray::from(vec![0, 86_399_999_999]))));
        }
        let columns = columns.into_iter().map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let table = format.create("t", &definition(&batch.schema(), "id")).await.unwrap();
        insert(table.as_ref(), 1, batch.clone()).await;
        let snapshot = format.open("t").await.unwrap().unwrap().snapshot().await.unwrap();
        let back: Vec<_> = snapshot.scan(None).await.unwrap().try_collect().await.unwrap();
        assert_eq!(concat_batches(&batch.schema(), &back).unwrap(), batch, "{}", format.name());
    }
}

#[tokio::test]
async fn no_statistic_hides_a_row() {
    let edges = [
        -1_000_001,
        -1_000,
        -999,
        -1,
        0,
        1,
        999,
        1_000,
        1_001,
        1_699_999_999_999_999,
        253_402_300_799_999_999,
    ];
    let long = "\u{10ffff}".repeat(40);
    let texts: Vec<ArrayRef> = ["", "a", "z", long.as_str(), "\u{e9}\u{10ffff}", "\"\\"]
        .map(|t| Arc::new(StringArray::from(vec![t])) as ArrayRef)
        .to_vec();
    let times: Vec<ArrayRef> = edges.iter().map(|t| at_microseconds(vec![*t])).collect();
    let days = [-800_000, -719_529, 0, 2_932_896, 4_000_000]
        .map(|d| Arc::new(Date32Array::from(vec![d])) as ArrayRef);
    let money = [-1_i128, 0, 10_i128.pow(37)].map(|d| {
        Arc::new(Decimal128Array::from(vec![d]).with_precision_and_scale(38, 10).unwrap()) as ArrayRef
    });
    let floats =
        [f64::NAN, f64::INFINITY, 0.0, 1.5].map(|d| Arc::new(Float64Array::from(vec![d])) as ArrayRef);
    for values in [times, texts, days.to_vec(), money.to_vec(), floats.to_vec()] {
        let schema = Arc::new(Schema::new(vec![Field::new("key", values[0].data_type().clone(), true)]));
        for format in formats() {
            hides_no_row(format.as_ref(), &schema, &values).await;
        }
    }
}

async fn hides_no_row(format: &dyn TableFormat, schema: &SchemaRef, values: &[ArrayRef]) {
    let table = format.create("t", &definition(schema, "key")).await.unwrap();
    for (number, value) in (1..).zip(values) {
        let batch = RecordBatch::try_new(Arc::clone(schema), vec![Arc::clone(value)]).unwrap();
        insert(table.as_ref(), number, batch).await;
    }
    // Statistics are read from the log again.
    let table = format.open("t").await.unwrap().unwrap();
    let snapshot = table.snapshot().await.unwrap();
    for value in values {
        let keys = RecordBatch::try_new(Arc::clone(schema), vec![Arc::clone(value)]).unwrap();
        let plan = LookupPlan { keys: Some(keys), columns: None, bound: None };
        let found: Vec<_> = snapshot.lookup(&plan).await.unwrap().try_collect().await.unwrap();
        assert_eq!(found.iter().map(|r| r.batch.num_rows()).sum::<usize>(), 1, "{value:?}");
    }
}

#[tokio::test]
async fn other_types_are_refused_by_name() {
    let timestamp = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
    let inner = |t| DataType::Struct(Fields::from(vec![Field::new("inner", t, true)]));
    for refused in [
        DataType::UInt8,
        DataType::UInt64,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Null,
        DataType::Decimal256(40, 2),
        DataType::Decimal128(10, -2),
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        timestamp(TimeUnit::Nanosecond, None),
        timestamp(TimeUnit::Millisecond, Some("UTC")),
        timestamp(TimeUnit::Microsecond, Some("Europe/Berlin")),
        inner(DataType::UInt16),
        DataType::List(Arc::new(Field::new("item", DataType::UInt32, true))),
    ] {
        let fields = vec![Field::new("id", DataType::Int64, true), Field::new("odd", refused.clone(), true)];
        let schema = Arc::new(Schema::new(fields));
        for (format, name) in formats().into_iter().zip(["Delta", "Iceberg"]) {
            let error = format.check_schema(&schema).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{refused}");
            assert!(error.to_string().contains("odd") && error.to_string().contains(name), "{error}");
            let created = format.create("t", &definition(&schema, "id")).await;
            assert_eq!(created.unwrap_err().kind(), ErrorKind::Unsupported);
            assert!(format.list().await.unwrap().is_empty());
        }
    }
}
