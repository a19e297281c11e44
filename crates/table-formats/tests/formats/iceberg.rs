//! Iceberg tables: what their snapshots say, answers that are lost, writers at once, and what others wrote.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use arrow_array::{Array, Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, future, stream};
use iceberg::{
    TableRequirement, TableUpdate,
    spec::{NestedField, NestedFieldRef, Operation, Schema as IcebergSchema, TableMetadata},
};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory};
use strandline_table_formats::{
    CommitOutcome, CommitStamp, ErrorKind, IcebergFormat, LookupPlan, Result, StateVersion, Table,
    TableChange, TableDefinition, TableFormat, TableVersion, WriteMode, WriterId,
    iceberg::{Catalog, Creation, Loaded, MemoryCatalog, Swap, Warehouse},
    metadata::TableMetadata as _,
};

use super::{conformance::tiny_in, fault::Mortal};

/// A catalog that loses the answer of its next commit: it was swapped, and the client learns nothing, or hears that
/// somebody else was first.
#[derive(Debug)]
struct Lossy {
    catalog: MemoryCatalog,
    loses: AtomicU8,
}

const NOTHING: u8 = 1;
const CONFLICT: u8 = 2;

#[async_trait]
impl Catalog for Lossy {
    async fn list(&self) -> Result<Vec<String>> {
        self.catalog.list().await
    }

    async fn load(&self, table: &str) -> Result<Option<Loaded>> {
        self.catalog.load(table).await
    }

    async fn create(&self, table: &str, creation: Creation) -> Result<Loaded> {
        self.catalog.create(table, creation).await
    }

    async fn commit(
        &self,
        table: &str,
        base: &Loaded,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<Swap> {
        let swapped = self.catalog.commit(table, base, requirements, updates).await?;
        match self.loses.swap(0, Ordering::SeqCst) {
            NOTHING => Err(strandline_table_formats::Error::new(ErrorKind::Unavailable, "no answer")),
            CONFLICT => Ok(Swap::Lost),
            _ => Ok(swapped),
        }
    }
}

struct Lake {
    store: Arc<InMemory>,
    catalog: Arc<Lossy>,
}

impl Lake {
    fn new() -> Self {
        let catalog = Lossy { catalog: MemoryCatalog::new("memory://lake"), loses: AtomicU8::new(0) };
        Self { store: Arc::new(InMemory::new()), catalog: Arc::new(catalog) }
    }

    fn format(&self, mode: WriteMode) -> IcebergFormat {
        let warehouse = Warehouse::new(Arc::<InMemory>::clone(&self.store), "memory://");
        let catalog: Arc<dyn Catalog> = Arc::<Lossy>::clone(&self.catalog);
        IcebergFormat::new(catalog, warehouse).with_options(tiny_in(mode))
    }

    async fn metadata(&self) -> Arc<TableMetadata> {
        self.catalog.load("t").await.unwrap().unwrap().metadata
    }

    /// Another engine changes the table's metadata.
    async fn others(&self, updates: Vec<TableUpdate>) {
        let loaded = self.catalog.load("t").await.unwrap().unwrap();
        let swapped = self.catalog.commit("t", &loaded, Vec::new(), updates).await.unwrap();
        assert!(matches!(swapped, Swap::Swapped(_)));
    }

    async fn files(&self) -> BTreeSet<String> {
        let listed: Vec<_> = self.store.list(None).try_collect().await.unwrap();
        listed.iter().map(|object| object.location.as_ref().replacen("lake/t/", "", 1)).collect()
    }
}

fn rows(keys: impl IntoIterator<Item = i64>, value: i64) -> RecordBatch {
    let keys: Int64Array = keys.into_iter().map(Some).collect();
    let values = Int64Array::from(vec![value; keys.len()]);
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("value", DataType::Int64, true),
    ]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(keys), Arc::new(values)]).unwrap()
}

fn definition() -> TableDefinition {
    let (keys, properties) = (vec!["id".to_owned()], BTreeMap::new());
    TableDefinition { schema: rows([], 0).schema(), keys, properties, comment: Some("c".into()) }
}

fn stamp(flow: &str, batch: u64) -> CommitStamp {
    let writer = WriterId { pipeline: "p".into(), flow: flow.into(), incarnation: 0 };
    CommitStamp { writer, batch, state: StateVersion(0), epoch: 3 }
}

