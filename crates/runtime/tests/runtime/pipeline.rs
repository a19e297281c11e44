//! A pipeline in a temporary folder, with the rows of its tables as plain JSON.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use object_store::{ObjectStore, memory::InMemory, path::Path as StorePath};
use serde_json::Value;
use strandline_runtime::{
    Error, Project, Storage, UpdateReport, UpdateRequest,
    definition::{SourceFile, parse_pipeline},
};
use strandline_table_formats::iceberg::{IcebergFormat, MemoryCatalog, Warehouse};
use strandline_table_formats::{DeltaFormat, LakeOptions, MemoryFormat, TableFormat, WriteMode};

pub(crate) type JsonRow = BTreeMap<String, Value>;

/// What tables are kept in. Rows that go are left out of files written anew, or (`Masked`) marked beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Memory,
    MemoryMasked,
    Delta,
    DeltaMasked,
    Iceberg,
    IcebergMasked,
}

/// The formats that every test of rows runs on.
pub(crate) const FORMATS: [Format; 2] = [Format::Memory, Format::Delta];
/// Every format in every write mode: all scenarios run on each.
pub(crate) const ALL_FORMATS: [Format; 6] = [
    Format::Memory,
    Format::MemoryMasked,
    Format::Delta,
    Format::DeltaMasked,
    Format::Iceberg,
    Format::IcebergMasked,
];

impl Format {
    pub(crate) fn is_delta(self) -> bool {
        matches!(self, Self::Delta | Self::DeltaMasked)
    }

    fn options(self) -> LakeOptions {
        let write_mode = match self {
            Self::Memory | Self::Delta | Self::Iceberg => WriteMode::CopyOnWrite,
            Self::MemoryMasked | Self::DeltaMasked | Self::IcebergMasked => WriteMode::MergeOnRead,
        };
        LakeOptions { write_mode, ..LakeOptions::default() }
    }
}

/// Input files in a folder of their own, and a storage that outlives runs.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) storage: Storage,
}

impl Bench {
    pub(crate) fn new(format: Format) -> Self {
        Self::over(format, Arc::new(InMemory::new()))
    }

    pub(crate) fn over(format: Format, store: Arc<dyn ObjectStore>) -> Self {
        let options = format.options();
        let format: Arc<dyn TableFormat> = match format {
            Format::Memory | Format::MemoryMasked => {
                Arc::new(MemoryFormat::with_store(Arc::new(InMemory::new()), options))
            }
            Format::Delta | Format::DeltaMasked => Arc::new(
                DeltaFormat::new(Arc::clone(&store), StorePath::from("tables")).with_options(options),
            ),
            Format::Iceberg | Format::IcebergMasked => {
                let warehouse = Warehouse::new(Arc::clone(&store), "memory://");
                let catalog = Arc::new(MemoryCatalog::new("memory://warehouse"));
                Arc::new(IcebergFormat::new(catalog, warehouse).with_options(options))
            }
        };
        let storage = Storage { store, format, folder: None, url: None };
        Self { folder: tempfile::tempdir().unwrap(), storage }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes an input file, one JSON object a line.
    pub(crate) fn file(&self, name: &str, lines: &[Value]) {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        self.raw_file(name, lines.join("\n"));
    }

    pub(crate) fn raw_file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Whole or not at all: an update that runs may look at any moment.
        let draft = path.with_file_name(format!(".{}", path.file_name().unwrap().to_string_lossy()));
        fs::write(&draft, content).unwrap();
        fs::rename(draft, path).unwrap();
    }

    pub(crate) fn project(&self, sql: &str) -> Project {
        self.project_named("test", sql)
    }

    pub(crate) fn project_named(&self, name: &str, sql: &str) -> Project {
        self.build(name, sql, self.storage.clone())
    }

    /// The pipeline over another storage.
    pub(crate) fn project_over(&self, sql: &str, storage: Storage) -> Project {
        self.build("test", sql, storage)
    }

    fn build(&self, name: &str, sql: &str, storage: Storage) -> Project {
        let definition = parse_pipeline(&[SourceFile::new("pipeline.sql", sql)])
            .unwrap_or_else(|errors| panic!("{}", errors.iter().map(|e| e.render(sql)).collect::<String>()));
        // Nobody waits for an update to be tried again.
        Project::new(name, definition, &[PathBuf::from(self.path())], storage).interactive(true)
    }

    pub(crate) async fn run(&self, sql: &str) -> Result<UpdateReport, Vec<Error>> {
        self.project(sql).run().await
    }

    /// Runs, and expects every flow to succeed.
    pub(crate) async fn succeed(&self, sql: &str) -> UpdateReport {
        let report = self.run(sql).await.unwrap_or_else(|errors| panic!("{errors:?}"));
        assert!(report.is_success(), "{report:#?}");
        report
    }

    /// Runs what is asked for, and expects every flow to succeed.
    pub(crate) async fn request(&self, sql: &str, request: &UpdateRequest) -> UpdateReport {
        let report =
            self.project(sql).run_request(request).await.unwrap_or_else(|errors| panic!("{errors:?}"));
        assert!(report.is_success(), "{report:#?}");
        report
    }

    pub(crate) async fn rows(&self, sql: &str) -> Vec<JsonRow> {
        rows(&self.storage, sql).await
    }

    pub(crate) async fn version(&self, table: &str) -> u64 {
        let table = self.storage.format.open(table).await.unwrap().expect("the table exists");
        table.snapshot().await.unwrap().version().0
    }
}

/// Rows of a query, as JSON.
pub(crate) async fn rows(storage: &Storage, sql: &str) -> Vec<JsonRow> {
    let (_, batches) = strandline_runtime::query(storage, sql).await.unwrap();
    let mut writer = arrow_json::WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, arrow_json::writer::JsonArray>(Vec::new());
    for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    let text = writer.into_inner();
    if text.is_empty() { Vec::new() } else { serde_json::from_slice(&text).unwrap() }
}
