//! The side state against a list of rows, and against damage.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::UInt64Array;
use arrow_select::concat::concat_batches;
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, memory::InMemory, path::Path};
use proptest::prelude::*;
use strandline_cdc_core::RowChanges;
use strandline_table_formats::{ErrorKind, LookupPlan, SideState, StateSnapshot, StateVersion};

use super::{
    conformance::tiny,
    fault::Mortal,
    rows::{KEYS, Row, a_row, batch, cases, check_found, plan, unbatch},
};

fn state(store: Arc<dyn ObjectStore>, keys: &[&str]) -> SideState {
    let keys = keys.iter().map(|k| (*k).to_owned()).collect();
    SideState::new(store, Path::from("state/target"), keys).with_options(tiny())
}

fn change(deletes: Vec<u64>, inserts: &[Row]) -> RowChanges {
    RowChanges { deletes: UInt64Array::from(deletes), inserts: batch(inserts) }
}

async fn read(snapshot: &StateSnapshot) -> Vec<Row> {
    let batches: Vec<_> = snapshot.scan().await.unwrap().try_collect().await.unwrap();
    let mut rows: Vec<_> = batches.iter().flat_map(unbatch).collect();
    rows.sort();
    rows
}

type Write = (Vec<Row>, Option<i64>, usize, Vec<Row>, bool);

fn a_write() -> impl Strategy<Value = Write> {
    let rows = |n| prop::collection::vec(a_row(), 0..n);
    (rows(20), prop::option::of(0..10_i64), 1..4_usize, rows(60), prop::bool::weighted(0.2))
}

async fn agrees(keys: &[&str], writes: Vec<Write>) {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let mut model = Vec::<Row>::new();
    let mut all = BTreeMap::from([(StateVersion(0), Vec::new())]);
    let (mut version, mut unique) = (StateVersion(0), 0);
    for (wanted, bound, every, mut inserts, orphaned) in writes {
        let state = state(Arc::clone(&store), keys);
        let base = state.open(version).await.unwrap();
        let plan = plan(keys, &wanted, bound);
        let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
        let found = check_found(keys, &plan, &found, &model);
        for row in &mut inserts {
            unique += 1;
            row.unique = unique;
        }
        let gone: Vec<_> = found.into_iter().step_by(every).collect();
        let change = change(gone.iter().map(|(id, _)| *id).collect(), &inserts);
        let next = state.write(&base, &change, None).await.unwrap();
        assert_eq!(next == version, change.is_empty());
        if orphaned {
            continue; // The target's commit never landed: nobody names this version.
        }
        model.retain(|row| !gone.iter().any(|(_, g)| g == row));
        model.extend(inserts);
        model.sort();
        version = next;
        all.insert(version, model.clone());
        let now = state.open(version).await.unwrap();
        assert_eq!(now.num_rows(), model.len() as u64);
        assert!(now.num_files() < 12, "{} files", now.num_files());
    }
    for (version, rows) in all {
        assert_eq!(read(&state(Arc::clone(&store), keys).open(version).await.unwrap()).await, rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(16, 64), ..ProptestConfig::default() })]

    #[test]
    fn state_agrees_with_a_list_of_rows(keys in 0..3_usize, writes in prop::collection::vec(a_write(), 1..20)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(agrees(KEYS[keys], writes));
    }
}

fn some_rows(n: i64) -> Vec<Row> {
    (0..n).map(|i| Row { id: i, name: None, seq: Some(i), unique: i }).collect()
}

#[tokio::test]
async fn a_named_version_that_is_missing_is_corrupt() {
    let state = state(Arc::new(InMemory::new()), &["id"]);
    assert_eq!(state.open(StateVersion(0)).await.unwrap().num_rows(), 0);
    let error = state.open(StateVersion(7)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains('7'));
}