fn append(batch: RecordBatch) -> TableChange {
    TableChange::Append(stream::iter([Ok(batch)]).boxed())
}

async fn commit(table: &dyn Table, change: TableChange, stamp: &CommitStamp) -> TableVersion {
    let base = table.snapshot().await.unwrap();
    match table.commit(base.as_ref(), change, stamp).await.unwrap() {
        CommitOutcome::Committed(committed) => TableVersion(committed.version),
        other @ (CommitOutcome::AlreadyApplied { .. } | CommitOutcome::Conflict { .. }) => {
            panic!("{other:?}")
        }
    }
}

/// Deletes rows by key, and inserts them anew with another value.
async fn update(table: &dyn Table, keys: impl IntoIterator<Item = i64>, value: i64, batch: u64) {
    let new = rows(keys, value);
    let base = table.snapshot().await.unwrap();
    let plan = LookupPlan { keys: Some(new.project(&[0]).unwrap()), columns: None, bound: None };
    let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
    let deletes = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
    let change = TableChange::Rows { deletes, inserts: vec![new] };
    let landed = table.commit(base.as_ref(), change, &stamp("f", batch)).await.unwrap();
    assert!(matches!(landed, CommitOutcome::Committed(_)), "{landed:?}");
}

async fn read_at(table: &dyn Table, at: Option<TableVersion>) -> BTreeMap<i64, Option<i64>> {
    let snapshot = match at {
        None => table.snapshot().await.unwrap(),
        Some(version) => table.at(version).await.unwrap(),
    };
    let batches: Vec<RecordBatch> = snapshot.scan(None).await.unwrap().try_collect().await.unwrap();
    let mut all = BTreeMap::new();
    for batch in &batches {
        let (keys, values) =
            (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        for i in 0..batch.num_rows() {
            let value = (!values.is_null(i)).then(|| values.value(i));
            assert_eq!(all.insert(keys.value(i), value), None, "key {} comes twice", keys.value(i));
        }
    }
    all
}

async fn read(table: &dyn Table) -> BTreeMap<i64, Option<i64>> {
    read_at(table, None).await
}

fn count(lines: &HashMap<String, String>, name: &str) -> u64 {
    lines.get(name).map_or(0, |count| count.parse().unwrap())
}

#[tokio::test]
async fn t19_snapshots_say_what_came_and_went_and_only_changed_manifests_are_written() {
    for mode in [WriteMode::CopyOnWrite, WriteMode::MergeOnRead] {
        let lake = Lake::new();
        let format = lake.format(mode);
        let table = format.create("t", &definition()).await.unwrap();
        let first = commit(table.as_ref(), append(rows(0..1000, 0)), &stamp("f", 1)).await;
        commit(table.as_ref(), append(rows(1000..1200, 0)), &stamp("f", 2)).await;
        update(table.as_ref(), (3..900).step_by(100), 7, 3).await;
        update(table.as_ref(), (3..900).step_by(50), 8, 4).await;
        let mut expected: BTreeMap<_, _> = (0..1200).map(|key| (key, Some(0))).collect();
        expected.extend((3..900).step_by(50).map(|key| (key, Some(8))));
        assert_eq!(read(table.as_ref()).await, expected);
        assert_eq!(read(format.open("t").await.unwrap().unwrap().as_ref()).await, expected);
        assert_eq!(read_at(table.as_ref(), Some(first)).await, (0..1000).map(|key| (key, Some(0))).collect());

        let metadata = lake.metadata().await;
        let mut totals = (0_i64, 0_i64, 0_i64);
        let mut snapshots: Vec<_> = metadata.snapshots().collect();
        snapshots.sort_by_key(|snapshot| snapshot.sequence_number());
        assert_eq!(snapshots.len(), 4);
        for snapshot in snapshots {
            let lines = &snapshot.summary().additional_properties;
            let signed = |name: &str| i64::try_from(count(lines, name)).unwrap();
            totals.0 += signed("added-records") - signed("deleted-records");
            totals.1 += signed("added-data-files") - signed("deleted-data-files");
            totals.2 += signed("added-position-deletes") - signed("removed-position-deletes");
            let told =
                (signed("total-records"), signed("total-data-files"), signed("total-position-deletes"));
            assert_eq!(told, totals, "{lines:?}");
            let appended = snapshot.sequence_number() <= 2;
            assert_eq!(snapshot.summary().operation == Operation::Append, appended, "{lines:?}");
            assert!(lines.contains_key("strandline.stamp") && lines.contains_key("strandline.marks"));
        }
        assert_eq!(totals.0 - totals.2, 1200, "rows that count");
        assert_eq!(totals.2 > 0, mode == WriteMode::MergeOnRead);
        assert_eq!(metadata.default_sort_order().fields.len(), 1);
        assert_eq!(metadata.current_schema().identifier_field_ids().len(), 1);
        assert_eq!(metadata.properties().get("comment").map(String::as_str), Some("c"));
    }
}

#[tokio::test]
async fn t20_stamps_and_rows_outlive_expiry_and_named_files_are_those_that_are_needed() {
    let lake = Lake::new();
    let format = lake.format(WriteMode::MergeOnRead);
    let table = format.create("t", &definition()).await.unwrap();
    let first = commit(table.as_ref(), append(rows(0..500, 0)), &stamp("f", 1)).await;
    commit(table.as_ref(), append(rows(500..600, 0)), &stamp("g", 9)).await;
    for batch in 2..6 {
        update(table.as_ref(), (0..400).step_by(90), i64::try_from(batch).unwrap(), batch).await;
    }
    let level_2 = format.metadata("t").await.unwrap().unwrap();
    let named = level_2.named_files(0).await.unwrap();
    let unnamed: Vec<_> = lake.files().await.into_iter().filter(|file| !named.contains(file)).collect();
    assert!(unnamed.is_empty(), "every file is named by some version: {unnamed:?}");

    let before = read(table.as_ref()).await;
    assert_eq!(level_2.expire(0).await.unwrap(), 0);
    assert_eq!(level_2.expire(i64::MAX).await.unwrap(), 5);
    let named = level_2.named_files(0).await.unwrap();
    let mut removed = 0;
    for file in lake.files().await.into_iter().filter(|file| !named.contains(file)) {
        lake.store.delete(&format!("lake/t/{file}").into()).await.unwrap();
        removed += 1;
    }
    assert!(removed > 5, "lists, manifests and files of deletes of older versions went: {removed}");
    let table = format.open("t").await.unwrap().unwrap();
    assert_eq!(read(table.as_ref()).await, before);
    let snapshot = table.snapshot().await.unwrap();
    assert_eq!(snapshot.last_batch(&stamp("g", 0).writer), Some(9), "its snapshot is forgotten");
    assert_eq!((snapshot.last_batch(&stamp("f", 0).writer), snapshot.epoch()), (Some(5), 3));
    assert_eq!(table.at(first).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(table.at(TableVersion(0)).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(table.commits(None, snapshot.version()).await.unwrap_err().kind(), ErrorKind::NotFound);
    commit(table.as_ref(), append(rows(900..901, 1)), &stamp("g", 10)).await;
}

#[tokio::test]
async fn t03_a_commit_whose_answer_was_lost_is_found() {
    let lake = Lake::new();
    let format = lake.format(WriteMode::Auto);
    let table = format.create("t", &definition()).await.unwrap();
    lake.catalog.loses.store(CONFLICT, Ordering::SeqCst);
    let version = commit(table.as_ref(), append(rows([1, 2], 0)), &stamp("f", 1)).await;
    assert_eq!((version, read(table.as_ref()).await.len()), (TableVersion(1), 2));
    lake.catalog.loses.store(NOTHING, Ordering::SeqCst);
    let base = table.snapshot().await.unwrap();
    let lost = table.commit(base.as_ref(), append(rows([3], 0)), &stamp("f", 2)).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Unavailable);
    let newest = table.snapshot().await.unwrap();
    assert_eq!(newest.last_batch(&stamp("f", 0).writer), Some(2));
    let again = table.commit(newest.as_ref(), append(rows([3], 0)), &stamp("f", 2)).await.unwrap();
    assert!(matches!(again, CommitOutcome::AlreadyApplied { batch: 2 }), "{again:?}");
    assert_eq!(read(table.as_ref()).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn t05_writers_at_once_lose_nothing_and_double_nothing() {
    let lake = Lake::new();
    let format = Arc::new(lake.format(WriteMode::MergeOnRead));
    format.create("t", &definition()).await.unwrap();
    let writer = |number: i64| {
        let format = Arc::clone(&format);
        async move {
            let table = format.open("t").await.unwrap().unwrap();
            for batch in 1..=12 {
                let key = number * 100 + i64::try_from(batch).unwrap();
                loop {
                    let base = table.snapshot().await.unwrap();
                    let change = if batch % 3 == 0 {
                        TableChange::Rows { deletes: Vec::new(), inserts: vec![rows([key], 0)] }
                    } else {
                        append(rows([key], 0))
                    };
                    let flow = format!("f{number}");
                    match table.commit(base.as_ref(), change, &stamp(&flow, batch)).await.unwrap() {
                        CommitOutcome::Committed(_) => break,
                        CommitOutcome::Conflict { .. } => {}
                        CommitOutcome::AlreadyApplied { .. } => panic!("nobody else commits this batch"),
                    }
                }
            }
        }
    };
    future::join_all((0..6).map(|number| tokio::spawn(writer(number))))
        .await
        .into_iter()
        .for_each(|ended| ended.unwrap());
    let table = format.open("t").await.unwrap().unwrap();
    assert_eq!(read(table.as_ref()).await.len(), 72);
    assert_eq!(table.snapshot().await.unwrap().version(), TableVersion(72));
    let lines = lake.metadata().await.current_snapshot().unwrap().summary().additional_properties.clone();
    assert_eq!(count(&lines, "total-records"), 72);
}

#[tokio::test]
async fn many_small_manifests_become_one() {
    let lake = Lake::new();
    let format = lake.format(WriteMode::CopyOnWrite);
    let table = format.create("t", &definition()).await.unwrap();
    for batch in 1..=120 {
        let key = i64::try_from(batch).unwrap();
        commit(table.as_ref(), append(rows([key], 0)), &stamp("f", batch)).await;
    }
    assert_eq!(read(format.open("t").await.unwrap().unwrap().as_ref()).await.len(), 120);
    let level_2 = format.metadata("t").await.unwrap().unwrap();
    level_2.expire(i64::MAX).await.unwrap();
    let named = level_2.named_files(0).await.unwrap();
    let manifests = named.iter().filter(|file| is_avro(file) && !file.contains("snap-")).count();
    assert!(manifests < 60, "{manifests} manifests are left");
}

#[tokio::test]
async fn a_property_that_somebody_sets_is_in_nobodys_way() {
    let lake = Lake::new();
    let table = lake.format(WriteMode::Auto).create("t", &definition()).await.unwrap();
    let base = table.snapshot().await.unwrap();
    let updates = HashMap::from([("owner".to_owned(), "else".to_owned())]);
    lake.others(vec![TableUpdate::SetProperties { updates }]).await;
    let change = TableChange::Rows { deletes: Vec::new(), inserts: vec![rows([1], 0)] };
    let landed = table.commit(base.as_ref(), change, &stamp("f", 1)).await.unwrap();
    assert!(matches!(landed, CommitOutcome::Committed(_)), "{landed:?}");
    let properties = table.snapshot().await.unwrap().properties().clone();
    assert_eq!(properties.get("owner").map(String::as_str), Some("else"));
    assert!(!properties.contains_key("strandline.marks"), "marks are no property to a reader");
}

/// The table's fields, each changed or left out.
fn fields(of: &TableMetadata, change: impl Fn(&NestedField) -> Option<NestedField>) -> Vec<NestedFieldRef> {
    of.current_schema().as_struct().fields().iter().filter_map(|field| change(field).map(Arc::new)).collect()
}

async fn with_fields(lake: &Lake, fields: Vec<NestedFieldRef>) {
    let schema = IcebergSchema::builder().with_fields(fields).build().unwrap();
    lake.others(vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }])
        .await;
}

#[tokio::test]
async fn an_append_that_took_another_number_for_its_column_is_a_conflict() {
    let lake = Lake::new();
    let table = lake.format(WriteMode::Auto).create("t", &definition()).await.unwrap();
    let base = table.snapshot().await.unwrap();
    let metadata = lake.metadata().await;
    // Somebody adds two columns, ours among them: under a number that is not the one that our file has for it.
    let mut new = fields(&metadata, |field| Some(field.clone()));
    let long = || iceberg::spec::Type::Primitive(iceberg::spec::PrimitiveType::Long);
    new.push(Arc::new(NestedField::optional(3, "other", long())));
    new.push(Arc::new(NestedField::optional(4, "more", long())));
    with_fields(&lake, new).await;
    let mut wider: Vec<_> = rows([1], 0).schema().fields().iter().cloned().collect();
    wider.push(Arc::new(Field::new("more", DataType::Int64, true)));
    let mut columns = rows([1], 0).columns().to_vec();
    columns.push(Arc::new(Int64Array::from(vec![5])));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(wider)), columns).unwrap();
    let outcome = table.commit(base.as_ref(), append(batch.clone()), &stamp("f", 1)).await.unwrap();
    assert!(matches!(outcome, CommitOutcome::Conflict { .. }), "{outcome:?}");
    commit(table.as_ref(), append(batch), &stamp("f", 1)).await;
    let snapshot = table.snapshot().await.unwrap();
    let rows: Vec<_> = snapshot.scan(Some(&["more".into()])).await.unwrap().try_collect().await.unwrap();
    assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), 5);
}

