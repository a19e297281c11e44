//! The change feed that a Delta table of ours records where its property asks for it.

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStoreExt, path::Path};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use strandline_table_formats::{
    CommitKind, CommitOutcome, LakeOptions, LookupPlan, Table, TableChange, TableDefinition, TableFormat,
    TableVersion, WriteMode,
};

use super::delta::{Fixture, rows, stamp};

const FEED: (&str, &str) = ("delta.enableChangeDataFeed", "true");

async fn fixture(write_mode: WriteMode) -> Fixture {
    let options = LakeOptions { write_mode, mask_rows: 1, ..LakeOptions::default() };
    Fixture::with_options(&[FEED], options).await
}

fn rows_of(pairs: &[(i64, &str)]) -> RecordBatch {
    let ids = Int64Array::from_iter_values(pairs.iter().map(|(id, _)| *id));
    let values = StringArray::from_iter_values(pairs.iter().map(|(_, value)| *value));
    RecordBatch::try_new(rows(0..0).schema(), vec![std::sync::Arc::new(ids), std::sync::Arc::new(values)])
        .unwrap()
}

/// Each row of some columns as text, sorted.
fn lines(batches: &[RecordBatch], columns: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let value =
                |name: &&str| array_value_to_string(batch.column_by_name(name).unwrap(), row).unwrap();
            lines.push(columns.iter().map(value).collect::<Vec<_>>().join(" "));
        }
    }
    lines.sort();
    lines
}

/// What the table's own changes of its newest version are.
async fn changes(table: &dyn Table) -> (CommitKind, Vec<String>) {
    let version = table.snapshot().await.unwrap().version();
    let commits = table.commits(version.0.checked_sub(1).map(TableVersion), version).await.unwrap();
    let batches: Vec<_> = table.changes(version, version).await.unwrap().try_collect().await.unwrap();
    (commits[0].kind, lines(&batches, &["id", "value", "_change_type"]))
}

/// The recorded rows of the newest version, from the files themselves; `None` when nothing is recorded.
async fn recorded(fixture: &Fixture) -> Option<Vec<String>> {
    let entry = fixture.entry().await;
    let actions = entry.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let files: Vec<Value> = actions.filter_map(|action| action.get("cdc").cloned()).collect();
    let mut batches = Vec::new();
    for file in &files {
        assert_eq!((&file["dataChange"], &file["partitionValues"]), (&false.into(), &serde_json::json!({})));
        let path = file["path"].as_str().unwrap();
        assert!(path.starts_with("_change_data/"), "{path}");
        let bytes =
            fixture.store.get(&Path::from(format!("lake/t/{path}"))).await.unwrap().bytes().await.unwrap();
        assert_eq!(file["size"], bytes.len());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap();
        batches.extend(reader.map(Result::unwrap));
    }
    let names: Vec<_> = batches
        .iter()
        .flat_map(|batch| batch.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>())
        .collect();
    assert!(names.iter().all(|name| ["id", "value", "_change_type"].contains(&name.as_str())), "{names:?}");
    (!files.is_empty()).then(|| lines(&batches, &["id", "value", "_change_type"]))
}

