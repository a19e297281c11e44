//! Logs that others wrote to: a client that repeats its put and finds its own entry, another writer, another program.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use serde_json::{Value, json};
use strandline_table_formats::{
    CommitOutcome, CommitStamp, DeltaFormat, ErrorKind, StateVersion, Table, TableChange, TableDefinition,
    TableFormat, TableVersion, WriterId,
};

use super::fault::Repeating;

fn rows(keys: &[i64]) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("id", DataType::Int64, false)]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from(keys.to_vec()))]).unwrap()
}

fn stamp(flow: &str, batch: u64, state: u64) -> CommitStamp {
    let writer = WriterId { pipeline: "p".into(), flow: flow.into(), incarnation: 0 };
    CommitStamp { writer, batch, state: StateVersion(state), epoch: 1 }
}

fn definition(properties: &[(&str, &str)]) -> TableDefinition {
    let properties = properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    TableDefinition {
        schema: rows(&[]).schema(),
        keys: vec!["id".into()],
        properties: properties.collect::<BTreeMap<_, _>>(),
        comment: None,
    }
}

fn append(keys: &[i64]) -> TableChange {
    TableChange::Append(stream::iter([Ok(rows(keys))]).boxed())
}

async fn read(table: &dyn Table) -> Vec<i64> {
    let snapshot = table.snapshot().await.unwrap();
    let batches: Vec<RecordBatch> = snapshot.scan(None).await.unwrap().try_collect().await.unwrap();
    let mut all: Vec<_> =
        batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
    all.sort_unstable();
    all
}

#[tokio::test]
async fn a_commit_that_finds_itself_landed() {
    let store = Arc::new(Repeating::new(Arc::new(InMemory::new())));
    let format = DeltaFormat::new(Arc::<Repeating>::clone(&store), Path::from("lake"));
    let table = format.create("t", &definition(&[])).await.unwrap();
    let changes = [
        append(&[1, 2]),
        TableChange::Rows { deletes: Vec::new(), inserts: vec![rows(&[3])] },
        TableChange::Overwrite(stream::iter([Ok(rows(&[4, 5]))]).boxed()),
    ];
    for ((batch, change), expected) in (1..).zip(changes).zip([vec![1, 2], vec![1, 2, 3], vec![4, 5]]) {
        let base = table.snapshot().await.unwrap();
        store.arm();
        let outcome = table.commit(base.as_ref(), change, &stamp("f", batch, 0)).await.unwrap();
        let version = if let CommitOutcome::Committed(committed) = &outcome { committed.version } else { 0 };
        assert_eq!(version, batch, "{outcome:?}");
        assert!(!store.is_armed());
        assert_eq!(read(table.as_ref()).await, expected);
        let fresh = format.open("t").await.unwrap().unwrap();
        assert_eq!(read(fresh.as_ref()).await, expected);
    }
}

#[tokio::test]
async fn a_landed_commit_whose_files_went_again_keeps_them_for_older_versions() {
    let disk = Arc::new(InMemory::new());
    let store = Arc::new(Repeating::new(Arc::<InMemory>::clone(&disk)));
    let format = DeltaFormat::new(Arc::<Repeating>::clone(&store), Path::from("lake"));
    let table = format.create("t", &definition(&[])).await.unwrap();
    let base = table.snapshot().await.unwrap();
    let others = async move {
        let table = DeltaFormat::new(disk, Path::from("lake")).open("t").await.unwrap().unwrap();
        let base = table.snapshot().await.unwrap();
        let change = TableChange::Overwrite(stream::iter([Ok(rows(&[9]))]).boxed());
        let landed = table.commit(base.as_ref(), change, &stamp("other", 1, 0)).await.unwrap();
        assert!(matches!(landed, CommitOutcome::Committed(_)), "{landed:?}");
    };
    store.arm_with(others.boxed());
    let outcome = table.commit(base.as_ref(), append(&[1, 2]), &stamp("f", 1, 0)).await.unwrap();
    assert!(matches!(&outcome, CommitOutcome::Committed(c) if c.version == 1), "{outcome:?}");
    assert_eq!(read(table.as_ref()).await, [9]);
    let ours = table.at(TableVersion(1)).await.unwrap();
    let batches: Vec<RecordBatch> = ours.scan(None).await.unwrap().try_collect().await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
}