/// The same table in a store that dies after some operations.
async fn dying(prepared: &Lake, operations: i64, after: bool) -> (Lake, Arc<Mortal>, Result<()>) {
    let catalog = Lossy { catalog: prepared.catalog.catalog.fork(), loses: AtomicU8::new(0) };
    let lake = Lake { store: Arc::new(prepared.store.fork()), catalog: Arc::new(catalog) };
    let mortal = Arc::new(Mortal::new(Arc::<InMemory>::clone(&lake.store), operations, after));
    let catalog: Arc<dyn Catalog> = Arc::<Lossy>::clone(&lake.catalog);
    let warehouse = Warehouse::new(Arc::<Mortal>::clone(&mortal), "memory://");
    let format = IcebergFormat::new(catalog, warehouse).with_options(tiny_in(WriteMode::MergeOnRead));
    let end = async {
        let table = format.open("t").await?.unwrap();
        let base = table.snapshot().await?;
        let new = rows((0..200).step_by(30), 9);
        let plan = LookupPlan { keys: Some(new.project(&[0])?), columns: None, bound: None };
        let found: Vec<_> = base.lookup(&plan).await?.try_collect().await?;
        let deletes = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
        let change = TableChange::Rows { deletes, inserts: vec![new] };
        let _outcome = table.commit(base.as_ref(), change, &stamp("f", 9)).await?;
        Ok(())
    };
    let end = end.await;
    (lake, mortal, end)
}

