//! Killing a commit at every operation of the store: a whole commit or none of it remains, and trying again ends the
//! same.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, memory::InMemory, path::Path};
use strandline_table_formats::{
    CommitOutcome, CommitStamp, DeltaFormat, LookupPlan, Result, SideState, StateVersion, Table, TableChange,
    TableDefinition, TableFormat, WriteMode, WriterId,
};

use super::{conformance::tiny_in, fault::Mortal};

fn rows(keys: &[i64], value: &str) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    let values = StringArray::from(vec![value; keys.len()]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from(keys.to_vec())), Arc::new(values)])
        .unwrap()
}

fn stamp(batch: u64) -> CommitStamp {
    let writer = WriterId { pipeline: "p".into(), flow: "f".into(), incarnation: 0 };
    CommitStamp { writer, batch, state: StateVersion(batch), epoch: 1 }
}

fn format(store: Arc<dyn ObjectStore>) -> DeltaFormat {
    format_in(store, WriteMode::CopyOnWrite)
}

fn format_in(store: Arc<dyn ObjectStore>, mode: WriteMode) -> DeltaFormat {
    DeltaFormat::new(store, Path::from("lake")).with_options(tiny_in(mode))
}

async fn read(table: &dyn Table) -> Vec<(i64, String)> {
    let snapshot = table.snapshot().await.unwrap();
    let batches: Vec<RecordBatch> = snapshot.scan(None).await.unwrap().try_collect().await.unwrap();
    let mut all: Vec<_> = batches
        .iter()
        .flat_map(|b| {
            let (keys, values) = (b.column(0).as_primitive::<Int64Type>(), b.column(1).as_string::<i32>());
            (0..b.num_rows()).map(|i| (keys.value(i), values.value(i).to_owned())).collect::<Vec<_>>()
        })
        .collect();
    all.sort();
    all
}

/// Twenty batches lie in the log, so that the next ones begin with a checkpoint. Then one more batch is applied.
async fn prepared(mode: WriteMode) -> Arc<InMemory> {
    let store = Arc::new(InMemory::new());
    let definition = TableDefinition {
        schema: rows(&[], "").schema(),
        keys: vec!["id".into()],
        properties: BTreeMap::default(),
        comment: None,
    };
    let table = format_in(Arc::<InMemory>::clone(&store), mode).create("t", &definition).await.unwrap();
    for batch in 1..19_u64 {
        landed(table.as_ref(), batch).await;
    }
    store
}

/// One batch: the rows of some keys are replaced.
async fn apply(table: &dyn Table, batch: u64) -> Result<CommitOutcome> {
    let keys: Vec<i64> = (0..20).map(|i| (i * 7 + batch.cast_signed()) % 50).collect();
    let base = table.snapshot().await?;
    if base.last_batch(&stamp(batch).writer) >= Some(batch) {
        return Ok(CommitOutcome::AlreadyApplied { batch });
    }
    let plan = LookupPlan { keys: Some(rows(&keys, "").project(&[0])?), columns: None, bound: None };
    let found: Vec<_> = base.lookup(&plan).await?.try_collect().await?;
    let deletes = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
    let change = TableChange::Rows { deletes, inserts: vec![rows(&keys, &format!("b{batch}"))] };
    table.commit(base.as_ref(), change, &stamp(batch)).await
}

async fn landed(table: &dyn Table, batch: u64) {
    let outcome = apply(table, batch).await.unwrap();
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
}

fn fork(store: &InMemory) -> Arc<InMemory> {
    Arc::new(store.fork())
}

#[tokio::test]
async fn t04_a_commit_killed_at_any_operation_is_whole_or_absent() {
    killed_anywhere(WriteMode::CopyOnWrite).await;
}

#[tokio::test]
async fn t04_a_commit_of_masks_killed_at_any_operation_is_whole_or_absent() {
    killed_anywhere(WriteMode::MergeOnRead).await;
}

async fn killed_anywhere(mode: WriteMode) {
    let prepared = prepared(mode).await;
    let open = async |store: Arc<dyn ObjectStore>| format_in(store, mode).open("t").await;
    let before = read(open(fork(&prepared)).await.unwrap().unwrap().as_ref()).await;
    let unharmed = fork(&prepared);
    let table = open(Arc::<InMemory>::clone(&unharmed)).await.unwrap().unwrap();
    landed(table.as_ref(), 19).await;
    let once = read(table.as_ref()).await;
    landed(table.as_ref(), 20).await;
    let twice = read(table.as_ref()).await;
    let (mut killed, mut survived) = (0, 0);
    for after in [false, true] {
        // Each operation with `--cfg slow`, else every third, and of both kinds not the same ones.
        let (first, step) = if cfg!(slow) { (0, 1) } else { (i64::from(after), 3) };
        for operations in (first..).step_by(step) {
            let disk = fork(&prepared);
            let mortal = Arc::new(Mortal::new(Arc::<InMemory>::clone(&disk), operations, after));
            let end: Result<()> = async {
                let table = open(Arc::<Mortal>::clone(&mortal)).await?.unwrap();
                for batch in [19, 20] {
                    let _outcome = apply(table.as_ref(), batch).await?;
                }
                Ok(())
            }
            .await;
            if mortal.left() >= 0 {
                assert!(end.is_ok(), "{end:?}");
                break;
            }
            killed += 1;
            let table = open(disk).await.unwrap().unwrap();
            let now = read(table.as_ref()).await;
            let last = table.snapshot().await.unwrap().last_batch(&stamp(1).writer);
            match last {
                Some(18) => assert_eq!(now, before, "killed at {operations}, after {after}"),
                Some(19) => assert_eq!(now, once, "killed at {operations}, after {after}"),
                other => {
                    assert_eq!((other, &now), (Some(20), &twice), "killed at {operations}, after {after}");
                }
            }
            survived += usize::from(last != Some(18));
            for batch in [19, 20] {
                let _outcome = apply(table.as_ref(), batch).await.unwrap();
            }
            assert_eq!(read(table.as_ref()).await, twice, "killed at {operations}, after {after}");
        }
    }
    println!("{killed} killed, {survived} landed");
    assert!(killed > 20 && survived > 2, "{killed} killed, {survived} landed");
}

