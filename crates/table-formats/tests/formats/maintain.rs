//! Maintenance changes no answer, whatever happens beside it and wherever it is killed.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, memory::InMemory, path::Path};
use strandline_cdc_core::Bound;
use strandline_table_formats::{
    CommitKind, CommitOutcome, CommitStamp, DeltaFormat, LookupPlan, MemoryFormat, StateVersion, Table,
    TableChange, TableDefinition, TableFormat, TableVersion, WriteMode, WriterId, contract::MaintainOptions,
};

use super::{
    conformance::{MODES, iceberg, tiny_in},
    fault::Mortal,
};

const COMPACT: MaintainOptions = MaintainOptions { compact: true, expire_before: None, dry_run: false };
/// After every commit.
const LATE: i64 = 1 << 50;

/// A version of a key: id, start, end.
type Row = (i64, i64, Option<i64>);

fn schema() -> Arc<Schema> {
    let int = |name| Field::new(name, DataType::Int64, name == "__END_AT");
    Arc::new(Schema::new(vec![int("id"), int("__START_AT"), int("__END_AT")]))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>());
    let starts: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int64Array>());
    let ends: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>());
    RecordBatch::try_new(schema(), vec![ids, starts, ends]).unwrap()
}

fn unbatch(batch: &RecordBatch) -> Vec<Row> {
    let ints = |i: usize| batch.column(i).as_primitive::<Int64Type>().clone();
    let (ids, starts, ends) = (ints(0), ints(1), ints(2));
    (0..batch.num_rows())
        .map(|i| (ids.value(i), starts.value(i), ends.is_valid(i).then(|| ends.value(i))))
        .collect()
}

async fn rows_at(table: &dyn Table, version: Option<u64>) -> Vec<Row> {
    let snapshot = match version {
        None => table.snapshot().await.unwrap(),
        Some(version) => table.at(TableVersion(version)).await.unwrap(),
    };
    let batches: Vec<_> = snapshot.scan(None).await.unwrap().try_collect().await.unwrap();
    let mut rows: Vec<_> = batches.iter().flat_map(unbatch).collect();
    rows.sort_unstable();
    rows
}

fn stamp(batch: u64) -> CommitStamp {
    let writer = WriterId { pipeline: "p".into(), flow: "f".into(), incarnation: 0 };
    CommitStamp { writer, batch, state: StateVersion(batch), epoch: 0 }
}

fn plan(ids: &[i64], from: Option<i64>) -> LookupPlan {
    let keys: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
    let bound = from.map(|from| Bound {
        column: "__END_AT".into(),
        at_least: Arc::new(Int64Array::from(vec![from; ids.len()])),
        until: None,
    });
    LookupPlan { keys: Some(RecordBatch::try_from_iter([("id", keys)]).unwrap()), columns: None, bound }
}

/// Ends the current versions of some keys and begins new ones, as a flow does; again when another writer came first.
async fn apply(table: &dyn Table, number: u64) -> strandline_table_formats::Result<()> {
    let now = number.cast_signed() * 10;
    let ids: Vec<i64> = (0..12).map(|i| (i * 17 + number.cast_signed() * 5) % 100).collect();
    loop {
        let base = table.snapshot().await?;
        if base.last_batch(&stamp(number).writer) >= Some(number) {
            return Ok(());
        }
        let found: Vec<_> = base.lookup(&plan(&ids, Some(now))).await?.try_collect().await?;
        let (mut deletes, mut inserts) = (Vec::new(), Vec::new());
        for rows in &found {
            for (row, id) in unbatch(&rows.batch).into_iter().zip(rows.ids.values()) {
                if row.2.is_none() {
                    deletes.push(*id);
                    inserts.push((row.0, row.1, Some(now)));
                }
            }
        }
        inserts.extend(ids.iter().map(|id| (*id, now, None)));
        let change = TableChange::Rows { deletes, inserts: vec![batch(&inserts)] };
        match table.commit(base.as_ref(), change, &stamp(number)).await? {
            CommitOutcome::Conflict { .. } => {}
            CommitOutcome::Committed(_) | CommitOutcome::AlreadyApplied { .. } => return Ok(()),
        }
    }
}

/// The same, in a list.
fn expected(batches: u64) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for number in 1..=batches {
        let now = number.cast_signed() * 10;
        for i in 0..12 {
            let id = (i * 17 + number.cast_signed() * 5) % 100;
            rows.iter_mut().filter(|row| row.0 == id && row.2.is_none()).for_each(|row| row.2 = Some(now));
            rows.push((id, now, None));
        }
    }
    rows.sort_unstable();
    rows
}

