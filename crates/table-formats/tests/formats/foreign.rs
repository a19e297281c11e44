//! Delta tables that other writers made: rows, partition columns, deletion vectors, change feed, and what is refused.

use std::{fs, path::Path, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, cast::AsArray, types::Int64Type};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path as StorePath};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use strandline_table_formats::{
    BatchStream, CommitKind, CommitStamp, DeltaFormat, ErrorKind, StateVersion, Table, TableChange,
    TableDefinition, TableFormat, TableVersion, WriterId,
};

use super::delta::vector_file;

fn format() -> DeltaFormat {
    DeltaFormat::new(Arc::new(InMemory::new()), StorePath::from("lake"))
}

async fn open(path: &Path) -> Arc<dyn Table> {
    format().open_path(path.to_str().unwrap()).await.unwrap().unwrap()
}

fn orders() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/orders")
}

/// Each row as text, sorted: its columns, but for the time of its commit.
async fn lines(rows: BatchStream) -> Vec<String> {
    let batches: Vec<RecordBatch> = rows.try_collect().await.unwrap();
    let mut lines = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let columns = batch
                .schema()
                .fields()
                .iter()
                .zip(batch.columns())
                .filter(|(f, _)| f.name() != "_commit_timestamp")
                .map(|(_, c)| arrow_cast::display::array_value_to_string(c, row).unwrap())
                .collect::<Vec<_>>();
            lines.push(columns.join(" "));
        }
    }
    lines.sort();
    lines
}

#[tokio::test]
async fn rows_of_a_partitioned_table_have_all_their_columns() {
    let table = open(&orders()).await;
    let now = table.snapshot().await.unwrap();
    assert_eq!(now.version(), TableVersion(5));
    let rows = lines(now.scan(None).await.unwrap()).await;
    assert_eq!(rows, ["1 north 11", "2 south 20", "3 north 30", "5 west 50", "6 south 60"]);
    let first = table.at(TableVersion(1)).await.unwrap();
    assert_eq!(
        lines(first.scan(None).await.unwrap()).await,
        ["1 north 10", "2 south 20", "3 north 30", "4 south 40"]
    );
    let names = ["region".to_owned()];
    let batches: Vec<RecordBatch> = now.scan(Some(&names)).await.unwrap().try_collect().await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_columns() == 1 && batch.column(0).null_count() == 0));
}

#[tokio::test]
async fn t14_the_change_feed_of_another_writer_is_read_as_it_recorded_it() {
    let table = open(&orders()).await;
    let kinds: Vec<_> = table
        .commits(None, TableVersion(5))
        .await
        .unwrap()
        .iter()
        .map(|c| (c.kind, c.removes_files))
        .collect();
    let (append, change) = (CommitKind::Append, CommitKind::Change);
    assert_eq!(
        kinds,
        [
            (append, false),
            (append, false),
            (change, true),
            (CommitKind::Nothing, true),
            (change, true),
            (append, false)
        ]
    );
    let changes = lines(table.changes(TableVersion(1), TableVersion(5)).await.unwrap()).await;
    assert_eq!(
        changes,
        [
            "1 north 10 update_preimage 2",
            "1 north 11 update_postimage 2",
            "3 north 30 insert 1",
            "4 south 40 delete 4",
            "4 south 40 insert 1",
            "5 west 50 insert 2",
            "6 south 60 insert 5"
        ]
    );
    let commits = table.commits(Some(TableVersion(1)), TableVersion(2)).await.unwrap();
    assert_eq!(table.first_since(commits[0].timestamp).await.unwrap(), Some(TableVersion(2)));
    assert_eq!(table.first_since(commits[0].timestamp + 1).await.unwrap(), Some(TableVersion(3)));
    assert_eq!(table.first_since(0).await.unwrap(), Some(TableVersion(0)));
}

/// What tables with column mapping have, and others ignore.
fn mapped(id: usize, name: &str) -> Value {
    json!({ "delta.columnMapping.id": id, "delta.columnMapping.physicalName": name })
}

/// When the first of them is made.
const BEGIN: i64 = 1_700_000_000_000;

/// A table whose log the test writes itself.
struct Handmade {
    folder: tempfile::TempDir,
    version: usize,
}

