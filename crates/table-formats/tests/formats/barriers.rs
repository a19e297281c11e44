//! What holds for every key of a target is kept with its side rows, whatever its type; and bounds spare files.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, Decimal128Array, Int8Array, Int64Array, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use strandline_cdc_core::{Bound, RowChanges};
use strandline_table_formats::{
    CommitOutcome, CommitStamp, DeltaFormat, ErrorKind, LookupPlan, SideState, StateVersion, TableChange,
    TableDefinition, TableFormat, WriterId,
};

use super::rows::{Row, batch};

fn state(store: &Arc<InMemory>) -> SideState {
    SideState::new(Arc::<InMemory>::clone(store), Path::from("state"), vec!["id".to_owned()])
}

/// Barriers whose sequence is of this type: two of one kind, and one of a kind that has no sequence.
fn barriers(values: &ArrayRef) -> RecordBatch {
    let kinds: ArrayRef = Arc::new(Int8Array::from(vec![1, 1, 4]));
    let schema = Schema::new(vec![
        Field::new("kind", DataType::Int8, false),
        Field::new("sequence", values.data_type().clone(), true),
    ]);
    RecordBatch::try_new(Arc::new(schema), vec![kinds, Arc::clone(values)]).unwrap()
}

fn sequences() -> Vec<ArrayRef> {
    let ints = || Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(7), None])) as ArrayRef;
    let texts = || Arc::new(StringArray::from(vec![Some(""), Some("ä\u{0}z"), None])) as ArrayRef;
    let times = TimestampMicrosecondArray::from(vec![Some(-1), Some(1_700_000_000_000_001), None]);
    let decimals = Decimal128Array::from(vec![Some(-1), Some(99_999_999_999_999_999), None]);
    let parts = [("n", ints()), ("text", texts())]
        .map(|(name, part)| (Arc::new(Field::new(name, part.data_type().clone(), true)), part));
    let (fields, columns): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let whole = vec![true, true, false].into();
    vec![
        ints(),
        texts(),
        Arc::new(times.with_timezone("+05:30")),
        Arc::new(decimals.with_precision_and_scale(17, 4).unwrap()),
        Arc::new(StructArray::new(fields.into(), columns, Some(whole))),
    ]
}

fn change(inserts: &[Row]) -> RowChanges {
    RowChanges { deletes: UInt64Array::from(Vec::<u64>::new()), inserts: batch(inserts) }
}

async fn objects(store: &Arc<InMemory>) -> Vec<Path> {
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    listed.into_iter().map(|object| object.location).collect()
}

#[tokio::test]
async fn barriers_of_every_type_come_back_with_their_version() {
    for values in sequences() {
        let store = Arc::new(InMemory::new());
        let state = state(&store);
        let empty = state.open(StateVersion(0)).await.unwrap();
        assert_eq!(empty.barriers(), None);
        let rows = barriers(&values);
        let one = state.write(&empty, &change(&[]), Some(&rows)).await.unwrap();
        assert!(one > StateVersion(0), "a barrier alone makes a version");
        let first = state.open(one).await.unwrap();
        assert_eq!(first.barriers(), Some(&rows));
        assert_eq!((first.num_rows(), first.schema()), (0, None));

        // The same ones again, and rows beside them: no version, and no file but for the rows.
        assert_eq!(state.write(&first, &change(&[]), Some(&rows)).await.unwrap(), one);
        assert_eq!(objects(&store).await.len(), 1);
        let row = Row { id: 1, name: None, seq: Some(1), unique: 1 };
        let two = state.write(&first, &change(&[row]), Some(&rows)).await.unwrap();
        assert_eq!(objects(&store).await.len(), 3);
        let second = state.open(two).await.unwrap();
        assert_eq!((second.barriers(), second.num_rows()), (Some(&rows), 1));

        // Others, and none, leave the rows and the older versions alone.
        let fewer = rows.slice(0, 1);
        let three = state.write(&second, &change(&[]), Some(&fewer)).await.unwrap();
        let third = state.open(three).await.unwrap();
        assert_eq!((third.barriers(), third.num_rows()), (Some(&fewer), 1));
        let four = state.write(&third, &change(&[]), None).await.unwrap();
        let fourth = state.open(four).await.unwrap();
        assert_eq!((fourth.barriers(), fourth.num_rows()), (None, 1));
        assert_eq!(state.open(one).await.unwrap().barriers(), Some(&rows));
        let none = state.write_empty(three).await.unwrap();
        assert_eq!(state.open(none).await.unwrap().barriers(), None);
    }
}