#[tokio::test]
async fn t04_a_commit_killed_at_any_operation_is_whole_or_absent() {
    let lake = Lake::new();
    let table = lake.format(WriteMode::MergeOnRead).create("t", &definition()).await.unwrap();
    commit(table.as_ref(), append(rows(0..200, 0)), &stamp("f", 1)).await;
    update(table.as_ref(), [3, 30, 60], 5, 2).await;
    let before = read(table.as_ref()).await;
    let mut after_it = before.clone();
    after_it.extend((0..200).step_by(30).map(|key| (key, Some(9))));
    let mut killed = 0;
    for after in [false, true] {
        for operations in 0.. {
            let (lake, mortal, end) = dying(&lake, operations, after).await;
            let table = lake.format(WriteMode::MergeOnRead).open("t").await.unwrap().unwrap();
            let landed = table.snapshot().await.unwrap().last_batch(&stamp("f", 0).writer) == Some(9);
            let expected = if landed { &after_it } else { &before };
            assert_eq!(&read(table.as_ref()).await, expected, "killed at {operations}, after {after}");
            if mortal.left() >= 0 {
                assert!(end.is_ok() && landed, "{end:?}");
                break;
            }
            killed += 1;
            if !landed {
                update(table.as_ref(), (0..200).step_by(30), 9, 9).await;
                assert_eq!(read(table.as_ref()).await, after_it);
            }
        }
    }
    assert!(killed > 10, "{killed}");
}