#[tokio::test]
async fn an_altered_state_is_noticed() {
    let store = Arc::new(InMemory::new());
    let state = state(Arc::<InMemory>::clone(&store), &["id"]);
    let base = state.open(StateVersion(0)).await.unwrap();
    let first = state.write(&base, &change(vec![], &some_rows(50)), None).await.unwrap();
    let base = state.open(first).await.unwrap();
    let second = state.write(&base, &change(vec![3, 4], &some_rows(5)), None).await.unwrap();
    let all: Vec<_> = store.list(None).try_collect().await.unwrap();
    for object in all.iter().filter(|o| o.location.extension() == Some("json")) {
        let bytes = store.get(&object.location).await.unwrap().bytes().await.unwrap().to_vec();
        for at in (0..bytes.len()).step_by(7) {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            store.put(&object.location, altered.into()).await.unwrap();
            let (first, second) = (state.open(first).await, state.open(second).await);
            assert!(first.is_err() || second.is_err(), "byte {at} of {}", object.location);
        }
        store.put(&object.location, bytes[..bytes.len() / 2].to_vec().into()).await.unwrap();
        assert!(state.open(first).await.is_err() || state.open(second).await.is_err());
        store.put(&object.location, bytes.into()).await.unwrap();
    }
    let fresh = super::state::state(Arc::<InMemory>::clone(&store), &["id"]);
    for object in all.iter().filter(|o| o.location.extension() == Some("parquet")) {
        store.put(&object.location, b"short".to_vec().into()).await.unwrap();
    }
    let error = match fresh.open(second).await.unwrap().scan().await {
        Ok(rows) => rows.try_collect::<Vec<_>>().await.unwrap_err(),
        Err(e) => e,
    };
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let other = super::state::state(store, &["name"]);
    assert_eq!(other.open(second).await.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn ids_of_no_row_are_refused() {
    let state = state(Arc::new(InMemory::new()), &["id"]);
    let base = state.open(StateVersion(0)).await.unwrap();
    let version = state.write(&base, &change(vec![], &some_rows(20)), None).await.unwrap();
    let base = state.open(version).await.unwrap();
    for id in [20, 1 << 40, u64::MAX] {
        let refused = state.write(&base, &change(vec![id], &[]), None).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let version = state.write(&base, &change(vec![3], &[]), None).await.unwrap();
    let again = state.open(version).await.unwrap();
    assert_eq!(
        state.write(&again, &change(vec![3], &[]), None).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[tokio::test]
async fn emptying_and_killed_writes_leave_older_versions() {
    let disk = Arc::new(InMemory::new());
    let whole = state(Arc::<InMemory>::clone(&disk), &["id"]);
    let base = whole.open(StateVersion(0)).await.unwrap();
    let version = whole.write(&base, &change(vec![], &some_rows(30)), None).await.unwrap();
    for after in [false, true] {
        for operations in 0.. {
            // A copy: the versions that the killed ones leave would take one more try each.
            let copy = Arc::new(disk.fork());
            let mortal = Arc::new(Mortal::new(Arc::<InMemory>::clone(&copy), operations, after));
            let dying = state(Arc::<Mortal>::clone(&mortal), &["id"]);
            let end = async {
                let base = dying.open(version).await?;
                dying.write(&base, &change(vec![1], &some_rows(3)), None).await
            };
            let end = end.await;
            if mortal.left() >= 0 {
                assert!(end.is_ok());
                break;
            }
            assert_eq!(end.unwrap_err().kind(), ErrorKind::Unavailable);
            let left = state(copy, &["id"]);
            assert_eq!(read(&left.open(version).await.unwrap()).await, some_rows(30));
        }
    }
    let full = whole.open(version).await.unwrap();
    let empty = whole.write_empty(full.version()).await.unwrap();
    assert!(empty > version);
    assert!(read(&whole.open(empty).await.unwrap()).await.is_empty());
    assert_eq!(read(&whole.open(version).await.unwrap()).await.len(), 30);
    let taken = Path::from(format!("state/target/{:020}.json", empty.0));
    let again = disk.put_opts(&taken, "x".into(), PutMode::Create.into()).await;
    assert!(again.is_err(), "a version's number is used once");
}

#[tokio::test]
async fn keys_of_a_lookup_are_distinct() {
    let state = state(Arc::new(InMemory::new()), &["id"]);
    let base = state.open(StateVersion(0)).await.unwrap();
    let version = state.write(&base, &change(vec![], &some_rows(3)), None).await.unwrap();
    let base = state.open(version).await.unwrap();
    let once = plan(&["id"], &some_rows(2), Some(1));
    let keys = once.keys.as_ref().unwrap().slice(0, 1);
    let twice = concat_batches(&keys.schema(), [&keys, &keys]).unwrap();
    let refused = base.lookup(&LookupPlan { keys: Some(twice), ..once }).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert!(refused.to_string().contains("distinct"), "{refused}");
}
