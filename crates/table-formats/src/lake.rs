//! Level 1 over any level 2: tables of Parquet files, changed by copy-on-write.
//!
//! A row's id is its file's place in the snapshot's sorted list of files, and its position in that file.

mod changes;
mod commit;
mod diff;
mod plan;
mod snapshot;

use snapshot::Files;
pub use snapshot::LakeSnapshot;

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    contract::{
        BatchStream, CommitOutcome, CommitStamp, Result, Table, TableChange, TableCommit, TableSnapshot,
        TableVersion,
    },
    error::{Error, ErrorKind},
    metadata::{TableHead, TableMetadata},
    parquet::{Readers, WriteOptions},
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
}

impl Default for LakeOptions {
    fn default() -> Self {
        Self { files: WriteOptions::default(), small_rows: 128 << 10, fold_files: 8 }
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
        let metadata: Arc<dyn TableMetadata> = Arc::<M>::clone(&self.metadata);
        Arc::new(LakeSnapshot::new(Files { metadata, readers: Arc::clone(&self.readers) }, head))
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
        let metadata: Arc<dyn TableMetadata> = Arc::<M>::clone(&self.metadata);
        let committer =
            commit::Committer { metadata, readers: Arc::clone(&self.readers), options: self.options };
        committer.commit(base.head(), change, stamp).await
    }

    async fn commits(&self, after: Option<TableVersion>, until: TableVersion) -> Result<Vec<TableCommit>> {
        Ok(self.metadata.commits(after, until).await?.iter().map(changes::summary).collect())
    }

    async fn changes(&self, first: TableVersion, last: TableVersion) -> Result<BatchStream> {
        let metadata: Arc<dyn TableMetadata> = Arc::<M>::clone(&self.metadata);
        changes::read(Files { metadata, readers: Arc::clone(&self.readers) }, first, last).await
    }

    async fn first_since(&self, millis: i64) -> Result<Option<TableVersion>> {
        self.metadata.first_since(millis).await
    }
}