#[tokio::test]
async fn two_handles_follow_each_other_across_checkpoints() {
    let store = prepared(WriteMode::CopyOnWrite).await;
    let one = format(Arc::<InMemory>::clone(&store)).open("t").await.unwrap().unwrap();
    let two = format(Arc::<InMemory>::clone(&store)).open("t").await.unwrap().unwrap();
    for batch in 19..65 {
        // The second one falls behind for a while, over a checkpoint too.
        let table = if batch % 27 == 0 { &two } else { &one };
        landed(table.as_ref(), batch).await;
        let snapshot = table.snapshot().await.unwrap();
        assert_eq!(snapshot.last_batch(&stamp(batch).writer), Some(batch));
        assert_eq!(snapshot.state_version(), StateVersion(batch));
    }
    let fresh = format(store).open("t").await.unwrap().unwrap();
    let rows = read(fresh.as_ref()).await;
    assert_eq!(read(one.as_ref()).await, rows);
    assert_eq!(read(two.as_ref()).await, rows);
    let files = fresh.snapshot().await.unwrap().appended_since(None).await.unwrap();
    assert!(files.len() < 8, "{} files", files.len());
}

/// A table of other columns, with a row for each key.
async fn replace(table: &dyn Table, side: &SideState) -> Result<CommitOutcome> {
    let base = table.snapshot().await?;
    let writer = WriterId { incarnation: 1, ..stamp(0).writer };
    if base.last_batch(&writer).is_some() {
        return Ok(CommitOutcome::AlreadyApplied { batch: 0 });
    }
    let state = side.write_empty(base.state_version()).await?;
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    let rows = RecordBatch::try_from_iter([("name", keys)])?;
    let definition = TableDefinition {
        schema: rows.schema(),
        keys: vec!["name".into()],
        properties: BTreeMap::default(),
        comment: None,
    };
    let rows = stream::iter([Ok(rows)]).boxed();
    let change = TableChange::Replace { definition: Box::new(definition), rows };
    table.commit(base.as_ref(), change, &CommitStamp { writer, batch: 0, state, epoch: 1 }).await
}

#[tokio::test]
async fn t13_a_replacement_killed_at_any_operation_is_whole_or_absent_with_its_state() {
    let prepared = prepared(WriteMode::CopyOnWrite).await;
    let before = read(format(fork(&prepared)).open("t").await.unwrap().unwrap().as_ref()).await;
    let side =
        |store: Arc<dyn ObjectStore>| SideState::new(store, Path::from("state/t"), vec!["name".into()]);
    let (mut absent, mut whole) = (0, 0);
    for after in [false, true] {
        for operations in 0.. {
            let disk = fork(&prepared);
            let mortal: Arc<Mortal> = Arc::new(Mortal::new(Arc::<InMemory>::clone(&disk), operations, after));
            let end: Result<()> = async {
                let table = format(Arc::<Mortal>::clone(&mortal)).open("t").await?.unwrap();
                let _outcome = replace(table.as_ref(), &side(Arc::<Mortal>::clone(&mortal))).await?;
                Ok(())
            }
            .await;
            if mortal.left() >= 0 {
                assert!(end.is_ok(), "{end:?}");
                break;
            }
            let table = format(Arc::<InMemory>::clone(&disk)).open("t").await.unwrap().unwrap();
            let now = table.snapshot().await.unwrap();
            if now.schema().field_with_name("id").is_ok() {
                absent += 1;
                assert_eq!(now.state_version(), StateVersion(18));
                assert_eq!(read(table.as_ref()).await, before, "killed at {operations}, after {after}");
            } else {
                whole += 1;
                assert!(now.state_version() > StateVersion(18));
            }
            let side = side(Arc::<InMemory>::clone(&disk));
            let _outcome = replace(table.as_ref(), &side).await.unwrap();
            let now = table.snapshot().await.unwrap();
            let batches: Vec<RecordBatch> = now.scan(None).await.unwrap().try_collect().await.unwrap();
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
            assert_eq!(side.open(now.state_version()).await.unwrap().num_rows(), 0);
            assert_eq!(now.last_batch(&stamp(0).writer), Some(18), "the stamps of before stay");
        }
    }
    assert!(absent > 5 && whole > 0, "{absent} absent, {whole} whole");
}
