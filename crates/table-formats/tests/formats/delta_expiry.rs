//! Forgetting versions, and naming the files that the others need.

use std::{collections::BTreeSet, sync::Arc};

use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use roaring::RoaringBitmap;
use strandline_table_formats::{
    CommitOutcome, ErrorKind, TableVersion,
    metadata::{FileChanges, Mask, MetadataOutcome, Operation, TableMetadata},
};

use super::delta::{Fixture, ids, stamp};

/// Deletes one row by rewriting its file, so that the one before belongs to old versions only.
async fn rewritten(fixture: &Fixture, batch: u64, id: i64) {
    let outcome = fixture.change(batch, id..id + 1, Vec::new()).await;
    assert!(matches!(&outcome, CommitOutcome::Committed(c) if c.files_removed == 1), "{outcome:?}");
}

async fn stored(fixture: &Fixture) -> BTreeSet<String> {
    let root = Path::from("lake/t");
    let all: Vec<_> = fixture.store.list(Some(&root)).try_collect().await.unwrap();
    let within = |path: &Path| path.as_ref().strip_prefix("lake/t/").unwrap().to_owned();
    all.iter().map(|object| within(&object.location)).collect()
}

/// When a version was committed.
async fn time(fixture: &Fixture, version: u64) -> i64 {
    let metadata = fixture.metadata();
    let before = version.checked_sub(1).map(TableVersion);
    metadata.commits(before, TableVersion(version)).await.unwrap()[0].timestamp
}

/// Versions 1 to `last`, each at a moment of its own.
async fn grown(fixture: &Fixture, last: u64) {
    fixture.append(1, 0..40).await;
    for batch in 2..=last {
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        rewritten(fixture, batch, batch.cast_signed()).await;
    }
}

#[tokio::test]
async fn t20_forgotten_versions_are_gone_and_all_others_read_as_before() {
    let fixture = Fixture::new(&[]).await;
    grown(&fixture, 25).await;
    let before = fixture.ids().await;
    let mut older = Vec::new();
    for version in 12..=25 {
        let snapshot = fixture.table.at(TableVersion(version)).await.unwrap();
        older.push(ids(&snapshot.scan(None).await.unwrap().try_collect::<Vec<_>>().await.unwrap()));
    }
    let metadata = fixture.metadata();
    assert_eq!(metadata.expire(0).await.unwrap(), 0);
    let moment = time(&fixture, 13).await;
    assert_eq!(metadata.expire(moment).await.unwrap(), 12, "0 to 11 were replaced before version 13");
    assert_eq!(metadata.expire(moment).await.unwrap(), 0, "once is enough");
    let log = stored(&fixture).await;
    assert!(!log.contains(&format!("_delta_log/{:020}.json", 11)), "{log:?}");
    assert!(log.contains(&format!("_delta_log/{:020}.json", 13)), "{log:?}");
    let table = fixture.opened().await;
    for (version, then) in (12..=25).zip(&older) {
        let snapshot = table.at(TableVersion(version)).await.unwrap();
        let now = ids(&snapshot.scan(None).await.unwrap().try_collect::<Vec<_>>().await.unwrap());
        assert_eq!(now, *then, "version {version}");
    }
    assert_eq!(table.at(TableVersion(11)).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fixture.ids().await, before);
    // The marks of batches outlive the entries that made them, and all goes on.
    assert_eq!(table.snapshot().await.unwrap().last_batch(&stamp(1).writer), Some(25));
    rewritten(&fixture, 26, 39).await;
    assert_eq!(fixture.ids().await, before[..before.len() - 1]);
    // All but the newest.
    assert_eq!(metadata.expire(i64::MAX).await.unwrap(), 14);
    assert_eq!(fixture.ids().await.len(), before.len() - 1);
    assert_eq!(fixture.kernel_ids().await.len(), before.len() - 1);
}

#[tokio::test]
async fn t20_files_of_versions_since_a_moment_are_named_and_no_others() {
    let fixture = Fixture::new(&[]).await;
    grown(&fixture, 5).await;
    let metadata = fixture.metadata();
    let base = metadata.head(None).await.unwrap();
    let mask = Mask { file: Arc::clone(&base.files[0]), deleted: RoaringBitmap::from_iter([0, 1]) };
    let add = metadata.mask(&base, vec![mask]).await.unwrap();
    let vector =
        stored(&fixture).await.into_iter().find(|path| path.starts_with("deletion_vector_")).unwrap();
    let change = FileChanges {
        add,
        remove: base.files.to_vec(),
        operation: Operation::Merge,
        ..FileChanges::default()
    };
    let MetadataOutcome::Committed(_) = metadata.commit(&base, change, None).await.unwrap() else { panic!() };
    let orphan = Path::from("lake/t/part-of-nobody.parquet");
    fixture.store.put(&orphan, "x".into()).await.unwrap();

    let all = stored(&fixture).await;
    let named = metadata.named_files(0).await.unwrap();
    let unnamed: Vec<_> = all.difference(&named).collect();
    assert_eq!(unnamed, ["part-of-nobody.parquet"]);
    // Since now: the one file, its vector, and the log.
    let named = metadata.named_files(i64::MAX).await.unwrap();
    let needed: Vec<_> = named.iter().filter(|path| !path.starts_with("_delta_log/")).collect();
    assert_eq!(needed, [&vector, &base.files[0].path]);
    // Since version 3: what it had, and what came later.
    let named = metadata.named_files(time(&fixture, 3).await + 1).await.unwrap();
    let needed = named.iter().filter(|path| path.starts_with("part-")).count();
    assert_eq!(needed, 3, "of versions 3, 4 and 5: {named:?}");
    assert!(named.is_subset(&all), "{named:?}");
}
