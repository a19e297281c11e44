//! What a caller sees of the store; that bytes are on disk no test without a power cut can show.

use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectStoreExt, PutMode, WriteMultipart};

use super::*;

async fn put(store: &DurableLocal, path: &str, text: &'static str, mode: PutMode) -> Result<PutResult> {
    store.put_opts(&Path::from(path), PutPayload::from_static(text.as_bytes()), mode.into()).await
}

async fn text(store: &DurableLocal, path: &str) -> Bytes {
    store.get(&Path::from(path)).await.unwrap().bytes().await.unwrap()
}

#[tokio::test]
async fn creating_is_exclusive_and_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let store = DurableLocal::new(folder.path().join("deep/er")).unwrap();
    put(&store, "a/b/c", "first", PutMode::Create).await.unwrap();
    let again = put(&store, "a/b/c", "second", PutMode::Create).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    assert_eq!(text(&store, "a/b/c").await, "first");
    put(&store, "a/b/c", "third", PutMode::Overwrite).await.unwrap();
    assert_eq!(text(&store, "a/b/c").await, "third");
    let files = std::fs::read_dir(folder.path().join("deep/er/a/b")).unwrap().count();
    assert_eq!(files, 1);
}

#[tokio::test]
async fn of_many_creators_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let store = DurableLocal::new(folder.path()).unwrap();
    let tries = (0..16).map(|_| put(&store, "x/one", "mine", PutMode::Create));
    let won = futures::future::join_all(tries).await.iter().map(|r| usize::from(r.is_ok())).sum::<usize>();
    assert_eq!(won, 1);
}

#[tokio::test]
async fn parts_copies_and_renames_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let store = DurableLocal::new(folder.path()).unwrap();
    let mut parts = WriteMultipart::new(store.put_multipart(&Path::from("m/parts")).await.unwrap());
    parts.write(b"some ");
    parts.write(b"parts");
    parts.finish().await.unwrap();
    store.copy(&Path::from("m/parts"), &Path::from("m/copy")).await.unwrap();
    store.rename(&Path::from("m/parts"), &Path::from("n/moved")).await.unwrap();
    assert_eq!(text(&store, "m/copy").await, "some parts");
    assert_eq!(text(&store, "n/moved").await, "some parts");
    let all: Vec<_> = store.list(None).map_ok(|m| m.location.to_string()).try_collect().await.unwrap();
    assert_eq!(all.len(), 2, "{all:?}");
    let gone = store.delete_stream(futures::stream::iter([Ok(Path::from("m/copy"))]).boxed());
    assert_eq!(gone.try_collect::<Vec<_>>().await.unwrap().len(), 1);
}

#[tokio::test]
async fn every_folder_on_the_way_is_synced_whoever_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = DurableLocal::new(folder.path()).unwrap();
    std::fs::create_dir_all(folder.path().join("made/by/others")).unwrap();
    let mut parts = store.put_multipart(&Path::from("made/by/others/us/file")).await.unwrap();
    let inner = folder.path().canonicalize().unwrap();
    for level in ["made", "made/by", "made/by/others", "made/by/others/us"] {
        assert!(synced().contains(&inner.join(level)), "{level}");
    }
    parts.abort().await.unwrap();
    // A folder that went is made, and synced, again.
    std::fs::remove_dir_all(folder.path().join("made")).unwrap();
    put(&store, "made/by/others/us/file", "text", PutMode::Create).await.unwrap();
    assert_eq!(text(&store, "made/by/others/us/file").await, "text");
}
