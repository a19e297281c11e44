//! Deletion vectors: what is written, and that others read it.

use std::sync::Arc;

use object_store::{ObjectStoreExt, path::Path as StorePath};
use roaring::RoaringBitmap;
use serde_json::Value;

use strandline_table_formats::{
    ErrorKind,
    metadata::{DeletedPlace, FileChanges, Mask, MetadataOutcome, Operation, TableHead, TableMetadata},
};

use super::delta::Fixture;

/// Marks rows of the table's files, by their place in the list, in one commit.
async fn masked(fixture: &Fixture, positions: &[(usize, &[u32])]) -> TableHead {
    let metadata = fixture.metadata();
    let base = metadata.head(None).await.unwrap();
    let mut masks = Vec::new();
    for (place, more) in positions {
        let file = Arc::clone(&base.files[*place]);
        let deleted = metadata.deleted_rows(&file).await.unwrap() | more.iter().collect::<RoaringBitmap>();
        masks.push(Mask { file, deleted });
    }
    let remove = masks.iter().map(|mask| Arc::clone(&mask.file)).collect();
    let add = metadata.mask(&base, masks).await.unwrap();
    let change = FileChanges { add, remove, operation: Operation::Merge, ..FileChanges::default() };
    match metadata.commit(&base, change, None).await.unwrap() {
        MetadataOutcome::Committed(head) => head,
        MetadataOutcome::Conflict { latest } => panic!("conflict with {latest:?}"),
    }
}

fn actions(entry: &str, kind: &str) -> Vec<Value> {
    let lines = entry.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line.get(kind).cloned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_masked_is_gone_for_every_reader() {
    let fixture = Fixture::new(&[]).await;
    fixture.append(1, 0..1000).await;
    fixture.append(2, 1000..1100).await;
    let all: Vec<i64> = (0..1100).collect();
    assert_eq!(fixture.kernel_ids().await, all);
    let metadata = fixture.metadata();
    let base = metadata.head(None).await.unwrap();
    let (large, small) = if base.files[0].rows == 1000 { (0, 1) } else { (1, 0) };
    let many: Vec<u32> = (100..900).collect();
    let head = masked(&fixture, &[(large, &many), (small, &[0, 99])]).await;
    let left: Vec<i64> = (0..100).chain(900..1000).chain(1001..1099).collect();
    assert_eq!(fixture.ids().await, left);
    assert_eq!(fixture.kernel_ids().await, left);
    // The head that the commit gave is the one that is read.
    let read = fixture.metadata().head(None).await.unwrap();
    let same = head.files.iter().zip(read.files.iter()).all(|(a, b)| a.is_same(b) && a.deleted == b.deleted);
    assert!(same && head.files.len() == read.files.len(), "{:?} {:?}", head.files, read.files);
    assert_eq!(read.files.iter().map(|file| file.live_rows()).sum::<u64>(), left.len() as u64);
    // Both vectors lie in one file, and more rows of one of them are merged with those of before.
    let files: std::collections::BTreeSet<_> = read
        .files
        .iter()
        .flat_map(|file| &file.deleted.as_ref().unwrap().places)
        .map(|place| match place {
            DeletedPlace::File { path, .. } => path.clone(),
            DeletedPlace::Inline(_) => panic!("inline"),
        })
        .collect();
    assert_eq!(files.len(), 1);
    let _head = masked(&fixture, &[(large, &[0])]).await;
    assert_eq!(fixture.ids().await, left[1..]);
    assert_eq!(fixture.kernel_ids().await, left[1..]);
}

#[tokio::test]
async fn the_log_says_what_readers_need_to_know() {
    let fixture = Fixture::new(&[]).await;
    fixture.append(1, 0..10).await;
    let before = masked(&fixture, &[(0, &[1, 2])]).await;
    let entry = fixture.entry().await;
    let protocol = &actions(&entry, "protocol")[0];
    assert_eq!((&protocol["minReaderVersion"], &protocol["minWriterVersion"]), (&3.into(), &7.into()));
    let features = |of: &str| protocol[of].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_owned());
    assert!(features("readerFeatures").eq(["deletionVectors"]));
    assert!(features("writerFeatures").eq(["appendOnly", "deletionVectors"]));
    let properties = &actions(&entry, "metaData")[0]["configuration"];
    assert_eq!(properties["delta.enableDeletionVectors"], "true");
    assert!(properties["strandline.writers"].is_string() && properties["strandline.keys"].is_string());
    let (add, remove) = (&actions(&entry, "add")[0], &actions(&entry, "remove")[0]);
    assert_eq!(add["path"], remove["path"]);
    assert_eq!(add["deletionVector"]["storageType"], "u");
    assert_eq!(add["deletionVector"]["cardinality"], 2);
    assert!(remove.get("deletionVector").is_none());
    let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap()).unwrap();
    assert_eq!((&stats["numRecords"], &stats["tightBounds"]), (&10.into(), &false.into()));
    assert_eq!(stats["maxValues"]["id"], 9);
    // The second time nothing is new, and the entry that goes is told by its vector.
    let _head = masked(&fixture, &[(0, &[3])]).await;
    let entry = fixture.entry().await;
    assert!(actions(&entry, "protocol").is_empty() && actions(&entry, "metaData").is_empty(), "{entry}");
    let gone = &actions(&entry, "remove")[0]["deletionVector"];
    let DeletedPlace::File { path, .. } = &before.files[0].deleted.as_ref().unwrap().places[0] else {
        panic!("inline")
    };
    assert_eq!((&gone["storageType"], &gone["cardinality"]), (&"u".into(), &2.into()));
    assert!(fixture.store.head(&StorePath::from(format!("lake/t/{path}"))).await.is_ok());
    // A later commit keeps what the table has.
    fixture.append(2, 10..12).await;
    let newest = fixture.metadata().head(None).await.unwrap();
    assert_eq!(newest.files.iter().map(|file| file.live_rows()).sum::<u64>(), 9);
}

#[tokio::test]
async fn a_table_that_wants_none_gets_none_and_an_altered_one_is_an_error() {
    let fixture = Fixture::new(&[("delta.enableDeletionVectors", "false")]).await;
    fixture.append(1, 0..10).await;
    let metadata = fixture.metadata();
    let base = metadata.head(None).await.unwrap();
    let error = metadata.check_masks(&base).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("delta.enableDeletionVectors"), "{error}");
    let mask = Mask { file: Arc::clone(&base.files[0]), deleted: RoaringBitmap::from_iter([1]) };
    assert_eq!(metadata.mask(&base, vec![mask]).await.unwrap_err().kind(), ErrorKind::Unsupported);

    let fixture = Fixture::new(&[("delta.enableDeletionVectors", "true")]).await;
    fixture.append(1, 0..10).await;
    let head = masked(&fixture, &[(0, &[1])]).await;
    let DeletedPlace::File { path, .. } = &head.files[0].deleted.as_ref().unwrap().places[0] else {
        panic!("inline")
    };
    let path = StorePath::from(format!("lake/t/{path}"));
    let mut bytes = fixture.store.get(&path).await.unwrap().bytes().await.unwrap().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    fixture.store.put(&path, bytes.into()).await.unwrap();
    let error = fixture.metadata().deleted_rows(&head.files[0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}
