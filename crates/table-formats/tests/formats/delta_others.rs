//! A Delta table of ours that other programs write to, between our commits and during them.

use deltalake_core::kernel::{Action, Remove};
use futures::TryStreamExt;
use strandline_table_formats::{
    CommitKind, CommitOutcome, LakeOptions, LookupPlan, TableChange, TableVersion, WriteMode,
    metadata::TableMetadata,
};

use super::delta::{Fixture, VECTOR_NAME, ids, rows, stamp};

/// Both ways to write what was deleted.
const MODES: [WriteMode; 2] = [WriteMode::CopyOnWrite, WriteMode::MergeOnRead];

async fn fixture(write_mode: WriteMode) -> Fixture {
    let options = LakeOptions { write_mode, mask_rows: 1, ..LakeOptions::default() };
    Fixture::with_options(&[], options).await
}

fn committed(outcome: &CommitOutcome) {
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
}

async fn agrees(fixture: &Fixture, expected: impl IntoIterator<Item = i64>) {
    let expected: Vec<i64> = expected.into_iter().collect();
    assert_eq!(fixture.ids().await, expected);
    assert_eq!(fixture.kernel_ids().await, expected, "deltalake's kernel");
}

#[tokio::test(flavor = "multi_thread")]
async fn t17_appends_of_others_are_rows_like_ours_with_statistics_or_without() {
    for mode in MODES {
        let fixture = fixture(mode).await;
        fixture.append(1, 0..10).await;
        for (name, from, with_stats) in [("some/folder/a.parquet", 10, true), ("b.parquet", 20, false)] {
            let add = fixture.other_file(name, &rows(from..from + 10), with_stats).await;
            fixture.other_commit(vec![Action::Add(add)]).await;
        }
        // Marks of ours that are not in their commits stay.
        let now = fixture.opened().await.snapshot().await.unwrap();
        assert_eq!(now.last_batch(&stamp(1).writer), Some(1));
        committed(&fixture.change(2, 8..23, vec![rows(8..9), rows(30..33)]).await);
        agrees(&fixture, (0..9).chain(23..33)).await;
        committed(&fixture.change(3, 23..25, Vec::new()).await);
        agrees(&fixture, (0..9).chain(25..33)).await;
        assert_eq!(fixture.table.snapshot().await.unwrap().last_batch(&stamp(1).writer), Some(3));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t17_deletes_of_others_stay_deleted_and_ours_are_added_to_them() {
    for mode in MODES {
        let fixture = fixture(mode).await;
        fixture.append(1, 0..10).await;
        let path = fixture.metadata().head(None).await.unwrap().files[0].path.clone();
        // In a copy-on-write table it is another program that brings the feature in.
        if mode == WriteMode::CopyOnWrite {
            fixture.other_commit(vec![Action::Protocol(vectors())]).await;
        } else {
            committed(&fixture.change(2, 9..10, Vec::new()).await);
            agrees(&fixture, 0..9).await;
        }
        fixture.other_mask(&path, &[0, 5, 9]).await;
        agrees(&fixture, [1, 2, 3, 4, 6, 7, 8]).await;
        let entry = fixture.entry().await;
        assert!(entry.contains(VECTOR_NAME), "{entry}");
        committed(&fixture.change(3, 1..3, vec![rows(20..21)]).await);
        agrees(&fixture, [3, 4, 6, 7, 8, 20]).await;
        // What was deleted in their commit, row by row.
        let newest = fixture.opened().await.snapshot().await.unwrap().version();
        let commits = fixture.table.commits(None, newest).await.unwrap();
        let kinds: Vec<_> = commits.iter().map(|commit| commit.kind).collect();
        assert_eq!(kinds[kinds.len() - 2..], [CommitKind::Delete, CommitKind::Change]);
        // A whole file goes.
        let gone: Vec<Remove> = fixture.other_removes(true).await;
        fixture.other_commit(gone.into_iter().map(Action::Remove).collect()).await;
        agrees(&fixture, []).await;
        committed(&fixture.change(4, 0..1, vec![rows(1..3)]).await);
        agrees(&fixture, 1..3).await;
    }
}

fn vectors() -> deltalake_core::kernel::Protocol {
    serde_json::from_value(serde_json::json!({
        "minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"], "writerFeatures": ["appendOnly", "deletionVectors"],
    }))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn t20_optimize_between_two_batches_changes_nothing() {
    for mode in MODES {
        let fixture = fixture(mode).await;
        for batch in 1..5_u64 {
            let from = batch.cast_signed() * 10;
            fixture.append(batch, from..from + 10).await;
        }
        committed(&fixture.change(5, 15..25, Vec::new()).await);
        let left: Vec<i64> = (10..15).chain(25..50).collect();
        fixture.optimized("one.parquet").await;
        agrees(&fixture, left.clone()).await;
        let version = fixture.opened().await.snapshot().await.unwrap().version();
        let before = version.0.checked_sub(1).map(TableVersion);
        let commit = &fixture.table.commits(before, version).await.unwrap()[0];
        assert_eq!((commit.kind, commit.removes_files), (CommitKind::Nothing, true));
        let changes = fixture.table.changes(version, version).await.unwrap();
        assert!(changes.try_collect::<Vec<_>>().await.unwrap().is_empty());
        committed(&fixture.change(6, 25..30, vec![rows(100..101)]).await);
        agrees(&fixture, (10..15).chain(30..50).chain([100])).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t05_commits_of_others_during_ours_are_conflicts_and_nothing_is_lost_or_doubled() {
    for mode in MODES {
        for other in ["append", "mask", "optimize", "remove"] {
            let fixture = fixture(mode).await;
            fixture.append(1, 0..10).await;
            committed(&fixture.change(2, 9..10, vec![rows(10..12)]).await);
            if mode == WriteMode::CopyOnWrite && other == "mask" {
                fixture.other_commit(vec![Action::Protocol(vectors())]).await;
            }
            // We have read, and somebody else commits before we do.
            let base = fixture.table.snapshot().await.unwrap();
            let plan =
                LookupPlan { keys: Some(rows(2..4).project(&[0]).unwrap()), columns: None, bound: None };
            let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
            let deletes: Vec<u64> = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
            assert_eq!(deletes.len(), 2);
            let head = fixture.metadata().head(None).await.unwrap();
            let mut left: Vec<i64> = (0..2).chain(4..9).chain(10..12).collect();
            match other {
                "append" => {
                    let add = fixture.other_file("other.parquet", &rows(50..52), true).await;
                    fixture.other_commit(vec![Action::Add(add)]).await;
                    left.extend(50..52);
                }
                "mask" => {
                    let file = head.files.iter().find(|file| file.stats["id"].min.is_some()).unwrap();
                    let rows = scanned(&fixture, &file.path).await;
                    fixture.other_mask(&file.path, &(0..file.rows).collect::<Vec<_>>()).await;
                    left.retain(|id| !rows.contains(id));
                }
                "optimize" => fixture.optimized("one.parquet").await,
                _ => {
                    let gone = fixture.other_removes(true).await;
                    fixture.other_commit(gone.into_iter().map(Action::Remove).collect()).await;
                    left.clear();
                }
            }
            let change = TableChange::Rows { deletes, inserts: vec![rows(3..4)] };
            let outcome = fixture.table.commit(base.as_ref(), change, &stamp(3)).await.unwrap();
            assert!(matches!(outcome, CommitOutcome::Conflict { .. }), "{other}: {outcome:?}");
            // So it is done again on what there is now.
            committed(&fixture.change(3, 2..4, vec![rows(3..4)]).await);
            left.push(3);
            left.sort_unstable();
            agrees(&fixture, left).await;
        }
    }
}

async fn scanned(fixture: &Fixture, path: &str) -> Vec<i64> {
    let snapshot = fixture.opened().await.snapshot().await.unwrap();
    ids(&snapshot.read_file(path).await.unwrap().try_collect::<Vec<_>>().await.unwrap())
}
