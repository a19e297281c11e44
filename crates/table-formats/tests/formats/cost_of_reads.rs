//! A look-up reads what its keys need: counted in bytes, in files, row groups and pages that are proportionally small.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, memory::InMemory, path::Path};
use strandline_cdc_core::Bound;
use strandline_table_formats::{
    CommitOutcome, DeltaFormat, LakeOptions, LookupPlan, MemoryFormat, ReadCounts, Table, TableChange,
    TableDefinition, TableFormat, WriteOptions,
};

use super::cost::{rows, stamp};

/// Rows of the table: a few files of a few row groups each.
const ROWS: i64 = 300_000;
/// Changes of a batch: as many to a row as ten thousand to ten million.
const CHANGES: i64 = 300;

fn options() -> LakeOptions {
    let files = WriteOptions {
        file_rows: 64 << 10,
        group_rows: 32 << 10,
        page_rows: 1 << 10,
        ..WriteOptions::default()
    };
    LakeOptions { files, ..LakeOptions::default() }
}

fn definition(schema: Arc<Schema>) -> TableDefinition {
    TableDefinition { schema, keys: vec!["id".into()], properties: BTreeMap::default(), comment: None }
}

/// A table of these rows, opened anew: nothing of it is remembered.
async fn table(name: &str, chunks: Vec<RecordBatch>) -> Arc<dyn Table> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let memory = MemoryFormat::with_store(Arc::clone(&store), options());
    let delta = DeltaFormat::new(store, Path::from("lake")).with_options(options());
    let format: &dyn TableFormat = if name == "memory" { &memory } else { &delta };
    let made = format.create("t", &definition(chunks[0].schema())).await.unwrap();
    let base = made.snapshot().await.unwrap();
    let change = TableChange::Append(stream::iter(chunks.into_iter().map(Ok)).boxed());
    let outcome = made.commit(base.as_ref(), change, &stamp(1)).await.unwrap();
    assert!(matches!(outcome, CommitOutcome::Committed(_)));
    format.open("t").await.unwrap().unwrap()
}

async fn numbered(name: &str) -> Arc<dyn Table> {
    let chunks = (0..ROWS / 10_000).map(|c| rows(&(c * 10_000..(c + 1) * 10_000), 0));
    table(name, chunks.collect()).await
}

/// What a look-up read, and how many rows it found.
async fn looked_up(table: &dyn Table, plan: &LookupPlan) -> (ReadCounts, usize) {
    let before = table.read_counts();
    let snapshot = table.snapshot().await.unwrap();
    let found: Vec<_> = snapshot.lookup(plan).await.unwrap().try_collect().await.unwrap();
    (table.read_counts() - before, found.iter().map(|rows| rows.batch.num_rows()).sum())
}

async fn scanned(table: &dyn Table) -> ReadCounts {
    let before = table.read_counts();
    let rows = table.snapshot().await.unwrap().scan(None).await.unwrap();
    let rows: Vec<_> = rows.try_collect().await.unwrap();
    assert!(!rows.is_empty());
    table.read_counts() - before
}

fn of_ids(ids: impl Iterator<Item = i64>) -> LookupPlan {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    LookupPlan { keys: Some(RecordBatch::try_from_iter([("id", ids)]).unwrap()), columns: None, bound: None }
}

fn percent(part: ReadCounts, all: ReadCounts) -> u64 {
    100 * part.bytes / all.bytes
}

#[tokio::test]
async fn t19_changes_clustered_in_key_read_less_than_5_percent() {
    for format in ["memory", "delta"] {
        let all = scanned(numbered(format).await.as_ref()).await;
        let one = numbered(format).await;
        let (read, found) = looked_up(one.as_ref(), &of_ids(100_000..100_000 + CHANGES)).await;
        assert_eq!((found, read.files), (300, 1), "{format}");
        assert!(percent(read, all) < 5, "{format}: {read:?} of {all:?}");
        // The same again: footers are remembered.
        let (again, _) = looked_up(one.as_ref(), &of_ids(100_000..100_000 + CHANGES)).await;
        assert!(again.bytes < read.bytes && again.files == 1, "{format}: {again:?} after {read:?}");
    }
}

#[tokio::test]
async fn columns_that_nobody_asks_for_are_not_read() {
    let one = numbered("memory").await;
    let scattered = of_ids((0..CHANGES).map(|i| i * 1_000));
    let (all_columns, found) = looked_up(one.as_ref(), &scattered).await;
    let narrow = LookupPlan { columns: Some(vec!["n0".into()]), ..scattered };
    let (few_columns, same) = looked_up(one.as_ref(), &narrow).await;
    assert_eq!((found, same), (300, 300));
    assert!(few_columns.bytes * 3 < all_columns.bytes, "{few_columns:?} {all_columns:?}");
}