#[tokio::test]
async fn t12_barriers_that_were_lost_or_altered_are_an_error_by_name() {
    let store = Arc::new(InMemory::new());
    let state = state(&store);
    let empty = state.open(StateVersion(0)).await.unwrap();
    let rows = barriers(&sequences()[0]);
    let version = state.write(&empty, &change(&[]), Some(&rows)).await.unwrap();
    let manifest = objects(&store).await.remove(0);
    let bytes = store.get(&manifest).await.unwrap().bytes().await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let json: serde_json::Value = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
    let written = json["barriers"].as_str().unwrap().to_owned();
    let cut = |to: usize| serde_json::Value::from(&written[..to]);
    let mut mistakes =
        vec![("barriers", serde_json::Value::Null), ("barriers", "odd".into()), ("format", 1.into())];
    mistakes.extend((0..written.len() / 2).step_by(9).map(|to| ("barriers", cut(to * 2))));
    for (name, value) in mistakes {
        let mut altered = json.clone();
        altered[name] = value;
        store.put(&manifest, signed(&altered).into()).await.unwrap();
        let error = state.open(version).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("barriers"), "{error}");
    }
    let mut newer = json.clone();
    newer["format"] = 3.into();
    store.put(&manifest, signed(&newer).into()).await.unwrap();
    assert_eq!(state.open(version).await.unwrap_err().kind(), ErrorKind::Unsupported);
    store.put(&manifest, signed(&json).into()).await.unwrap();
    assert_eq!(state.open(version).await.unwrap().barriers(), Some(&rows));
}

/// A manifest whose checksum is right, whatever it says.
fn signed(json: &serde_json::Value) -> Vec<u8> {
    let json = json.to_string();
    let sum = json.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{sum:016x}\n{json}").into_bytes()
}

/// Rows of one key that were believed until `ends`, in a table of many columns.
fn believed(key: i64, ends: &[Option<i64>]) -> RecordBatch {
    let ints = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let mut columns = vec![("id".to_owned(), ints(vec![Some(key); ends.len()]))];
    columns.extend((0..40).map(|i| (format!("c{i}"), ints(vec![Some(i); ends.len()]))));
    columns.push(("__SYSTEM_END_AT".to_owned(), ints(ends.to_vec())));
    let fields = columns.iter().map(|(name, _)| Field::new(name, DataType::Int64, name != "id"));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect()).unwrap()
}

#[tokio::test]
async fn files_of_beliefs_that_ended_below_the_bound_are_not_read() {
    let store = Arc::new(InMemory::new());
    let format = DeltaFormat::new(Arc::<InMemory>::clone(&store), Path::from("lake"));
    let definition = TableDefinition {
        schema: believed(1, &[]).schema(),
        keys: vec!["id".to_owned()],
        properties: BTreeMap::new(),
        comment: None,
    };
    let table = format.create("t", &definition).await.unwrap();
    let mut ended = Vec::new();
    for (number, ends) in (1..).zip([vec![Some(3), Some(9)], vec![Some(8), None], vec![Some(10)]]) {
        let base = table.snapshot().await.unwrap();
        let writer = WriterId { pipeline: "p".into(), flow: "f".into(), incarnation: 0 };
        let stamp = CommitStamp { writer, batch: number, state: StateVersion(0), epoch: 0 };
        let rows = futures::StreamExt::boxed(futures::stream::iter([Ok(believed(1, &ends))]));
        let outcome = table.commit(base.as_ref(), TableChange::Append(rows), &stamp).await.unwrap();
        assert!(matches!(outcome, CommitOutcome::Committed(_)));
        if number == 1 {
            ended = table.snapshot().await.unwrap().appended_since(None).await.unwrap();
        }
    }
    // A file that is not read is not missed.
    store.delete(&Path::from(format!("lake/t/{}", ended[0].path))).await.unwrap();
    let fresh = format.open("t").await.unwrap().unwrap().snapshot().await.unwrap();
    for keyed in [true, false] {
        let keys = keyed.then(|| believed(1, &[None]).project(&[0]).unwrap());
        let at_least: ArrayRef = Arc::new(Int64Array::from(vec![10]));
        let bound = Bound { column: "__SYSTEM_END_AT".to_owned(), at_least, until: None };
        let bounded = LookupPlan { keys, columns: None, bound: Some(bound) };
        let found: Vec<_> = fresh.lookup(&bounded).await.unwrap().try_collect().await.unwrap();
        assert_eq!(found.iter().map(|rows| rows.batch.num_rows()).sum::<usize>(), 2, "8 is below the bound");
        let all = LookupPlan { bound: None, ..bounded };
        let all: Result<Vec<_>, _> = fresh.lookup(&all).await.unwrap().try_collect().await;
        assert!(all.is_err(), "without the bound the file is needed");
    }
}
