//! One version of a table, to read.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::StreamExt;
use object_store::path::Path;

use crate::{
    contract::{
        AppendedFile, BatchStream, LookupPlan, Result, RowStream, StateVersion, TableSnapshot, TableVersion,
        WriterId,
    },
    error::{Error, ErrorKind},
    lookup::{Candidate, Lookup},
    metadata::{DataFile, TableHead, TableMetadata},
    parquet::{Readers, file_path},
    rows,
    schema::projected,
};

/// One version of a [`LakeTable`](super::LakeTable).
#[derive(Debug)]
pub struct LakeSnapshot {
    metadata: Arc<dyn TableMetadata>,
    readers: Arc<Readers>,
    head: TableHead,
}

impl LakeSnapshot {
    pub(super) fn new(metadata: Arc<dyn TableMetadata>, readers: Arc<Readers>, head: TableHead) -> Self {
        Self { metadata, readers, head }
    }

    pub(super) fn root(&self) -> &Path {
        self.metadata.root()
    }

    /// Its metadata.
    pub fn head(&self) -> &TableHead {
        &self.head
    }

    fn batches(&self, files: Vec<Arc<DataFile>>, schema: SchemaRef) -> BatchStream {
        let opens = files.into_iter().map(move |file| {
            open_rows(Arc::clone(&self.readers), self.root().clone(), file, Arc::clone(&schema))
        });
        rows::chained(opens.collect::<Vec<_>>())
    }
}

async fn open_rows(
    readers: Arc<Readers>,
    root: Path,
    file: Arc<DataFile>,
    schema: SchemaRef,
) -> Result<BatchStream> {
    let reader = readers.open(file_path(&root, &file.path)?, file.size).await?;
    Ok(rows::live_rows(&reader, None, &schema)?.boxed())
}

#[async_trait]
impl TableSnapshot for LakeSnapshot {
    fn version(&self) -> TableVersion {
        self.head.version
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.head.schema)
    }

    fn properties(&self) -> &BTreeMap<String, String> {
        &self.head.properties
    }

    fn last_batch(&self, writer: &WriterId) -> Option<u64> {
        self.head.batches.get(writer).copied()
    }

    fn state_version(&self) -> StateVersion {
        self.head.state
    }

    fn epoch(&self) -> u64 {
        self.head.epoch
    }

    async fn lookup(&self, plan: &LookupPlan) -> Result<RowStream> {
        let lookup = Lookup::new(plan, &self.head.schema)?;
        let mut candidates = Vec::new();
        for (ordinal, file) in self.head.files.iter().enumerate() {
            if lookup.may_hold(|column| file.stats.get(column).cloned())? {
                let path = file_path(self.root(), &file.path)?;
                candidates.push(Candidate { ordinal, path, size: file.size, deleted: None });
            }
        }
        Ok(lookup.run(Arc::clone(&self.readers), candidates))
    }

    async fn scan(&self, columns: Option<&[String]>) -> Result<BatchStream> {
        let schema = projected(&self.head.schema, columns)?;
        Ok(self.batches(self.head.files.to_vec(), schema))
    }

    async fn appended_since(&self, since: Option<TableVersion>) -> Result<Vec<AppendedFile>> {
        let before = match since {
            None => None,
            Some(version) if version > self.head.version => {
                let message = format!("version {version} is after this one, {}", self.head.version);
                return Err(Error::new(ErrorKind::NotFound, message));
            }
            Some(version) => Some(self.metadata.head(Some(version)).await?),
        };
        let now: BTreeSet<_> = self.head.files.iter().map(|f| f.path.as_str()).collect();
        let old: BTreeSet<_> = before.iter().flat_map(|b| b.files.iter()).map(|f| f.path.as_str()).collect();
        if let Some(gone) = old.difference(&now).next() {
            let message = "rows were deleted or rewritten since; read the table from its beginning";
            return Err(Error::new(ErrorKind::Conflict, message).with("file", gone));
        }
        let new = self.head.files.iter().filter(|f| !old.contains(f.path.as_str()));
        Ok(new.map(|f| AppendedFile { path: f.path.clone(), size: f.size, rows: f.rows }).collect())
    }

    async fn read_file(&self, path: &str) -> Result<BatchStream> {
        let file = self.head.files.iter().find(|f| f.path == path);
        let file = file
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("`{path}` is no file of this version")))?;
        Ok(self.batches(vec![Arc::clone(file)], Arc::clone(&self.head.schema)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