fn definition() -> TableDefinition {
    TableDefinition {
        schema: schema(),
        keys: vec!["id".into()],
        properties: BTreeMap::default(),
        comment: None,
    }
}

fn formats(store: &Arc<InMemory>, mode: WriteMode) -> Vec<Arc<dyn TableFormat>> {
    let store: Arc<dyn ObjectStore> = Arc::<InMemory>::clone(store);
    vec![
        Arc::new(MemoryFormat::with_store(Arc::clone(&store), tiny_in(mode))),
        Arc::new(DeltaFormat::new(Arc::clone(&store), Path::from("lake")).with_options(tiny_in(mode))),
        Arc::new(iceberg(store).with_options(tiny_in(mode))),
    ]
}

async fn objects(store: &InMemory) -> usize {
    store.list(None).try_collect::<Vec<_>>().await.unwrap().len()
}

#[tokio::test]
async fn t20_compaction_and_expiry_change_no_answer() {
    for mode in MODES {
        let store = Arc::new(InMemory::new());
        for format in formats(&store, mode) {
            let what = format!("{} {mode}", format.name());
            let table = format.create("t", &definition()).await.unwrap();
            let mut versions = Vec::new();
            for number in 1..=40 {
                apply(table.as_ref(), number).await.unwrap();
                versions.push((table.snapshot().await.unwrap().version().0, expected(number)));
            }
            let last = versions[39].0;
            assert_eq!(rows_at(table.as_ref(), None).await, expected(40), "{what}");

            let wanted = MaintainOptions { dry_run: true, ..COMPACT };
            let dry = table.maintain(&wanted).await.unwrap();
            assert!(dry.compacted.files > 0 && dry.commits == 0 && dry.before == dry.after, "{what} {dry:?}");
            let done = table.maintain(&COMPACT).await.unwrap();
            assert!(done.commits > 0 && done.compacted.files >= dry.compacted.files, "{what} {done:?}");
            assert!(done.notices.is_empty() && done.conflicts == 0, "{what} {done:?}");
            let (again, newest) =
                (table.maintain(&COMPACT).await.unwrap(), table.snapshot().await.unwrap().version().0);
            assert_eq!((again.commits, again.before), (0, done.after), "{what} {again:?}");

            for (version, rows) in &versions {
                assert_eq!(&rows_at(table.as_ref(), Some(*version)).await, rows, "{what} {version}");
            }
            assert_eq!(rows_at(table.as_ref(), None).await, expected(40), "{what}");
            check_lookups(table.as_ref(), &expected(40), &what).await;
            let commits = table.commits(Some(TableVersion(last)), TableVersion(newest)).await.unwrap();
            assert!(commits.iter().all(|commit| commit.kind == CommitKind::Nothing), "{what} {commits:?}");
            let changes = table.changes(TableVersion(last + 1), TableVersion(newest)).await.unwrap();
            let changed: Vec<_> = changes.try_collect().await.unwrap();
            assert_eq!(changed.iter().map(RecordBatch::num_rows).sum::<usize>(), 0, "{what}");

            // A batch goes on as before, and what is old goes.
            apply(table.as_ref(), 41).await.unwrap();
            let before = objects(&store).await;
            let expiry = MaintainOptions { expire_before: Some(LATE), ..COMPACT };
            let done = table.maintain(&expiry).await.unwrap();
            assert!(done.notices.is_empty() && done.versions_expired > 0, "{what} {done:?}");
            assert!(done.removed.files > 0 && objects(&store).await < before, "{what} {done:?}");
            assert_eq!(rows_at(table.as_ref(), None).await, expected(41), "{what}");
            apply(table.as_ref(), 42).await.unwrap();
            let reopened = format.open("t").await.unwrap().unwrap();
            assert_eq!(rows_at(reopened.as_ref(), None).await, expected(42), "{what}");
        }
    }
}

