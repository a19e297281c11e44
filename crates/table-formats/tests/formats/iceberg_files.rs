//! The crate's files, in our stores.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{memory::InMemory, path::Path};
use strandline_table_formats::{
    DurableLocal, Error, ErrorKind,
    iceberg::{Warehouse, file_io},
};

fn kind(e: &iceberg::Error) -> ErrorKind {
    let source = std::error::Error::source(e).and_then(|e| e.downcast_ref::<Error>());
    source.expect("our error goes through").kind()
}

async fn files_are_written_once_and_read(warehouse: Warehouse) {
    let io = file_io(&warehouse);
    let url = warehouse.url(&Path::from("t/metadata/a.avro"));
    assert!(!io.exists(&url).await.unwrap());
    assert_eq!(kind(&io.new_input(&url).unwrap().read().await.unwrap_err()), ErrorKind::NotFound);

    let output = io.new_output(&url).unwrap();
    let mut writer = output.writer().await.unwrap();
    writer.write(Bytes::from_static(b"one ")).await.unwrap();
    writer.write(Bytes::from_static(b"two")).await.unwrap();
    assert!(!io.exists(&url).await.unwrap(), "half a file has no name");
    writer.close().await.unwrap();
    assert_eq!(kind(&writer.close().await.unwrap_err()), ErrorKind::Internal);

    let input = output.to_input_file();
    assert_eq!(input.read().await.unwrap(), "one two");
    assert_eq!(input.metadata().await.unwrap().size, 7);
    let reader = input.reader().await.unwrap();
    assert_eq!(reader.read(4..7).await.unwrap(), "two");
    assert!(reader.read(2..2).await.unwrap().is_empty());
    assert!(reader.read(4..9).await.is_err());
    assert_eq!(kind(&reader.read(0..u64::MAX).await.unwrap_err()), ErrorKind::Corrupt);

    // The same bytes are a lost answer, others are another file.
    io.new_output(&url).unwrap().write(Bytes::from_static(b"one two")).await.unwrap();
    let other = io.new_output(&url).unwrap().write(Bytes::from_static(b"one six")).await;
    assert_eq!(kind(&other.unwrap_err()), ErrorKind::Conflict);
    assert_eq!(input.read().await.unwrap(), "one two");

    let b = warehouse.url(&Path::from("t/metadata/b.avro"));
    io.new_output(&b).unwrap().write(Bytes::from_static(b"b")).await.unwrap();
    io.delete_prefix(warehouse.url(&Path::from("t/meta"))).await.unwrap();
    assert!(io.exists(&b).await.unwrap(), "a folder is not what its name begins with");
    io.delete(&b).await.unwrap();
    io.delete(&b).await.unwrap();
    io.delete_prefix(warehouse.url(&Path::from("t"))).await.unwrap();
    assert!(!io.exists(&url).await.unwrap());
    assert_eq!(kind(&io.exists("s3://elsewhere/a").await.unwrap_err()), ErrorKind::Unsupported);
}

#[tokio::test]
async fn files_in_memory_are_written_once_and_read() {
    let store = Arc::new(InMemory::new());
    files_are_written_once_and_read(Warehouse::new(store, "memory://")).await;
}

#[tokio::test]
async fn files_in_a_folder_are_written_once_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(DurableLocal::new(folder.path()).unwrap());
    let url = format!("file://{}", folder.path().display());
    files_are_written_once_and_read(Warehouse::new(store, &url)).await;
}
