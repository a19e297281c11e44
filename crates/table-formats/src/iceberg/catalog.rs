//! The commit port: where tables are listed, and where a table's next metadata replaces the ones before it.
//!
//! An Iceberg commit is one swap: the catalog's pointer moves from the metadata that the commit was built on to the new
//! ones, or does not move because somebody else was first. All else (data files, manifests, manifest lists) is written before
//! and seen by nobody until then.

mod folder;
mod memory;
mod metadata_file;
mod options;
pub mod rest;
mod sql;

use std::{collections::HashMap, fmt, sync::Arc};

use async_trait::async_trait;
use iceberg::{
    TableRequirement, TableUpdate,
    spec::{Schema, SortOrder, TableMetadata, UnboundPartitionSpec},
};

pub(super) use self::folder::FolderCatalog;
pub use self::{
    memory::MemoryCatalog,
    options::CatalogOptions,
    rest::{RestCatalog, RestOptions},
    sql::{SqlCatalog, SqlOptions},
};
use crate::contract::Result;

/// A table as its catalog knows it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its metadata.
    pub metadata: Arc<TableMetadata>,
    /// Where they were read from: a URL.
    pub metadata_location: String,
}

/// What a table is created with.
#[derive(Debug, Clone)]
pub struct Creation {
    /// Columns, with their numbers.
    pub schema: Schema,
    /// How it is partitioned.
    pub partitioning: UnboundPartitionSpec,
    /// How files are sorted.
    pub sort_order: SortOrder,
    /// Properties.
    pub properties: HashMap<String, String>,
}

/// How a swap ended, as far as it can be foreseen.
#[derive(Debug, Clone)]
#[must_use]
pub enum Swap {
    /// The updates are the table's newest metadata.
    Swapped(Loaded),
    /// A requirement does not hold any more, or another commit came first: nothing was swapped.
    Lost,
}

/// A catalog of Iceberg tables in one namespace.
///
/// # Contract
/// 1. A swap is atomic: [`Catalog::load`] shows the table before it or after it.
/// 2. A swap that another one came before, on the same metadata, is [`Swap::Lost`] and changes nothing.
/// 3. After an `Err` of [`Catalog::commit`] the swap may have happened or not: load the table and look.
/// 4. Creating is exclusive: of two that create one table one gets `Conflict`.
#[async_trait]
pub trait Catalog: fmt::Debug + Send + Sync + 'static {
    /// Names of the namespace's tables, sorted.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn list(&self) -> Result<Vec<String>>;
    /// A table with its newest metadata; `None` when there is none of that name.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    async fn load(&self, table: &str) -> Result<Option<Loaded>>;
    /// Creates a table without rows. The catalog says where it lies: see its metadata's location.
    ///
    /// # Errors
    /// `Conflict` when it exists, `Unavailable`.
    async fn create(&self, table: &str, creation: Creation) -> Result<Loaded>;
    /// Swaps a table's metadata for what the updates make of `base`, if the requirements hold.
    ///
    /// # Errors
    /// `Unavailable`: then it may have happened. `Invalid` for updates that make no table.
    async fn commit(
        &self,
        table: &str,
        base: &Loaded,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<Swap>;
}
