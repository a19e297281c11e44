//! A catalog in memory: tables whose metadata live in this value.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use iceberg::{TableRequirement, TableUpdate};

use super::{
    Catalog, Creation, Loaded, Swap,
    metadata_file::{self, Draft},
};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// Tables whose files lie in folders of their names under a URL. For tests, and to see what a catalog must do.
#[derive(Debug)]
pub struct MemoryCatalog {
    url: String,
    tables: Mutex<BTreeMap<String, Loaded>>,
}

impl MemoryCatalog {
    /// No tables yet; those to come lie under this URL.
    pub fn new(url: &str) -> Self {
        Self { url: url.to_owned(), tables: Mutex::default() }
    }

    /// A catalog of the same tables, which goes its own way from here.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { url: self.url.clone(), tables: Mutex::new(self.lock().clone()) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Loaded>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Catalog for MemoryCatalog {
    async fn list(&self) -> Result<Vec<String>> {
        Ok(self.lock().keys().cloned().collect())
    }

    async fn load(&self, table: &str) -> Result<Option<Loaded>> {
        Ok(self.lock().get(table).cloned())
    }

    async fn create(&self, table: &str, creation: Creation) -> Result<Loaded> {
        let mut tables = self.lock();
        if tables.contains_key(table) {
            return Err(Error::new(ErrorKind::Conflict, format!("table `{table}` exists")));
        }
        let draft = metadata_file::first(metadata_file::table_folder(&self.url, table)?, creation)?;
        let loaded = loaded(draft);
        tables.insert(table.to_owned(), loaded.clone());
        Ok(loaded)
    }

    async fn commit(
        &self,
        table: &str,
        base: &Loaded,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<Swap> {
        let mut tables = self.lock();
        let Some(now) = tables.get(table) else { return Ok(Swap::Lost) };
        if now.metadata_location != base.metadata_location
            || !metadata_file::hold(&requirements, &now.metadata)
        {
            return Ok(Swap::Lost);
        }
        let loaded = loaded(metadata_file::next(now, updates)?);
        tables.insert(table.to_owned(), loaded.clone());
        Ok(Swap::Swapped(loaded))
    }
}

/// Metadata as they would be read from their file, which is never written.
fn loaded(draft: Draft) -> Loaded {
    Loaded { metadata: Arc::new(draft.metadata), metadata_location: draft.location.to_string() }
}
