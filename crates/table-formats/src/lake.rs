//! Level 1 over any level 2: tables of Parquet files, changed by copy-on-write or merge-on-read.
//!
//! A row's id is its file's place in the snapshot's sorted list of files, and its position in that file.

mod append;
mod changes;
mod commit;
mod compact;
mod compact_plan;
mod diff;
mod feed;
mod maintain;
mod mode;
mod plan;
mod replace_where;
mod rewrite;
mod snapshot;

pub(crate) use maintain::remove_objects;
pub use mode::{WRITE_MODE, WriteMode};
use snapshot::Files;
pub use snapshot::LakeSnapshot;

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    contract::{
        BatchStream, CommitOutcome, CommitStamp, MaintainOptions, Maintained, Result, Table, TableChange,
        TableCommit, TableSnapshot, TableVersion,
    },
    error::{Error, ErrorKind},
    metadata::{TableHead, TableMetadata},
    parquet::{ReadCounts, Readers, WriteOptions},
};

/// How a table's files are kept.
#[derive(Debug, Clone, Copy)]
pub struct LakeOptions {
    /// How files are cut.
    pub files: WriteOptions,
    /// A file of fewer rows is small: rewritten together with others when there are many.
    pub small_rows: u64,
    /// So many small files are merged into one.
    pub fold_files: usize,
    /// How deleted rows are written, where the table's own property does not say it.
    pub write_mode: WriteMode,
    /// A file of fewer rows is written anew rather than masked, if the mode leaves the choice.
    pub mask_rows: u64,
}

impl Default for LakeOptions {
    fn default() -> Self {
        Self {
            files: WriteOptions::default(),
            small_rows: 128 << 10,
            fold_files: 8,
            write_mode: WriteMode::default(),
            mask_rows: 16 << 10,
        }
    }
}

/// A table over an adapter's metadata.
#[derive(Debug)]
pub struct LakeTable<M> {
    metadata: Arc<M>,
    readers: Arc<Readers>,
    options: LakeOptions,
}

impl<M: TableMetadata> LakeTable<M> {
    /// A table with this metadata.
    pub fn new(metadata: Arc<M>, options: LakeOptions) -> Self {
        let readers = Arc::new(Readers::new(Arc::clone(metadata.store())));
        Self { metadata, readers, options }
    }

    fn over(&self, head: TableHead) -> Arc<dyn TableSnapshot> {
        Arc::new(LakeSnapshot::new(self.files(), head))
    }

    fn files(&self) -> Files {
        let metadata: Arc<dyn TableMetadata> = Arc::<M>::clone(&self.metadata);
        Files { metadata, readers: Arc::clone(&self.readers) }
    }
}

#[async_trait]
impl<M: TableMetadata> Table for LakeTable<M> {
    async fn snapshot(&self) -> Result<Arc<dyn TableSnapshot>> {
        Ok(self.over(self.metadata.head(None).await?))
    }

    async fn at(&self, version: TableVersion) -> Result<Arc<dyn TableSnapshot>> {
        Ok(self.over(self.metadata.head(Some(version)).await?))
    }

    async fn commit(
        &self,
        base: &dyn TableSnapshot,
        change: TableChange,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        let base = base.as_any().downcast_ref::<LakeSnapshot>().filter(|s| s.root() == self.metadata.root());
        let base =
            base.ok_or_else(|| Error::new(ErrorKind::Invalid, "the base is not a snapshot of this table"))?;
        let committer = commit::Committer { files: self.files(), options: self.options };
        let change = replace_where::as_rows(base, change).await?;
        committer.commit(base.head(), change, stamp).await
    }

    async fn commits(&self, after: Option<TableVersion>, until: TableVersion) -> Result<Vec<TableCommit>> {
        Ok(self.metadata.commits(after, until).await?.iter().map(changes::summary).collect())
    }

    async fn changes(&self, first: TableVersion, last: TableVersion) -> Result<BatchStream> {
        changes::read(self.files(), first, last).await
    }

    async fn first_since(&self, millis: i64) -> Result<Option<TableVersion>> {
        self.metadata.first_since(millis).await
    }

    async fn maintain(&self, options: &MaintainOptions) -> Result<Maintained> {
        maintain::maintain(self.files(), self.options, options).await
    }

    fn read_counts(&self) -> ReadCounts {
        self.readers.counts()
    }
}
