//! Each kind of fault leaves in the store what it says, and nothing slips past the rules.

use futures::executor::block_on;
use futures::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::*;

fn store() -> FaultStore<InMemory> {
    FaultStore::new(InMemory::new())
}

fn path(text: &str) -> Path {
    Path::from(text)
}

/// What a path holds, past all rules.
fn content(store: &FaultStore<InMemory>, at: &str) -> Option<Vec<u8>> {
    block_on(async {
        let found = store.inner().get(&path(at)).await.ok()?;
        Some(found.bytes().await.unwrap().to_vec())
    })
}

fn injected(error: &object_store::Error) -> Injected {
    let source = std::error::Error::source(error).unwrap();
    source.downcast_ref::<Injected>().unwrap().clone()
}

#[test]
fn before_leaves_nothing_and_after_leaves_everything() {
    for (fault, expected) in [(Fault::Before, None), (Fault::After, Some(b"x".to_vec()))] {
        let store = store();
        store.faults().add(Rule::nth(2, fault).of("put"));
        block_on(async {
            store.put(&path("a"), "a".into()).await.unwrap();
            drop(store.head(&path("a")).await.unwrap());
            let error = store.put(&path("b"), "x".into()).await.unwrap_err();
            assert_eq!(injected(&error), Injected { name: "put", fault: Some(fault) });
            store.put(&path("c"), "c".into()).await.unwrap();
        });
        assert_eq!(content(&store, "b"), expected);
        let trace = store.faults().trace();
        let seen: Vec<_> = trace.iter().map(|operation| (operation.name, operation.path.as_str())).collect();
        assert_eq!(seen, [("put", "a"), ("get", "a"), ("put", "b"), ("put", "c")]);
        assert_eq!(trace[2].fault, Some(fault));
    }
}

#[test]
fn a_dead_process_does_nothing_until_it_is_revived() {
    let store = store();
    let faults = store.faults();
    faults.add(Rule::nth(1, Fault::After).on("log/").and_dies());
    block_on(async {
        store.put(&path("data"), "d".into()).await.unwrap();
        store.put(&path("log/1"), "l".into()).await.unwrap_err();
        assert!(faults.is_dead());
        store.put(&path("more"), "m".into()).await.unwrap_err();
        store.delete(&path("data")).await.unwrap_err();
        store.get(&path("data")).await.unwrap_err();
        assert_eq!(store.list(None).filter_map(async |found| found.ok()).count().await, 0);
        store.list_with_delimiter(None).await.unwrap_err();
        store.rename(&path("data"), &path("gone")).await.unwrap_err();
        store.put_multipart(&path("big")).await.unwrap_err();
        faults.revive();
        store.get(&path("log/1")).await.unwrap();
        assert_eq!(store.list(None).try_collect::<Vec<_>>().await.unwrap().len(), 2);
    });
    assert_eq!(faults.count(), 4);
}

#[test]
fn a_torn_part_is_half_a_part() {
    let store = store();
    store.faults().add(Rule::nth(2, Fault::Torn).of("put_part"));
    block_on(async {
        let mut upload = store.put_multipart(&path("big")).await.unwrap();
        upload.put_part("1234".into()).await.unwrap();
        upload.put_part("5678".into()).await.unwrap_err();
        upload.complete().await.unwrap();
    });
    assert_eq!(content(&store, "big").unwrap(), b"123456");
}

#[test]
fn a_torn_rename_leaves_both() {
    let store = store();
    block_on(async {
        store.put(&path("from"), "x".into()).await.unwrap();
        store.faults().add(Rule::nth(1, Fault::Torn));
        store.rename(&path("from"), &path("to")).await.unwrap_err();
    });
    assert_eq!((content(&store, "from").is_some(), content(&store, "to").is_some()), (true, true));
}

#[test]
fn each_path_of_a_delete_stream_counts() {
    let store = store();
    block_on(async {
        for name in ["a", "b", "c"] {
            store.put(&path(name), "x".into()).await.unwrap();
        }
        store.faults().add(Rule::nth(2, Fault::Before).of("delete"));
        let paths = futures::stream::iter(["a", "b", "c"]).map(|name| Ok(path(name))).boxed();
        let outcomes: Vec<_> = store.delete_stream(paths).map(|outcome| outcome.is_ok()).collect().await;
        assert_eq!(outcomes, [true, false, true]);
    });
    assert!(content(&store, "b").is_some());
}