/// A snapshot that another engine commits on the main branch: the manifests of before, and one of deletes.
async fn foreign_deletes(lake: &Lake, file: iceberg::spec::DataFile) {
    use iceberg::spec::{
        MAIN_BRANCH, ManifestListWriter, ManifestWriterBuilder, Snapshot, SnapshotReference,
        SnapshotRetention, Summary,
    };
    let metadata = lake.metadata().await;
    let parent = metadata.current_snapshot().unwrap();
    let warehouse = Warehouse::new(Arc::<InMemory>::clone(&lake.store), "memory://");
    let io = strandline_table_formats::iceberg::file_io(&warehouse);
    let (id, sequence) = (77, metadata.next_sequence_number());
    let output = io.new_output("memory://lake/t/metadata/foreign-m0.avro").unwrap();
    let schema = Arc::clone(metadata.current_schema());
    let spec = metadata.default_partition_spec().as_ref().clone();
    let mut writer = ManifestWriterBuilder::new(output, Some(id), schema, spec).build_v2_deletes();
    writer.add_file(file, -1).unwrap();
    let manifest = writer.write_manifest_file().await.unwrap();
    let path = parent.manifest_list().replacen("memory://", "", 1);
    let bytes = lake.store.get(&path.into()).await.unwrap().bytes().await.unwrap();
    let list = iceberg::spec::ManifestList::parse_with_version(&bytes, metadata.format_version()).unwrap();
    let url = "memory://lake/t/metadata/foreign-list.avro";
    let output = io.new_output(url).unwrap().writer().await.unwrap();
    let mut writer = ManifestListWriter::v2(output, id, Some(parent.snapshot_id()), sequence);
    writer.add_manifests(list.consume_entries().into_iter().chain([manifest])).unwrap();
    writer.close().await.unwrap();
    let summary = Summary { operation: Operation::Delete, additional_properties: HashMap::new() };
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(Some(parent.snapshot_id()))
        .with_sequence_number(sequence)
        .with_timestamp_ms(parent.timestamp_ms() + 1)
        .with_manifest_list(url)
        .with_summary(summary)
        .with_schema_id(metadata.current_schema_id())
        .build();
    let reference = SnapshotReference::new(id, SnapshotRetention::branch(None, None, None));
    lake.others(vec![
        TableUpdate::AddSnapshot { snapshot },
        TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference },
    ])
    .await;
}