/// A key of 32 characters that says nothing of its number.
fn text_key(i: i64) -> String {
    let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
    let more = (mixed >> 13).wrapping_mul(0x2545_f491_4f6c_dd1d);
    format!("{mixed:016x}{more:016x}")
}

fn text_rows(numbers: impl Iterator<Item = i64>) -> RecordBatch {
    let mut keys: Vec<_> = numbers.map(text_key).collect();
    keys.sort();
    let value: ArrayRef = Arc::new(Int64Array::from_iter_values((0..).take(keys.len())));
    let keys: ArrayRef = Arc::new(StringArray::from(keys));
    RecordBatch::try_from_iter([("id", keys), ("n", value)]).unwrap()
}

/// The same keys in a row group of every file, as many small files of changes have them.
#[tokio::test]
async fn filters_spare_keys_that_are_not_there_and_cost_little_where_they_are() {
    let chunks: Vec<_> = (0..4_i64).map(|c| text_rows(c * 30_000..(c + 1) * 30_000)).collect();
    let one = table("memory", chunks).await;
    let keys = |numbers: std::ops::Range<i64>| LookupPlan {
        keys: Some(text_rows(numbers).project(&[0]).unwrap()),
        columns: None,
        bound: None,
    };
    let all = scanned(one.as_ref()).await;
    let (absent, none) = looked_up(one.as_ref(), &keys(1_000_000..1_000_020)).await;
    assert_eq!(none, 0);
    assert!(percent(absent, all) < 15, "{absent:?} of {all:?}");
    let (present, found) = looked_up(one.as_ref(), &keys(100..400)).await;
    assert_eq!(found, 300);
    assert!(percent(present, all) < 110, "{present:?} of {all:?}");
}

/// Closed versions lie in other files than current ones: a look-up from a late moment on does not read them.
#[tokio::test]
async fn closed_versions_before_the_bound_are_not_read() {
    let fields = ["id", "__START_AT", "__END_AT"].map(|name| Field::new(name, DataType::Int64, name != "id"));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let versions = |ends: bool| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS / 4));
        let starts: ArrayRef =
            Arc::new((0..ROWS / 4).map(|i| Some(i % 1000 + i64::from(!ends) * 1000)).collect::<Int64Array>());
        let end: ArrayRef =
            Arc::new((0..ROWS / 4).map(|i| ends.then_some(i % 1000 + 1000)).collect::<Int64Array>());
        RecordBatch::try_new(Arc::clone(&schema), vec![ids, starts, end]).unwrap()
    };
    let one = table("delta", vec![versions(true), versions(false)]).await;
    let all = scanned(one.as_ref()).await;
    let late: ArrayRef = Arc::new(Int64Array::from(vec![5000; 1000]));
    let bound = Bound { column: "__END_AT".into(), at_least: late, until: None };
    let plan = LookupPlan { bound: Some(bound), ..of_ids((0..1000).map(|i| i * 70)) };
    let (read, found) = looked_up(one.as_ref(), &plan).await;
    assert_eq!(found, 1000);
    let unbound = LookupPlan { bound: None, ..plan };
    let (unbound, both) = looked_up(one.as_ref(), &unbound).await;
    assert_eq!(both, 2000);
    assert!(read.files < unbound.files && read.bytes * 3 < unbound.bytes * 2, "{read:?} {unbound:?} {all:?}");
}

#[tokio::test]
#[ignore = "a measurement"]
async fn sizes_of_files_by_rows_of_a_page() {
    for page_rows in [20_000, 8 << 10, 4 << 10, 2 << 10, 1 << 10] {
        let files = WriteOptions { page_rows, ..WriteOptions::default() };
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let format =
            MemoryFormat::with_store(Arc::clone(&store), LakeOptions { files, ..LakeOptions::default() });
        let chunks: Vec<_> = (0..26).map(|c| rows(&(c * 10_000..(c + 1) * 10_000), 0)).collect();
        let made = format.create("t", &definition(chunks[0].schema())).await.unwrap();
        let base = made.snapshot().await.unwrap();
        let change = TableChange::Append(stream::iter(chunks.into_iter().map(Ok)).boxed());
        let outcome = made.commit(base.as_ref(), change, &stamp(1)).await.unwrap();
        println!("{page_rows}: {outcome:?}");
    }
}