impl Handmade {
    fn new(protocol: &Value, configuration: &Value) -> Self {
        Self::partitioned(protocol, configuration, &[])
    }

    /// A table whose folders tell these columns, which allow no NULL.
    fn partitioned(protocol: &Value, configuration: &Value, by: &[&str]) -> Self {
        let schema = json!({ "type": "struct", "fields": [
            { "name": "id", "type": "long", "nullable": true, "metadata": mapped(1, "id") },
            { "name": "name", "type": "string", "nullable": !by.contains(&"name"), "metadata": mapped(2, "name") },
        ] });
        let metadata = json!({ "metaData": {
            "id": "7c2f4f5e-0000-4000-8000-000000000001", "format": { "provider": "parquet", "options": {} },
            "schemaString": schema.to_string(), "partitionColumns": by, "configuration": configuration,
        } });
        let mut table = Self { folder: tempfile::tempdir().unwrap(), version: 0 };
        fs::create_dir(table.folder.path().join("_delta_log")).unwrap();
        table.commit(&[json!({ "protocol": protocol }), metadata]);
        table
    }

    fn commit(&mut self, actions: &[Value]) {
        self.commit_at(BEGIN + i64::try_from(self.version).unwrap(), actions);
    }

    fn commit_at(&mut self, millis: i64, actions: &[Value]) {
        let info = json!({ "commitInfo": { "timestamp": millis } });
        let lines: Vec<String> = actions.iter().chain([&info]).map(ToString::to_string).collect();
        let name = format!("_delta_log/{:020}.json", self.version);
        fs::write(self.folder.path().join(name), lines.join("\n")).unwrap();
        self.version += 1;
    }

    /// A file of rows from 0, and its action.
    fn file(&self, name: &str, rows: i64) -> Value {
        let ids: ArrayRef = Arc::new(Int64Array::from((0..rows).collect::<Vec<_>>()));
        let names: ArrayRef =
            Arc::new(StringArray::from((0..rows).map(|n| format!("{name}{n}")).collect::<Vec<_>>()));
        self.written(name, &RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap())
    }

    /// A file of a partitioned table: ids from 0, all of one name.
    fn partition(&self, name: &str, rows: i64, of: &str) -> Value {
        let ids: ArrayRef = Arc::new(Int64Array::from((0..rows).collect::<Vec<_>>()));
        let file = self.written(name, &RecordBatch::try_from_iter([("id", ids)]).unwrap());
        with(&file, "partitionValues", &json!({ "name": of }))
    }

    fn written(&self, name: &str, batch: &RecordBatch) -> Value {
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        fs::write(self.folder.path().join(name), &bytes).unwrap();
        json!({ "path": name, "partitionValues": {}, "size": bytes.len(), "modificationTime": 0, "dataChange": true })
    }

    /// A deletion vector in a file of its own, as an action names it.
    fn vector(&self, rows: &[u64]) -> Value {
        let (bytes, size) = vector_file(rows);
        fs::create_dir_all(self.folder.path().join("ab")).unwrap();
        fs::write(
            self.folder.path().join("ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"),
            bytes,
        )
        .unwrap();
        json!({ "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1,
            "sizeInBytes": size, "cardinality": rows.len() })
    }
}