/// A file of deletes in the table's folder, and what a manifest says of it.
async fn delete_file(
    lake: &Lake,
    batch: &RecordBatch,
    content: iceberg::spec::DataContentType,
) -> iceberg::spec::DataFile {
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    let size = bytes.len() as u64;
    lake.store.put(&"lake/t/data/foreign deletes.parquet".into(), bytes.into()).await.unwrap();
    let mut builder = iceberg::spec::DataFileBuilder::default();
    builder
        .content(content)
        .file_path("memory://lake/t/data/foreign deletes.parquet".to_owned())
        .file_format(iceberg::spec::DataFileFormat::Parquet)
        .record_count(batch.num_rows() as u64)
        .file_size_in_bytes(size)
        .equality_ids((content == iceberg::spec::DataContentType::EqualityDeletes).then(|| vec![1]));
    builder.build().unwrap()
}

#[tokio::test]
async fn position_deletes_of_others_apply_to_older_files_and_are_kept_by_our_masks() {
    let lake = Lake::new();
    let format = lake.format(WriteMode::MergeOnRead);
    let table = format.create("t", &definition()).await.unwrap();
    commit(table.as_ref(), append(rows(0..300, 0)), &stamp("f", 1)).await;
    commit(table.as_ref(), append(rows(300..600, 0)), &stamp("f", 2)).await;
    let files = table.snapshot().await.unwrap().appended_since(None).await.unwrap();
    let urls = files.iter().flat_map(|file| vec![Some(format!("memory://lake/t/{}", file.path)); 2]);
    let urls: arrow_array::StringArray = urls.collect();
    let columns: Vec<(&str, arrow_array::ArrayRef)> =
        vec![("file_path", Arc::new(urls)), ("pos", Arc::new(Int64Array::from(vec![0, 299, 0, 150])))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = delete_file(&lake, &batch, iceberg::spec::DataContentType::PositionDeletes).await;
    foreign_deletes(&lake, file).await;
    let before = read(table.as_ref()).await;
    assert_eq!(before.len(), 596, "one file of deletes is of both data files");
    assert_eq!(read_at(table.as_ref(), Some(TableVersion(2))).await.len(), 600);
    // A file that comes later has none of these deletes.
    commit(table.as_ref(), append(rows(1000..1300, 0)), &stamp("f", 3)).await;
    assert_eq!(read(table.as_ref()).await.len(), 896);
    // Ours come on top of theirs.
    let keys: Vec<i64> = before.keys().copied().filter(|key| key % 97 == 3).collect();
    update(table.as_ref(), keys.clone(), 5, 4).await;
    let mut expected = before;
    expected.extend((1000..1300).map(|key| (key, Some(0))));
    expected.extend(keys.iter().map(|key| (*key, Some(5))));
    assert_eq!(read(table.as_ref()).await, expected);
    assert_eq!(read(format.open("t").await.unwrap().unwrap().as_ref()).await, expected);
    let kinds: Vec<_> = table.commits(None, TableVersion(5)).await.unwrap();
    assert_eq!(kinds.len(), 6);
    let changes: Vec<_> =
        table.changes(TableVersion(3), TableVersion(5)).await.unwrap().try_collect().await.unwrap();
    let changed: usize = changes.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(changed, 4 + 300 + 2 * keys.len());
}

#[tokio::test]
async fn equality_deletes_of_others_are_refused_with_a_remedy() {
    let lake = Lake::new();
    let table = lake.format(WriteMode::Auto).create("t", &definition()).await.unwrap();
    commit(table.as_ref(), append(rows(0..10, 0)), &stamp("f", 1)).await;
    let keys = rows([3], 0).project(&[0]).unwrap();
    let file = delete_file(&lake, &keys, iceberg::spec::DataContentType::EqualityDeletes).await;
    foreign_deletes(&lake, file).await;
    let refused = table.snapshot().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("equality") && refused.to_string().contains("compact"), "{refused}");
}

