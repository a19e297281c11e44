//! Which tables of Delta are maintained, which are refused, and by which name.

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStoreExt, path::Path};
use serde_json::{Value, json};
use strandline_table_formats::{
    CommitOutcome, ErrorKind, LakeOptions, LookupPlan, TableChange, TableDefinition, TableFormat, WriteMode,
};

use super::delta::{Fixture, rows, stamp};

/// Writes a log entry as some program did.
async fn entry(fixture: &Fixture, version: u64, actions: &[Value]) {
    let lines: Vec<_> = actions.iter().map(ToString::to_string).collect();
    let path = Path::from(format!("lake/t/_delta_log/{version:020}.json"));
    fixture.store.put(&path, lines.join("\n").into()).await.unwrap();
}

/// The metadata of version 1, with more properties and something said of a column.
async fn metadata(fixture: &Fixture, properties: &Value, said: &Value) -> Value {
    let text = fixture.entry().await;
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut metadata = lines.find_map(|line| line.get("metaData").cloned()).unwrap();
    let own = metadata["configuration"].as_object_mut().unwrap();
    own.extend(properties.as_object().unwrap().clone());
    let mut schema: Value = serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
    schema["fields"][1]["metadata"] = said.clone();
    metadata["schemaString"] = schema.to_string().into();
    metadata
}

fn named(reader: &[&str], writer: &[&str]) -> Value {
    let mut protocol = json!({ "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": writer });
    if !reader.is_empty() {
        protocol["minReaderVersion"] = 3.into();
        protocol["readerFeatures"] = reader.into();
    }
    protocol
}