/// Look-ups find what they found, and a bounded one does not read closed rows.
async fn check_lookups(table: &dyn Table, rows: &[Row], what: &str) {
    let snapshot = table.snapshot().await.unwrap();
    let ids: Vec<i64> = (0..100).step_by(3).collect();
    let before = table.read_counts();
    let found: Vec<_> =
        snapshot.lookup(&plan(&ids, Some(10_000))).await.unwrap().try_collect().await.unwrap();
    let bounded = table.read_counts() - before;
    let current: Vec<_> = found.iter().flat_map(|rows| unbatch(&rows.batch)).collect();
    let wanted = rows.iter().filter(|row| ids.contains(&row.0) && row.2.is_none()).count();
    assert_eq!(current.len(), wanted, "{what}");
    let found: Vec<_> = snapshot.lookup(&plan(&ids, None)).await.unwrap().try_collect().await.unwrap();
    let all = table.read_counts() - before - bounded;
    let mut every: Vec<_> = found.iter().flat_map(|rows| unbatch(&rows.batch)).collect();
    every.sort_unstable();
    let wanted: Vec<_> = rows.iter().filter(|row| ids.contains(&row.0)).copied().collect();
    assert_eq!(every, wanted, "{what}");
    assert!(bounded.files < all.files, "{what}: {bounded:?} {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn t20_a_flow_beside_maintenance_loses_and_doubles_nothing() {
    for mode in MODES {
        for format in formats(&Arc::new(InMemory::new()), mode) {
            let what = format!("{} {mode}", format.name());
            let made = format.create("t", &definition()).await.unwrap();
            let other = format.open("t").await.unwrap().unwrap();
            let flow = tokio::spawn(async move {
                for number in 1..=40 {
                    apply(made.as_ref(), number).await.unwrap();
                }
            });
            let mut commits = 0;
            while !flow.is_finished() {
                commits += other.maintain(&COMPACT).await.unwrap().commits;
                tokio::task::yield_now().await;
            }
            flow.await.unwrap();
            // Beside a flow that never rests, each compaction may come second.
            commits += other.maintain(&COMPACT).await.unwrap().commits;
            assert!(commits > 0, "{what}");
            assert_eq!(rows_at(other.as_ref(), None).await, expected(40), "{what}");
        }
    }
}

/// Rows of an append come on top of a compaction's commit, whichever is first.
#[tokio::test]
async fn appends_and_compactions_are_no_conflict() {
    for format in formats(&Arc::new(InMemory::new()), WriteMode::Auto) {
        let table = format.create("t", &definition()).await.unwrap();
        let mut rows = Vec::new();
        for number in 1..=10_u64 {
            let old = table.snapshot().await.unwrap();
            let _done = table.maintain(&COMPACT).await.unwrap();
            let new = (number.cast_signed(), 0, None);
            let stamp = CommitStamp { state: StateVersion(0), ..stamp(number) };
            let change = TableChange::Append(stream::iter([Ok(batch(&[new]))]).boxed());
            let outcome = table.commit(old.as_ref(), change, &stamp).await.unwrap();
            assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
            rows.push(new);
        }
        assert_eq!(rows_at(table.as_ref(), None).await, rows, "{}", format.name());
    }
}

#[tokio::test]
async fn maintenance_killed_at_any_operation_changes_no_answer() {
    let delta = |store: Arc<dyn ObjectStore>| {
        DeltaFormat::new(store, Path::from("lake")).with_options(tiny_in(WriteMode::MergeOnRead))
    };
    let prepared = Arc::new(InMemory::new());
    let table = delta(Arc::<InMemory>::clone(&prepared)).create("t", &definition()).await.unwrap();
    for number in 1..=12 {
        apply(table.as_ref(), number).await.unwrap();
    }
    let options = MaintainOptions { expire_before: Some(LATE), ..COMPACT };
    let mut killed = 0;
    for after in [false, true] {
        let (first, step) = if cfg!(slow) { (0, 1) } else { (i64::from(after), 5) };
        for operations in (first..).step_by(step) {
            let disk = Arc::new(prepared.fork());
            let mortal = Arc::new(Mortal::new(Arc::<InMemory>::clone(&disk), operations, after));
            let end = async {
                let table =
                    delta(Arc::<Mortal>::clone(&mortal) as Arc<dyn ObjectStore>).open("t").await?.unwrap();
                table.maintain(&options).await
            }
            .await;
            let table = delta(disk).open("t").await.unwrap().unwrap();
            assert_eq!(rows_at(table.as_ref(), None).await, expected(12), "{operations} {after}");
            if mortal.left() >= 0 {
                assert!(end.is_ok(), "{end:?}");
                break;
            }
            killed += 1;
            apply(table.as_ref(), 13).await.unwrap();
            let _done = table.maintain(&options).await.unwrap();
            assert_eq!(rows_at(table.as_ref(), None).await, expected(13), "{operations} {after}");
        }
    }
    assert!(killed > 10, "{killed}");
}
