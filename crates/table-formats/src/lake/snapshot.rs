//! One version of a table, to read.

use std::{any::Any, collections::BTreeMap, sync::Arc};

use arrow_schema::{FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use parquet::arrow::arrow_reader::RowSelection;
use roaring::RoaringBitmap;

use crate::{
    contract::{
        AppendedFile, BatchStream, LookupPlan, Result, RowStream, StateVersion, TableSnapshot, TableVersion,
        WriterId,
    },
    error::{Error, ErrorKind},
    lookup::{Candidate, Lookup},
    metadata::{DataFile, TableHead, TableMetadata},
    parquet::{Read, Readers, file_path},
    rows,
    schema::{completed, projected},
};

/// A table's files, to read.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) metadata: Arc<dyn TableMetadata>,
    pub(super) readers: Arc<Readers>,
}

impl Files {
    /// The rows of a file without the deleted ones, in a schema.
    pub(super) async fn open(
        self,
        file: Arc<DataFile>,
        deleted: Option<Arc<RoaringBitmap>>,
        schema: SchemaRef,
    ) -> Result<BatchStream> {
        let reader = self.readers.open(file_path(self.metadata.root(), &file.path)?, file.size).await?;
        let reader = reader.named_by(&schema);
        if file.constants.is_empty() {
            return Ok(rows::live_rows(&reader, deleted, &schema)?.boxed());
        }
        let rows = rows::live_rows(&reader, deleted, &own_columns(&file, &schema))?;
        Ok(rows.map(move |batch| completed(&batch?, &schema, &file.constants)).boxed())
    }

    /// Some rows of a file, by their positions, whether they count or not.
    pub(super) async fn picked(
        self,
        file: Arc<DataFile>,
        positions: RoaringBitmap,
        schema: SchemaRef,
    ) -> Result<BatchStream> {
        let reader = self.readers.open(file_path(self.metadata.root(), &file.path)?, file.size).await?;
        let reader = reader.named_by(&schema);
        let total = usize::try_from(reader.rows()).unwrap_or(usize::MAX);
        let ranges = positions.iter().filter_map(|at| usize::try_from(at).ok()).map(|at| at..at + 1);
        let read = Read {
            columns: Some(schema.fields().iter().map(|field| field.name().clone()).collect()),
            groups: None,
            selection: Some(RowSelection::from_consecutive_ranges(ranges, total)),
        };
        let rows = reader.read(read)?;
        Ok(rows.map(move |batch| completed(&batch?, &schema, &file.constants)).boxed())
    }

    /// Which rows of a file don't count.
    pub(super) async fn deleted(&self, file: &DataFile) -> Result<Option<Arc<RoaringBitmap>>> {
        match &file.deleted {
            None => Ok(None),
            Some(_) => Ok(Some(Arc::new(self.metadata.deleted_rows(file).await?))),
        }
    }

    /// The rows of files, one file after the other.
    pub(super) fn rows(&self, files: &[Arc<DataFile>], schema: &SchemaRef) -> BatchStream {
        let opens = files.iter().map(|file| {
            let (files, file, schema) = (self.clone(), Arc::clone(file), Arc::clone(schema));
            async move {
                let deleted = files.deleted(&file).await?;
                files.open(file, deleted, schema).await
            }
        });
        rows::chained(opens.collect::<Vec<_>>())
    }
}

/// The columns that a file itself has, or lacks: a column that every row has a value of may allow no NULL, not even until
/// the value is there.
fn own_columns(file: &DataFile, schema: &SchemaRef) -> SchemaRef {
    let is_own = |field: &&FieldRef| !file.constants.contains_key(field.name());
    let own: Vec<FieldRef> = schema.fields().iter().filter(is_own).cloned().collect();
    Arc::new(Schema::new(own))
}

/// One version of a [`LakeTable`](super::LakeTable).
#[derive(Debug)]
pub struct LakeSnapshot {
    files: Files,
    head: TableHead,
}

impl LakeSnapshot {
    pub(super) fn new(files: Files, head: TableHead) -> Self {
        Self { files, head }
    }

    pub(super) fn root(&self) -> &Path {
        self.files.metadata.root()
    }

    /// Its metadata.
    pub fn head(&self) -> &TableHead {
        &self.head
    }
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

    fn identity(&self) -> &str {
        &self.head.identity
    }

    fn check_changes(&self) -> Result<()> {
        self.files.metadata.check_changes(&self.head)
    }

    async fn lookup(&self, plan: &LookupPlan) -> Result<RowStream> {
        let lookup = Lookup::new(plan, &self.head.schema)?;
        let mut candidates = Vec::new();
        for (ordinal, file) in self.head.files.iter().enumerate() {
            if lookup.may_hold(|column| file.stats.get(column).cloned())? {
                let path = file_path(self.root(), &file.path)?;
                let deleted = self.files.deleted(file).await?;
                let constants = Arc::clone(&file.constants);
                candidates.push(Candidate { ordinal, path, size: file.size, deleted, constants });
            }
        }
        Ok(lookup.run(Arc::clone(&self.files.readers), candidates))
    }

    async fn scan(&self, columns: Option<&[String]>) -> Result<BatchStream> {
        let schema = projected(&self.head.schema, columns)?;
        Ok(self.files.rows(&self.head.files, &schema))
    }

    async fn appended_since(&self, since: Option<TableVersion>) -> Result<Vec<AppendedFile>> {
        let before = match since {
            None => None,
            Some(version) if version > self.head.version => {
                let message = format!("version {version} is after this one, {}", self.head.version);
                return Err(Error::new(ErrorKind::NotFound, message));
            }
            Some(version) => Some(self.files.metadata.head(Some(version)).await?),
        };
        let now: BTreeMap<_, _> = self.head.files.iter().map(|f| (f.path.as_str(), f)).collect();
        let old: BTreeMap<_, _> =
            before.iter().flat_map(|b| b.files.iter()).map(|f| (f.path.as_str(), f)).collect();
        let kept = |path: &str, file: &DataFile| now.get(path).is_some_and(|now| now.is_same(file));
        if let Some((gone, _)) = old.iter().find(|(path, file)| !kept(path, file)) {
            let message = "rows were deleted or rewritten since; read the table from its beginning";
            return Err(Error::new(ErrorKind::Conflict, message).with("file", gone));
        }
        let new = self.head.files.iter().filter(|f| !old.contains_key(f.path.as_str()));
        Ok(new.map(|f| AppendedFile { path: f.path.clone(), size: f.size, rows: f.live_rows() }).collect())
    }

    async fn read_file(&self, path: &str) -> Result<BatchStream> {
        let file = self.head.files.iter().find(|f| f.path == path);
        let file = file
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("`{path}` is no file of this version")))?;
        let (rows, version) =
            (self.files.rows(std::slice::from_ref(file), &self.head.schema), self.head.version);
        let gone = move |error: Error| {
            if !error.is_missing_file() {
                return error;
            }
            let message = "a file of this version was removed from the table's folder";
            Error::new(ErrorKind::NotFound, message).with("version", version).because(error)
        };
        Ok(rows.map_err(gone).boxed())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