#[tokio::test]
async fn an_append_does_not_set_the_state_back() {
    let format = DeltaFormat::new(Arc::new(InMemory::new()), Path::from("lake"));
    let table = format.create("t", &definition(&[])).await.unwrap();
    let base = table.snapshot().await.unwrap();
    let moved = table.commit(base.as_ref(), append(&[1]), &stamp("one", 1, 5)).await.unwrap();
    assert!(matches!(moved, CommitOutcome::Committed(_)), "{moved:?}");
    let late = table.commit(base.as_ref(), append(&[2]), &stamp("two", 1, 0)).await.unwrap();
    assert!(
        matches!(late, CommitOutcome::Conflict { ref left_over, .. } if left_over.len() == 1),
        "{late:?}"
    );
    let now = table.snapshot().await.unwrap();
    assert_eq!((now.state_version(), read(table.as_ref()).await), (StateVersion(5), vec![1]));
}

fn entry(version: u64) -> Path {
    Path::from(format!("lake/t/_delta_log/{version:020}.json"))
}

/// The action of this name in a log entry.
async fn action(store: &InMemory, version: u64, name: &str) -> Value {
    let bytes = store.get(&entry(version)).await.unwrap().bytes().await.unwrap();
    let mut actions =
        bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    actions.find_map(|action| action.get(name).cloned()).unwrap()
}

async fn write(store: &InMemory, version: u64, actions: &[Value]) {
    let lines: Vec<_> = actions.iter().map(ToString::to_string).collect();
    store.put(&entry(version), lines.join("\n").into()).await.unwrap();
}

async fn table_of(batches: u64) -> (Arc<InMemory>, DeltaFormat) {
    let store = Arc::new(InMemory::new());
    let format = DeltaFormat::new(Arc::<InMemory>::clone(&store), Path::from("lake"));
    let table = format.create("t", &definition(&[])).await.unwrap();
    for batch in 1..=batches {
        let base = table.snapshot().await.unwrap();
        let keys = [batch.cast_signed()];
        let landed = table.commit(base.as_ref(), append(&keys), &stamp("f", batch, 0)).await.unwrap();
        assert!(matches!(landed, CommitOutcome::Committed(_)), "{landed:?}");
    }
    (store, format)
}

#[tokio::test]
async fn properties_that_lose_stamps_are_noticed() {
    let forgets = "delta.setTransactionRetentionDuration";
    for (change, kind, named) in [
        (json!({ forgets: "interval 1 days" }), ErrorKind::Unsupported, forgets),
        (json!({ "strandline.writers": null }), ErrorKind::Corrupt, "strandline.writers"),
    ] {
        let (store, format) = table_of(1).await;
        let known = format.open("t").await.unwrap().unwrap();
        let mut metadata = action(&store, 1, "metaData").await;
        let properties = metadata["configuration"].as_object_mut().unwrap();
        for (name, value) in change.as_object().unwrap() {
            properties.remove(name);
            properties.extend(value.is_string().then(|| (name.clone(), value.clone())));
        }
        write(&store, 2, &[json!({ "metaData": metadata })]).await;
        let opened = format.open("t").await.map(|_| ()).unwrap_err();
        let followed = known.snapshot().await.map(|_| ()).unwrap_err();
        for error in [opened, followed] {
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(named), "{error}");
        }
    }
}

#[tokio::test]
async fn files_of_others_lie_in_folders() {
    let (store, format) = table_of(1).await;
    let mut add = action(&store, 1, "add").await;
    let old = add["path"].as_str().unwrap().to_owned();
    let from = Path::from("lake/t").join(old.as_str());
    store.rename(&from, &Path::from("lake/t/some day/x.parquet")).await.unwrap();
    add["path"] = "some%20day/x.parquet".into();
    let remove = json!({ "path": old, "dataChange": true, "deletionTimestamp": 1 });
    write(&store, 2, &[json!({ "remove": remove }), json!({ "add": add })]).await;
    let table = format.open("t").await.unwrap().unwrap();
    assert_eq!(read(table.as_ref()).await, [1]);
}

#[tokio::test]
async fn a_version_that_went_is_not_found_and_one_that_broke_is_corrupt() {
    let (store, format) = table_of(22).await;
    let table = format.open("t").await.unwrap().unwrap();
    store.put(&entry(7), "no entry".into()).await.unwrap();
    let broken = table.at(TableVersion(7)).await.map(|_| ()).unwrap_err();
    assert_eq!(broken.kind(), ErrorKind::Corrupt, "{broken}");
    for version in 0..5 {
        store.delete(&entry(version)).await.unwrap();
    }
    for version in [3, 6, 7] {
        let gone = table.at(TableVersion(version)).await.map(|_| ()).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound, "{gone}");
    }
    assert_eq!(table.at(TableVersion(21)).await.unwrap().version(), TableVersion(21));
}