fn vectors() -> Value {
    json!({ "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "changeDataFeed"] })
}

fn with(action: &Value, key: &str, value: &Value) -> Value {
    let mut action = action.clone();
    action[key] = value.clone();
    action
}

#[tokio::test]
async fn rows_that_a_deletion_vector_marks_are_not_there_and_their_deletion_is_a_change() {
    let mut table = Handmade::new(&vectors(), &json!({ "delta.enableChangeDataFeed": "true" }));
    let file = table.file("a", 5);
    table.commit(&[json!({ "add": file })]);
    let vector = table.vector(&[1, 3]);
    table.commit(&[json!({ "remove": file }), json!({ "add": with(&file, "deletionVector", &vector) })]);
    let opened = open(table.folder.path()).await;
    let now = opened.snapshot().await.unwrap();
    assert_eq!(lines(now.scan(None).await.unwrap()).await, ["0 a0", "2 a2", "4 a4"]);
    let path = now.appended_since(None).await.unwrap()[0].path.clone();
    assert_eq!(lines(now.read_file(&path).await.unwrap()).await.len(), 3);
    let changes = lines(opened.changes(TableVersion(2), TableVersion(2)).await.unwrap()).await;
    assert_eq!(changes, ["1 a1 delete 2", "3 a3 delete 2"]);
    // One that was altered is an error, not more rows.
    let file = table.folder.path().join("ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
    let mut bytes = fs::read(&file).unwrap();
    bytes[6] ^= 1;
    fs::write(&file, bytes).unwrap();
    let broken: Result<Vec<RecordBatch>, _> = now.scan(None).await.unwrap().try_collect().await;
    assert!(broken.is_err());
}

#[tokio::test]
async fn what_is_not_read_right_is_refused_by_name() {
    let mapped = json!({ "minReaderVersion": 2, "minWriterVersion": 5 });
    let typed = json!({ "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["variantType"], "writerFeatures": ["variantType"] });
    for (protocol, configuration, name) in [
        (mapped, json!({ "delta.columnMapping.mode": "name" }), "columnMapping"),
        (typed, json!({}), "variantType"),
    ] {
        let table = Handmade::new(&protocol, &configuration);
        let error = format().open_path(table.folder.path().to_str().unwrap()).await.unwrap_err();
        let text = format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string));
        assert!(text.contains(name), "{text}");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}");
    }
    let plain = json!({ "minReaderVersion": 1, "minWriterVersion": 2 });
    let mut table = Handmade::new(&plain, &json!({}));
    let file = table.file("a", 2);
    table.commit(&[json!({ "add": file })]);
    let opened = open(table.folder.path()).await;
    let base = opened.snapshot().await.unwrap();
    assert!(base.check_changes().unwrap_err().to_string().contains("delta.enableChangeDataFeed"));
    assert_eq!(
        opened.changes(TableVersion(1), TableVersion(1)).await.err().unwrap().kind(),
        ErrorKind::Unsupported
    );
    let writer = WriterId { pipeline: "p".into(), flow: "f".into(), incarnation: 0 };
    let stamp = CommitStamp { writer, batch: 1, state: StateVersion(0), epoch: 0 };
    let written = opened.commit(base.as_ref(), TableChange::Append(stream::empty().boxed()), &stamp).await;
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(format().open_path("/no/such/folder").await.unwrap().is_none());
    let error = format().open_path("s3://bucket/table").await.unwrap_err();
    assert!(error.to_string().contains("s3"), "{error}");
}

#[tokio::test]
async fn files_that_were_vacuumed_are_named_with_the_version_that_needs_them() {
    let mut table = Handmade::new(&vectors(), &json!({ "delta.enableChangeDataFeed": "true" }));
    let (a, b) = (table.file("a", 2), table.file("b", 2));
    table.commit(&[json!({ "add": a })]);
    table.commit(&[json!({ "remove": a }), json!({ "add": b })]);
    let opened = open(table.folder.path()).await;
    fs::remove_file(table.folder.path().join("a")).unwrap();
    let changes: Result<Vec<RecordBatch>, _> =
        opened.changes(TableVersion(2), TableVersion(2)).await.unwrap().try_collect().await;
    let error = changes.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("version 2"), "{error}");
    let first = opened.at(TableVersion(1)).await.unwrap();
    let read: Result<Vec<RecordBatch>, _> = first.read_file("a").await.unwrap().try_collect().await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_log_that_was_cleaned_up_is_named() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let format = DeltaFormat::new(Arc::clone(&store), StorePath::from("lake"));
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let rows = RecordBatch::try_from_iter([("id", id)]).unwrap();
    let definition = TableDefinition {
        schema: rows.schema(),
        keys: Vec::new(),
        properties: std::collections::BTreeMap::default(),
        comment: None,
    };
    let table = format.create("t", &definition).await.unwrap();
    let writer = WriterId { pipeline: "p".into(), flow: "f".into(), incarnation: 0 };
    for batch in 1..=21 {
        let base = table.snapshot().await.unwrap();
        let stamp = CommitStamp { writer: writer.clone(), batch, state: StateVersion(0), epoch: 0 };
        let change = TableChange::Append(stream::iter([Ok(rows.clone())]).boxed());
        let _outcome = table.commit(base.as_ref(), change, &stamp).await.unwrap();
    }
    for version in 0..=9 {
        let entry = StorePath::from(format!("lake/t/_delta_log/{version:020}.json"));
        store.delete(&entry).await.unwrap();
    }
    let table = format.open("t").await.unwrap().unwrap();
    assert_eq!(table.commits(Some(TableVersion(9)), TableVersion(21)).await.unwrap().len(), 12);
    let error = table.commits(Some(TableVersion(8)), TableVersion(21)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("version 9"), "{error}");
    assert_eq!(table.first_since(0).await.unwrap(), Some(TableVersion(10)));
}

#[tokio::test]
async fn numbers_of_rows_come_from_the_log_or_are_a_guess() {
    let table = open(&orders()).await;
    let files = table.snapshot().await.unwrap().appended_since(None).await.unwrap();
    assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 5);
    let mut handmade = Handmade::new(&json!({ "minReaderVersion": 1, "minWriterVersion": 2 }), &json!({}));
    let file = handmade.file("a", 2);
    handmade.commit(&[json!({ "add": file })]);
    let now = open(handmade.folder.path()).await.snapshot().await.unwrap();
    assert!(now.appended_since(None).await.unwrap()[0].rows > 0);
    let batches: Vec<RecordBatch> = now.scan(None).await.unwrap().try_collect().await.unwrap();
    assert_eq!(
        batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).sum::<i64>(),
        1
    );
}

