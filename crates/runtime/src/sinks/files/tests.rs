use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use futures::{TryStreamExt, stream};
use object_store::memory::InMemory;
use strandline_pipeline_sql::SinkDefinition;
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use super::*;

fn options(format: &str) -> FileSinkOptions {
    let sink = SinkDefinition {
        name: "out".to_owned(),
        format: format.to_owned(),
        options: [("path".to_owned(), "unused".to_owned())].into(),
        comment: None,
        span: strandline_pipeline_sql::Span::default(),
    };
    FileSinkOptions::new(format, &mut Options::new(&sink).unwrap()).unwrap()
}

fn writer(flow: &str, incarnation: u64) -> WriterId {
    WriterId { pipeline: "p".to_owned(), flow: flow.to_owned(), incarnation }
}

fn batch(values: &[i64]) -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    RecordBatch::try_from_iter([("n", values)]).unwrap()
}

async fn write(sink: &FileSink, number: u64, batches: &[&[i64]]) -> Result<Written> {
    let rows: Vec<_> = batches.iter().map(|values| Ok(batch(values))).collect();
    sink.write(number, &batch(&[]).schema(), stream::iter(rows).boxed()).await
}

async fn visible(store: &dyn ObjectStore) -> Vec<(String, bytes::Bytes)> {
    let mut files = Vec::new();
    for object in store.list_with_delimiter(None).await.unwrap().objects {
        let bytes = store.get(&object.location).await.unwrap().bytes().await.unwrap();
        files.push((object.location.to_string(), bytes));
    }
    files
}

#[tokio::test]
async fn a_batch_that_is_written_again_takes_the_place_of_itself() {
    let store = Arc::new(InMemory::new());
    let sink = FileSink::over(Arc::<InMemory>::clone(&store), &options("json"), &writer("f", 2));
    assert_eq!(sink.newest().await.unwrap(), None);
    assert_eq!(write(&sink, 7, &[&[1, 2], &[], &[3]]).await.unwrap().rows, 3);
    write(&sink, 7, &[&[3, 2, 1]]).await.unwrap();
    assert_eq!(write(&sink, 8, &[&[], &[]]).await.unwrap(), Written::default(), "no rows, no file");
    let files = visible(store.as_ref()).await;
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].0, "f-2-00000000000000000007.json");
    assert_eq!(&files[0].1[..], b"{\"n\":3}\n{\"n\":2}\n{\"n\":1}\n");
    // Another process finds what is there, and takes no file of another flow or incarnation for its own.
    for (flow, incarnation, newest) in [("f", 2, Some(7)), ("f", 1, None), ("f-2", 0, None), ("", 2, None)] {
        let sink =
            FileSink::over(Arc::<InMemory>::clone(&store), &options("json"), &writer(flow, incarnation));
        assert_eq!(sink.newest().await.unwrap(), newest, "{flow} {incarnation}");
    }
}

#[tokio::test]
async fn a_failure_at_any_operation_shows_no_part_and_is_mended_by_writing_again() {
    for format in ["json", "parquet"] {
        let undisturbed = FaultStore::new(InMemory::new());
        let sink = FileSink::over(Arc::new(undisturbed.clone()), &options(format), &writer("f", 0));
        write(&sink, 1, &[&[1, 2], &[3]]).await.unwrap();
        let expected = visible(undisturbed.inner()).await;
        for fault in [Fault::Before, Fault::After] {
            for n in 1..=undisturbed.faults().count() {
                let store = FaultStore::new(InMemory::new());
                store.faults().add(Rule::nth(n, fault).and_dies());
                let sink = FileSink::over(Arc::new(store.clone()), &options(format), &writer("f", 0));
                drop(write(&sink, 1, &[&[1, 2], &[3]]).await);
                let seen = visible(store.inner()).await;
                assert!(seen.is_empty() || seen == expected, "{format} {fault:?} {n}");
                store.faults().revive();
                let sink = FileSink::over(Arc::new(store.clone()), &options(format), &writer("f", 0));
                write(&sink, 1, &[&[1, 2], &[3]]).await.unwrap();
                assert_eq!(visible(store.inner()).await, expected);
                let all: Vec<_> = store.inner().list(None).try_collect().await.unwrap();
                assert_eq!(all.len(), 1, "nothing is left under _staged: {all:?}");
            }
        }
    }
}

#[test]
fn names_of_flows_become_names_of_files() {
    for (name, expected) in [
        ("to_partner", "to_partner"),
        ("_hidden", "=5fhidden"),
        ("a b/ü", "a=20b=2f=c3=bc"),
        ("x-1.y", "x-1.y"),
    ] {
        assert_eq!(plain(name), expected);
    }
}
