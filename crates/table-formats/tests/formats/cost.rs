//! What a batch costs, printed: `cargo test --release --all-features -- --ignored --nocapture cost`.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use strandline_table_formats::{
    CommitOutcome, CommitStamp, DeltaFormat, DurableLocal, LookupPlan, StateVersion, TableChange,
    TableDefinition, TableFormat, WriterId,
};

fn schema() -> SchemaRef {
    let mut fields = vec![Field::new("id", DataType::Int64, false)];
    fields.extend((0..4).map(|i| Field::new(format!("n{i}"), DataType::Int64, true)));
    fields.extend((0..3).map(|i| Field::new(format!("s{i}"), DataType::Utf8, true)));
    Arc::new(Schema::new(fields))
}

pub(crate) fn rows(keys: &(impl Iterator<Item = i64> + Clone), salt: i64) -> RecordBatch {
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(keys.clone()))];
    let mixed = |k: i64, i: i64| (k ^ salt).wrapping_mul(0x9e37_79b9 + i) >> 7;
    for i in 0..4 {
        columns.push(Arc::new(Int64Array::from_iter_values(keys.clone().map(|k| mixed(k, i)))));
    }
    for i in 0..3 {
        let text = keys.clone().map(|k| format!("text {}", mixed(k, i) % 100_000));
        columns.push(Arc::new(StringArray::from_iter_values(text)));
    }
    RecordBatch::try_new(schema(), columns).unwrap()
}

pub(crate) fn stamp(batch: u64) -> CommitStamp {
    let writer = WriterId { pipeline: "p".into(), flow: "f".into(), incarnation: 0 };
    CommitStamp { writer, batch, state: StateVersion(0), epoch: 0 }
}

#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn cost_of_scattered_and_of_many_small_batches() {
    let folder = tempfile::tempdir().unwrap();
    let format = DeltaFormat::new(Arc::new(DurableLocal::new(folder.path()).unwrap()), Path::from("lake"));
    let definition = TableDefinition {
        schema: schema(),
        keys: vec!["id".into()],
        properties: BTreeMap::default(),
        comment: None,
    };
    let table = format.create("t", &definition).await.unwrap();
    let base = table.snapshot().await.unwrap();
    let chunks = (0..16_i64).map(|c| Ok(rows(&(c * 65_536..(c + 1) * 65_536), 0)));
    let start = now();
    let change = TableChange::Append(stream::iter(chunks.collect::<Vec<_>>()).boxed());
    let outcome = table.commit(base.as_ref(), change, &stamp(1)).await.unwrap();
    println!("append of 1 M rows: {:?} {outcome:?}", start.elapsed());
    let mut number = 1;
    for (what, keys, columns) in [
        ("67k scattered keys, all columns", (0..67_000).map(|i| i * 15).collect::<Vec<i64>>(), None),
        (
            "67k scattered keys, two columns",
            (0..67_000).map(|i| i * 15 + 3).collect(),
            Some(vec!["id".into(), "n0".into()]),
        ),
        ("100 neighbouring keys", (500_000..500_100).collect(), None),
    ] {
        number += 1;
        let (base, new) = (table.snapshot().await.unwrap(), rows(&keys.iter().copied(), number));
        let plan = LookupPlan { keys: Some(new.project(&[0]).unwrap()), columns, bound: None };
        let start = now();
        let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
        let looked = start.elapsed();
        let deletes: Vec<u64> = found.iter().flat_map(|r| r.ids.values().to_vec()).collect();
        assert_eq!(deletes.len(), keys.len());
        let start = now();
        let change = TableChange::Rows { deletes, inserts: vec![new] };
        let outcome = table.commit(base.as_ref(), change, &stamp(number.cast_unsigned())).await.unwrap();
        println!("{what}: looked up in {looked:?}, committed in {:?} {outcome:?}", start.elapsed());
    }
    let start = now();
    for i in 0..200_i64 {
        number += 1;
        let base = table.snapshot().await.unwrap();
        let inserts = vec![rows(&(2_000_000 + i * 100..2_000_000 + i * 100 + 100), 0)];
        let change = TableChange::Rows { deletes: Vec::new(), inserts };
        let outcome = table.commit(base.as_ref(), change, &stamp(number.cast_unsigned())).await.unwrap();
        assert!(matches!(outcome, CommitOutcome::Committed(_)));
    }
    let files = table.snapshot().await.unwrap().appended_since(None).await.unwrap().len();
    println!("200 batches of 100 new rows: {:?}, {files} files", start.elapsed());
}