/// The data files of the newest version.
async fn data_files(lake: &Lake) -> Vec<iceberg::spec::DataFile> {
    let metadata = lake.metadata().await;
    let warehouse = Warehouse::new(Arc::<InMemory>::clone(&lake.store), "memory://");
    let io = strandline_table_formats::iceberg::file_io(&warehouse);
    let path = metadata.current_snapshot().unwrap().manifest_list().replacen("memory://", "", 1);
    let bytes = lake.store.get(&path.into()).await.unwrap().bytes().await.unwrap();
    let list = iceberg::spec::ManifestList::parse_with_version(&bytes, metadata.format_version()).unwrap();
    let mut files = Vec::new();
    for manifest in list.consume_entries() {
        let manifest = manifest.load_manifest(&io).await.unwrap();
        let live = manifest.entries().iter().filter(|entry| entry.is_alive());
        files.extend(live.map(|entry| entry.data_file().clone()));
    }
    files.retain(|file| file.content_type() == iceberg::spec::DataContentType::Data);
    files
}

#[tokio::test]
async fn rows_go_to_files_of_their_partitions() {
    use iceberg::spec::{Datum, Literal, Transform, UnboundPartitionSpec};
    for mode in [WriteMode::CopyOnWrite, WriteMode::MergeOnRead] {
        let lake = Lake::new();
        let format = lake.format(mode);
        let table = format.create("t", &definition()).await.unwrap();
        commit(table.as_ref(), append(rows(0..50, 0)), &stamp("f", 1)).await;
        let base = table.snapshot().await.unwrap();
        let spec = UnboundPartitionSpec::builder()
            .add_partition_field(2, "value_is", Transform::Identity)
            .and_then(|spec| spec.add_partition_field(1, "bucket", Transform::Bucket(4)));
        let spec = spec.unwrap().build();
        lake.others(vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id: -1 }]).await;
        // Files that were written for a table without partitions are none for one with them.
        let late = table.commit(base.as_ref(), append(rows([99], 0)), &stamp("f", 2)).await.unwrap();
        assert!(matches!(late, CommitOutcome::Conflict { .. }), "{late:?}");
        commit(table.as_ref(), append(rows(100..400, 1)), &stamp("f", 2)).await;
        update(table.as_ref(), (100..200).step_by(3).chain([5, 7]), 2, 3).await;
        update(table.as_ref(), (100..200).step_by(9), 1, 4).await;
        let mut expected: BTreeMap<_, _> = (0..50).map(|key| (key, Some(0))).collect();
        expected.extend((100..400).map(|key| (key, Some(1))));
        expected.extend((100..200).step_by(3).chain([5, 7]).map(|key| (key, Some(2))));
        expected.extend((100..200).step_by(9).map(|key| (key, Some(1))));
        assert_eq!(read(table.as_ref()).await, expected);
        assert_eq!(read(format.open("t").await.unwrap().unwrap().as_ref()).await, expected);
        let files: Vec<_> = data_files(&lake).await;
        let mut seen = BTreeSet::new();
        for file in files.iter().filter(|file| !file.partition().fields().is_empty()) {
            let value = |bounds: &HashMap<i32, Datum>| Literal::from(bounds[&2].clone());
            let (low, high) = (value(file.lower_bounds()), value(file.upper_bounds()));
            assert_eq!(file.partition().fields()[0], Some(low.clone()), "{file:?}");
            assert_eq!(low, high);
            assert!(file.file_path().contains("/data/value_is="), "{file:?}");
            seen.insert(format!("{:?}", file.partition().fields()[1]));
        }
        assert_eq!(seen.len(), 4, "all buckets have rows: {seen:?}");
    }
}