#[tokio::test]
async fn t14_a_removed_file_has_its_partition_values_where_its_entry_leaves_them_out() {
    let mut table =
        Handmade::partitioned(&vectors(), &json!({ "delta.enableChangeDataFeed": "true" }), &["name"]);
    let (old, new) = (table.partition("a", 3, "x"), table.partition("b", 2, "x"));
    table.commit(&[json!({ "add": old })]);
    let remove = json!({ "path": "a", "dataChange": true, "deletionTimestamp": BEGIN });
    table.commit(&[json!({ "remove": remove }), json!({ "add": new })]);
    // A file that the version before does not have.
    let remove = with(&remove, "path", &json!("c"));
    table.commit(&[json!({ "remove": remove })]);
    let opened = open(table.folder.path()).await;
    let changes = lines(opened.changes(TableVersion(2), TableVersion(2)).await.unwrap()).await;
    assert_eq!(changes, ["2 x delete 2"]);
    let error = opened.changes(TableVersion(3), TableVersion(3)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("version 3"), "{error}");
}

#[tokio::test]
async fn partition_columns_that_allow_no_null_are_read_and_rows_counted() {
    let mut table = Handmade::partitioned(&vectors(), &json!({}), &["name"]);
    let (x, y) = (table.partition("a", 3, "x"), table.partition("b", 1, "y"));
    let vector = table.vector(&[1]);
    table.commit(&[json!({ "add": with(&x, "deletionVector", &vector) }), json!({ "add": y })]);
    let now = open(table.folder.path()).await.snapshot().await.unwrap();
    assert_eq!(lines(now.scan(None).await.unwrap()).await, ["0 x", "0 y", "2 x"]);
    let names = ["name".to_owned(), "id".to_owned()];
    assert_eq!(lines(now.scan(Some(&names)).await.unwrap()).await, ["x 0", "x 2", "y 0"]);
    let batches: Vec<RecordBatch> = now.scan(Some(&[])).await.unwrap().try_collect().await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
}

#[tokio::test]
async fn t14_the_first_version_since_a_moment_where_the_clocks_of_writers_disagree() {
    let mut table = Handmade::new(&vectors(), &json!({}));
    for at in [100, 90, 200] {
        let file = table.file(&format!("at{at}"), 1);
        table.commit_at(BEGIN + at, &[json!({ "add": file })]);
    }
    let opened = open(table.folder.path()).await;
    for (since, first) in [(0, Some(0)), (1, Some(1)), (95, Some(1)), (101, Some(3)), (201, None)] {
        let found = opened.first_since(BEGIN + since).await.unwrap();
        assert_eq!(found, first.map(TableVersion), "since {since}");
    }
}