#[tokio::test]
async fn what_can_not_be_maintained_is_refused_by_name_when_a_table_is_opened() {
    let none = json!({});
    for (protocol, properties, said, name) in [
        (named(&[], &["rowTracking", "domainMetadata"]), none.clone(), none.clone(), "rowTracking"),
        (named(&[], &["clustering", "domainMetadata"]), none.clone(), none.clone(), "clustering"),
        (named(&[], &["inCommitTimestamp"]), none.clone(), none.clone(), "inCommitTimestamp"),
        (named(&[], &["icebergCompatV2"]), none.clone(), none.clone(), "icebergCompatV2"),
        (
            json!({ "minReaderVersion": 1, "minWriterVersion": 3 }),
            json!({ "delta.constraints.positive": "id > 0" }),
            none.clone(),
            "checkConstraints",
        ),
        (
            json!({ "minReaderVersion": 1, "minWriterVersion": 4 }),
            none.clone(),
            json!({ "delta.generationExpression": "id" }),
            "generatedColumns",
        ),
        (
            json!({ "minReaderVersion": 1, "minWriterVersion": 2 }),
            none.clone(),
            json!({ "delta.invariants": "{}" }),
            "invariants",
        ),
        (
            named(&[], &["allowColumnDefaults"]),
            none.clone(),
            json!({ "CURRENT_DEFAULT": "'x'" }),
            "allowColumnDefaults",
        ),
    ] {
        let fixture = Fixture::new(&[]).await;
        fixture.append(1, 0..3).await;
        let metadata = metadata(&fixture, &properties, &said).await;
        entry(&fixture, 2, &[json!({ "protocol": protocol }), json!({ "metaData": metadata })]).await;
        let opened = fixture.format.open("t").await.map(drop).unwrap_err();
        let followed = fixture.table.snapshot().await.map(drop).unwrap_err();
        for error in [opened, followed] {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}");
            assert!(error.to_string().contains(name), "{name}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn features_that_are_there_and_not_made_use_of_are_kept() {
    let many = [
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "identityColumns",
        "allowColumnDefaults",
        "domainMetadata",
    ];
    for (protocol, kept) in [
        (json!({ "minReaderVersion": 1, "minWriterVersion": 6 }), 3),
        (named(&["deletionVectors"], &[many.as_slice(), &["deletionVectors"]].concat()), 9),
    ] {
        let options =
            LakeOptions { write_mode: WriteMode::MergeOnRead, mask_rows: 1, ..LakeOptions::default() };
        let fixture = Fixture::with_options(&[], options).await;
        fixture.append(1, 0..10).await;
        let metadata = metadata(&fixture, &json!({}), &json!({ "comment": "what it is" })).await;
        entry(&fixture, 2, &[json!({ "protocol": protocol }), json!({ "metaData": metadata })]).await;
        let outcome = fixture.change(2, 0..1, vec![rows(10..11)]).await;
        assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
        assert_eq!(fixture.ids().await, (1..11).collect::<Vec<_>>());
        assert_eq!(fixture.kernel_ids().await, (1..11).collect::<Vec<_>>());
        let entry = fixture.entry().await;
        let upgraded = entry.lines().find(|line| line.contains("\"protocol\""));
        let protocol = upgraded
            .map_or(protocol, |line| serde_json::from_str::<Value>(line).unwrap()["protocol"].clone());
        let features = protocol["writerFeatures"].as_array().unwrap();
        assert!(features.len() >= kept, "{features:?}");
        assert!(features.contains(&"deletionVectors".into()), "{features:?}");
    }
}

#[tokio::test]
async fn tables_that_lose_no_row_get_rows_and_lose_none() {
    let fixture = Fixture::new(&[("delta.appendOnly", "true")]).await;
    fixture.append(1, 0..10).await;
    let base = fixture.table.snapshot().await.unwrap();
    let refused = fixture.table.commit(base.as_ref(), TableChange::Empty, &stamp(2)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("delta.appendOnly"), "{refused}");
    fixture.append(2, 10..12).await;
    assert_eq!(fixture.ids().await, (0..12).collect::<Vec<_>>());
}

/// A table of partitions that somebody made, with a file in each of two.
async fn partitioned(fixture: &Fixture) {
    let schema = json!({ "type": "struct", "fields": [
        { "name": "id", "type": "long", "nullable": true, "metadata": {} },
        { "name": "region", "type": "string", "nullable": true, "metadata": {} },
    ] });
    let metadata = json!({
        "id": "7c2f4f5e-0000-4000-8000-000000000001", "format": { "provider": "parquet", "options": {} },
        "schemaString": schema.to_string(), "partitionColumns": ["region"],
        "configuration": { "strandline.keys": "[\"id\"]" },
    });
    let mut actions = vec![
        json!({ "protocol": named(&["deletionVectors"], &["appendOnly", "deletionVectors"]) }),
        json!({ "metaData": metadata }),
    ];
    for (region, from) in [("north", 0), ("south", 10)] {
        let ids: ArrayRef = std::sync::Arc::new(Int64Array::from_iter_values(from..from + 5));
        let file = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let path = format!("region={region}/x.parquet");
        let add = fixture.other_file(&path, &file, false).await;
        actions.push(json!({ "add": { "path": path, "partitionValues": { "region": region },
            "size": add.size, "modificationTime": 1, "dataChange": true } }));
    }
    for version in 0..2 {
        fixture.store.delete(&Path::from(format!("lake/t/_delta_log/{version:020}.json"))).await.unwrap();
    }
    entry(fixture, 0, &actions).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_table_of_partitions_are_found_deleted_and_not_written() {
    let options = LakeOptions { write_mode: WriteMode::MergeOnRead, mask_rows: 1, ..LakeOptions::default() };
    let fixture = Fixture::with_options(&[], options).await;
    fixture.append(1, 0..1).await;
    partitioned(&fixture).await;
    let table = fixture.opened().await;
    let base = table.snapshot().await.unwrap();
    let keys = |regions: &[&str], ids: &[i64]| {
        let regions: ArrayRef = std::sync::Arc::new(StringArray::from(regions.to_vec()));
        let ids: ArrayRef = std::sync::Arc::new(Int64Array::from(ids.to_vec()));
        RecordBatch::try_from_iter([("region", regions), ("id", ids)]).unwrap()
    };
    for columns in [None, Some(vec!["region".to_owned()]), Some(vec!["id".to_owned(), "region".to_owned()])] {
        let keys = Some(keys(&["north", "south", "south"], &[2, 2, 12]));
        let plan = LookupPlan { keys, columns: columns.clone(), bound: None };
        let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
        let mut regions: Vec<String> = found
            .iter()
            .flat_map(|rows| {
                let column = std::sync::Arc::clone(rows.batch.column_by_name("region").unwrap());
                (0..rows.batch.num_rows())
                    .map(move |row| arrow_cast::display::array_value_to_string(&column, row).unwrap())
            })
            .collect();
        regions.sort();
        assert_eq!(regions, ["north", "south"], "{columns:?}");
    }
    let plan = LookupPlan { keys: Some(keys(&["south"], &[11])), columns: None, bound: None };
    let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
    let deletes = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
    let change = TableChange::Rows { deletes, inserts: Vec::new() };
    let landed = table.commit(base.as_ref(), change, &stamp(1)).await.unwrap();
    assert!(matches!(landed, CommitOutcome::Committed(_)), "{landed:?}");
    let left: Vec<i64> = (0..5).chain([10, 12, 13, 14]).collect();
    assert_eq!(fixture.ids().await, left);
    assert_eq!(fixture.kernel_ids().await, left);
    // New rows are refused by name, and a table that replaces it has no partitions.
    let base = table.snapshot().await.unwrap();
    let rows_of_both = keys(&["west"], &[1]).project(&[1, 0]).unwrap();
    let change = TableChange::Append(stream::iter([Ok(rows_of_both.clone())]).boxed());
    let refused = table.commit(base.as_ref(), change, &stamp(2)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("partition"), "{refused}");
    let definition = TableDefinition {
        schema: rows_of_both.schema(),
        keys: vec!["id".into()],
        properties: std::collections::BTreeMap::default(),
        comment: None,
    };
    let rows = stream::iter([Ok(rows_of_both)]).boxed();
    let change = TableChange::Replace { definition: Box::new(definition), rows };
    let landed = table.commit(base.as_ref(), change, &stamp(3)).await.unwrap();
    assert!(matches!(landed, CommitOutcome::Committed(_)), "{landed:?}");
    assert_eq!(fixture.ids().await, [1]);
    assert_eq!(fixture.kernel_ids().await, [1]);
}