fn is_avro(file: &str) -> bool {
    std::path::Path::new(file).extension().is_some_and(|extension| extension == "avro")
}

#[tokio::test]
async fn altered_manifests_and_metadata_are_errors() {
    let lake = Lake::new();
    let format = lake.format(WriteMode::MergeOnRead);
    let table = format.create("t", &definition()).await.unwrap();
    commit(table.as_ref(), append(rows(0..300, 0)), &stamp("f", 1)).await;
    update(table.as_ref(), [3, 30], 5, 2).await;
    let avro: Vec<_> = lake.files().await.into_iter().filter(|file| is_avro(file)).collect();
    assert!(avro.len() > 3);
    for file in avro {
        let path = format!("lake/t/{file}").into();
        let bytes = lake.store.get(&path).await.unwrap().bytes().await.unwrap();
        for cut in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            lake.store.put(&path, bytes.slice(..cut).into()).await.unwrap();
            // A list that was cut at a block's end has fewer manifests: that nobody can tell.
            if let Ok(Some(table)) = format.open("t").await {
                let _rows = table.snapshot().await;
            }
            let mut altered = bytes.to_vec();
            altered[cut] ^= 0x55;
            lake.store.put(&path, altered.into()).await.unwrap();
            let _opened = format.open("t").await;
        }
        lake.store.delete(&path).await.unwrap();
        let needed = lake.metadata().await.current_snapshot().unwrap().manifest_list().ends_with(&file);
        if needed {
            assert_eq!(format.open("t").await.unwrap_err().kind(), ErrorKind::Corrupt, "{file} is missing");
        }
        lake.store.put(&path, bytes.into()).await.unwrap();
    }
    assert_eq!(read(format.open("t").await.unwrap().unwrap().as_ref()).await.len(), 300);
}

#[tokio::test]
async fn columns_that_others_renamed_or_replaced_are_read_by_their_numbers() {
    let lake = Lake::new();
    let format = lake.format(WriteMode::MergeOnRead);
    let table = format.create("t", &definition()).await.unwrap();
    commit(table.as_ref(), append(rows(0..400, 7)), &stamp("f", 1)).await;
    // `value` is called `old`, and another column is called `value`.
    let mut new = fields(&lake.metadata().await.as_ref().clone(), |field| {
        let name = if field.name == "value" { "old" } else { field.name.as_str() };
        Some(NestedField { name: name.to_owned(), ..field.clone() })
    });
    let long = iceberg::spec::Type::Primitive(iceberg::spec::PrimitiveType::Long);
    new.insert(1, Arc::new(NestedField::optional(3, "value", long)));
    with_fields(&lake, new).await;
    assert_eq!(read(table.as_ref()).await, (0..400).map(|key| (key, None)).collect());
    update(table.as_ref(), (0..400).step_by(100), 9, 2).await;
    let mut expected: BTreeMap<_, _> = (0..400).map(|key| (key, None)).collect();
    expected.extend((0..400).step_by(100).map(|key| (key, Some(9))));
    let table = format.open("t").await.unwrap().unwrap();
    assert_eq!(read(table.as_ref()).await, expected);
    let snapshot = table.snapshot().await.unwrap();
    let old: Vec<_> = snapshot.scan(Some(&["old".into()])).await.unwrap().try_collect().await.unwrap();
    let sevens =
        old.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().iter().flatten().collect::<Vec<_>>());
    assert_eq!(sevens.filter(|value| *value == 7).count(), 396);
}
