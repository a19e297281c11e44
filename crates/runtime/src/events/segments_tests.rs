//! Does the log stay small and whole, however long an update runs?

use object_store::memory::InMemory;

use super::*;

async fn texts(store: &Arc<dyn ObjectStore>) -> BTreeMap<u64, String> {
    let mut texts = BTreeMap::new();
    for (update, segments) in all(store).await.unwrap() {
        let text: &mut String = texts.entry(update).or_default();
        for segment in segments {
            text.push_str(&String::from_utf8(read(store, &segment.path).await.unwrap()).unwrap());
        }
    }
    texts
}

#[tokio::test]
async fn r17_a_long_update_has_few_objects_and_every_event_once_in_its_order() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let mut segments = Segments::new(Arc::clone(&store), 7);
    let mut expected = String::new();
    for n in 1..=600_u64 {
        let line = format!("{n}\n");
        expected.push_str(&line);
        segments.append(n, n, line.into_bytes()).await.unwrap();
        let objects = listed(&store).await.unwrap().remove(&7).unwrap().len();
        assert!(objects <= 3 * (MERGED - 1), "{objects} after {n}");
    }
    assert_eq!(texts(&store).await, BTreeMap::from([(7, expected)]));
}

#[tokio::test]
async fn r17_parts_that_a_crash_left_beside_their_whole_are_not_read_twice() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let segments = Segments::new(Arc::clone(&store), 1);
    for (first, last, lines) in [(1, 2, "1\n2\n"), (3, 3, "3\n"), (1, 3, "1\n2\n3\n"), (4, 4, "4\n")] {
        drop(segments.put(first, last, lines.into(), 0).await.unwrap());
    }
    assert_eq!(texts(&store).await, BTreeMap::from([(1, "1\n2\n3\n4\n".to_owned())]));
}

#[tokio::test]
async fn r17_events_of_old_updates_are_forgotten_and_what_is_no_event_is_let_be() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let foreign = engine_path(&["events", "notes.txt"]);
    store.put(&foreign, "mine".into()).await.unwrap();
    for update in 1..=150 {
        Segments::new(Arc::clone(&store), update).append(1, 1, b"x\n".to_vec()).await.unwrap();
    }
    forget_old_updates(&store).await.unwrap();
    let kept: Vec<u64> = all(&store).await.unwrap().into_keys().collect();
    assert_eq!(kept, (51..=150).collect::<Vec<_>>());
    assert!(store.get(&foreign).await.is_ok());
}
