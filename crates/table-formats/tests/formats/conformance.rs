//! Each adapter keeps the contract.

use std::sync::Arc;

use object_store::{ObjectStore, memory::InMemory, path::Path};
use strandline_table_formats::{
    DeltaFormat, DurableLocal, IcebergFormat, LakeOptions, MemoryFormat, TableFormat, WriteMode,
    WriteOptions, conformance,
    iceberg::{MemoryCatalog, SqlCatalog, Warehouse},
};

/// Files, row groups and pages so small that every table has many.
pub(crate) fn tiny() -> LakeOptions {
    let files = WriteOptions { file_rows: 300, group_rows: 64, page_rows: 8, ..WriteOptions::default() };
    LakeOptions { files, small_rows: 32, fold_files: 3, mask_rows: 16, ..LakeOptions::default() }
}

/// The same with a write mode.
pub(crate) fn tiny_in(write_mode: WriteMode) -> LakeOptions {
    LakeOptions { write_mode, ..tiny() }
}

pub(crate) const MODES: [WriteMode; 3] = [WriteMode::CopyOnWrite, WriteMode::MergeOnRead, WriteMode::Auto];

/// Iceberg tables in a store, listed in memory.
pub(crate) fn iceberg(store: Arc<dyn ObjectStore>) -> IcebergFormat {
    let catalog = Arc::new(MemoryCatalog::new("memory://lake house"));
    IcebergFormat::new(catalog, Warehouse::new(store, "memory://"))
}

pub(crate) async fn holds(format: impl TableFormat) {
    if let Err(e) = conformance::all(&format).await {
        panic!("{}: {e}, {e:?}", format.name());
    }
}

#[tokio::test]
async fn t01_t22_memory_keeps_the_contract() {
    holds(MemoryFormat::new()).await;
}

#[tokio::test]
async fn memory_keeps_the_contract_in_tiny_files_and_every_write_mode() {
    for mode in MODES {
        holds(MemoryFormat::with_store(Arc::new(InMemory::new()), tiny_in(mode))).await;
    }
}

#[tokio::test]
async fn t01_t22_delta_keeps_the_contract() {
    holds(DeltaFormat::new(Arc::new(InMemory::new()), Path::from("lake house"))).await;
}

#[tokio::test]
async fn delta_keeps_the_contract_in_tiny_files_and_every_write_mode() {
    for mode in MODES {
        let store = Arc::new(InMemory::new());
        holds(DeltaFormat::new(store, Path::from("lake")).with_options(tiny_in(mode))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delta_keeps_the_contract_in_tiny_files_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(DurableLocal::new(folder.path()).unwrap());
    holds(DeltaFormat::new(store, Path::from("tables")).with_options(tiny())).await;
}

#[tokio::test]
async fn t01_t22_iceberg_keeps_the_contract() {
    holds(iceberg(Arc::new(InMemory::new()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn iceberg_keeps_the_contract_in_tiny_files_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    for mode in MODES {
        let folder = tempfile::tempdir_in(folder.path()).unwrap();
        let store = Arc::new(DurableLocal::new(folder.path()).unwrap());
        holds(iceberg(store).with_options(tiny_in(mode))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn iceberg_keeps_the_contract_with_tables_that_sqlite_lists() {
    for mode in MODES {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqlCatalog::in_folder(folder.path()).await.unwrap();
        let warehouse = catalog.warehouse().clone();
        holds(IcebergFormat::new(Arc::new(catalog), warehouse).with_options(tiny_in(mode))).await;
    }
}