fn committed(outcome: &CommitOutcome) {
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn t14_a_commit_records_what_changed_row_by_row() {
    for mode in [WriteMode::CopyOnWrite, WriteMode::MergeOnRead] {
        let fixture = fixture(mode).await;
        fixture.append(1, 0..10).await;
        assert_eq!(recorded(&fixture).await, None, "rows only came");
        // One row changed, one went, one came.
        committed(&fixture.change(2, 2..4, vec![rows_of(&[(3, "new"), (20, "v20")])]).await);
        let expected = ["2 v2 delete", "20 v20 insert", "3 new update_postimage", "3 v3 update_preimage"];
        assert_eq!(recorded(&fixture).await.unwrap(), expected);
        let (kind, told) = changes(fixture.table.as_ref()).await;
        assert_eq!((kind, told.as_slice()), (CommitKind::Change, &expected.map(str::to_owned)[..]));
        // A key that changes is another row.
        committed(&fixture.change(3, 5..6, vec![rows_of(&[(50, "v5")])]).await);
        assert_eq!(recorded(&fixture).await.unwrap(), ["5 v5 delete", "50 v5 insert"]);
        // A row of a file goes.
        committed(&fixture.change(4, 6..7, Vec::new()).await);
        assert_eq!(recorded(&fixture).await.unwrap(), ["6 v6 delete"]);
        // A row that is as it was is no change, though it moves.
        committed(&fixture.change(5, 7..8, vec![rows(7..8)]).await);
        assert_eq!(recorded(&fixture).await, None);
        assert_eq!(changes(fixture.table.as_ref()).await, (CommitKind::Nothing, Vec::new()));
        assert_eq!(fixture.ids().await, [0, 1, 3, 4, 7, 8, 9, 20, 50]);
        assert_eq!(fixture.kernel_ids().await, [0, 1, 3, 4, 7, 8, 9, 20, 50]);
    }
}

#[tokio::test]
async fn t14_whole_files_tell_it_where_they_can() {
    let fixture = fixture(WriteMode::Auto).await;
    fixture.append(1, 0..3).await;
    let base = fixture.table.snapshot().await.unwrap();
    let all = TableChange::Overwrite(stream::iter([Ok(rows(5..6))]).boxed());
    committed(&fixture.table.commit(base.as_ref(), all, &stamp(2)).await.unwrap());
    assert_eq!(recorded(&fixture).await, None);
    let told = changes(fixture.table.as_ref()).await.1;
    assert_eq!(told, ["0 v0 delete", "1 v1 delete", "2 v2 delete", "5 v5 insert"]);
    committed(&fixture.change(3, 5..6, Vec::new()).await);
    assert_eq!(recorded(&fixture).await, None);
    assert_eq!(changes(fixture.table.as_ref()).await.1, ["5 v5 delete"]);
}

#[tokio::test]
async fn t14_rows_that_move_to_a_wider_column_are_no_change() {
    let fixture = fixture(WriteMode::Auto).await;
    let definition = |value: ArrayRef| {
        let id: ArrayRef = std::sync::Arc::new(Int64Array::from_iter_values((0..).take(value.len())));
        RecordBatch::try_from_iter([("id", id), ("value", value)]).unwrap()
    };
    let narrow = definition(std::sync::Arc::new(Int32Array::from(vec![1, 2])));
    let table = fixture
        .format
        .create(
            "w",
            &TableDefinition {
                schema: narrow.schema(),
                keys: vec!["id".into()],
                properties: [(FEED.0.to_owned(), FEED.1.to_owned())].into(),
                comment: None,
            },
        )
        .await
        .unwrap();
    for (batch, rows) in [(1, narrow), (2, definition(std::sync::Arc::new(Int64Array::from(vec![1 << 40]))))]
    {
        let base = table.snapshot().await.unwrap();
        let change = TableChange::Append(stream::iter([Ok(rows)]).boxed());
        committed(&table.commit(base.as_ref(), change, &stamp(batch)).await.unwrap());
    }
    assert_eq!(
        changes(table.as_ref()).await,
        (CommitKind::Change, vec![format!("0 {} insert", 1_i64 << 40)])
    );
}

#[tokio::test]
async fn t14_versions_of_a_key_are_rows_of_their_own() {
    type Version = (i64, i64, Option<i64>);
    let fixture = fixture(WriteMode::Auto).await;
    let history = |rows: &[Version]| {
        let column = |pick: fn(&Version) -> Option<i64>| -> ArrayRef {
            std::sync::Arc::new(rows.iter().map(pick).collect::<Int64Array>())
        };
        let columns = [
            ("id", column(|row| Some(row.0))),
            ("__START_AT", column(|row| Some(row.1))),
            ("__END_AT", column(|row| row.2)),
        ];
        RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, name == "__END_AT")),
        )
        .unwrap()
    };
    let definition = TableDefinition {
        schema: history(&[]).schema(),
        keys: vec!["id".into()],
        properties: [(FEED.0.to_owned(), FEED.1.to_owned())].into(),
        comment: None,
    };
    let table = fixture.format.create("h", &definition).await.unwrap();
    let first = vec![history(&[(1, 10, None), (2, 10, None)])];
    let base = table.snapshot().await.unwrap();
    let change = TableChange::Rows { deletes: Vec::new(), inserts: first };
    committed(&table.commit(base.as_ref(), change, &stamp(1)).await.unwrap());
    // The open version of key 1 is closed, and a new one begins.
    let base = table.snapshot().await.unwrap();
    let keys = Some(history(&[(1, 0, None)]).project(&[0]).unwrap());
    let plan = LookupPlan { keys, columns: None, bound: None };
    let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
    let deletes = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
    let inserts = vec![history(&[(1, 10, Some(20)), (1, 20, None)])];
    committed(&table.commit(base.as_ref(), TableChange::Rows { deletes, inserts }, &stamp(2)).await.unwrap());
    let batches: Vec<_> =
        table.changes(TableVersion(2), TableVersion(2)).await.unwrap().try_collect().await.unwrap();
    assert_eq!(
        lines(&batches, &["id", "__START_AT", "__END_AT", "_change_type"]),
        ["1 10  update_preimage", "1 10 20 update_postimage", "1 20  insert"]
    );
}
