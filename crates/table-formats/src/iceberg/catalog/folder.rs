//! A table by its folder alone, without a catalog: it can be read, not changed.
//!
//! The newest metadata are those that `version-hint.text` names, as Hadoop's tables have it; else the file of the greatest
//! number. Without a catalog nobody can tell whether a file that is being written was committed.

use async_trait::async_trait;
use futures::TryStreamExt;
use iceberg::{TableRequirement, TableUpdate};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};

use super::{Catalog, Creation, Loaded, Swap, metadata_file};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    iceberg::Warehouse,
};

/// What a metadata file's name ends with.
const ENDS: [&str; 2] = [".metadata.json", ".metadata.json.gz"];
/// The file that names the newest version.
const HINT: &str = "version-hint.text";

/// One table, in one folder of a warehouse.
#[derive(Debug)]
pub(in crate::iceberg) struct FolderCatalog {
    warehouse: Warehouse,
    folder: Path,
}

impl FolderCatalog {
    /// The table in this folder.
    pub(in crate::iceberg) fn new(warehouse: Warehouse, folder: Path) -> Self {
        Self { warehouse, folder }
    }

    /// The newest metadata file; `None` when the folder has none.
    async fn newest(&self) -> Result<Option<Path>> {
        let folder = self.folder.clone().join("metadata");
        let hint = match self.warehouse.store().get(&folder.clone().join(HINT)).await {
            Ok(found) => String::from_utf8(found.bytes().await?.to_vec()).ok(),
            Err(object_store::Error::NotFound { .. }) => None,
            Err(e) => return Err(e.into()),
        };
        let hint = hint.and_then(|hint| hint.trim().parse::<u64>().ok());
        let mut best: Option<(bool, u64, Path)> = None;
        let mut listed = self.warehouse.store().list(Some(&folder));
        while let Some(object) = listed.try_next().await? {
            let name = object.location.filename().unwrap_or_default();
            let Some(number) = number(name) else { continue };
            let candidate = (Some(number) == hint, number, object.location);
            if best.as_ref().is_none_or(|best| *best < candidate) {
                best = Some(candidate);
            }
        }
        Ok(best.map(|(_, _, path)| path))
    }
}

/// The number in a metadata file's name: `v3.metadata.json`, `00003-<uuid>.metadata.json`, and the same with `.gz`.
fn number(name: &str) -> Option<u64> {
    let stem = ENDS.iter().find_map(|end| name.strip_suffix(end))?;
    let stem = stem.strip_suffix(".gz").unwrap_or(stem);
    stem.strip_prefix('v').unwrap_or(stem).split('-').next()?.parse().ok()
}

#[async_trait]
impl Catalog for FolderCatalog {
    async fn list(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn load(&self, _: &str) -> Result<Option<Loaded>> {
        match self.newest().await? {
            None => Ok(None),
            Some(path) => metadata_file::read(&self.warehouse, &self.warehouse.url(&path)).await.map(Some),
        }
    }

    async fn create(&self, _: &str, _: Creation) -> Result<Loaded> {
        Err(read_only())
    }

    async fn commit(
        &self,
        _: &str,
        _: &Loaded,
        _: Vec<TableRequirement>,
        _: Vec<TableUpdate>,
    ) -> Result<Swap> {
        Err(read_only())
    }
}

fn read_only() -> Error {
    Error::new(ErrorKind::Unsupported, "a table by its path is read, not changed")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn the_newest_metadata_are_those_that_are_hinted_at_or_of_the_greatest_number() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let catalog = FolderCatalog::new(Warehouse::new(Arc::clone(&store), "memory://"), Path::from("t"));
        assert!(catalog.newest().await.unwrap().is_none());
        for name in ["v9.metadata.json", "v10.gz.metadata.json", "00002-x.metadata.json", "snap-11.avro"] {
            store.put(&Path::from(format!("t/metadata/{name}")), "x".into()).await.unwrap();
        }
        let newest = catalog.newest().await.unwrap().unwrap();
        assert_eq!(newest.filename(), Some("v10.gz.metadata.json"));
        store.put(&Path::from("t/metadata/version-hint.text"), "9\n".into()).await.unwrap();
        assert_eq!(catalog.newest().await.unwrap().unwrap().filename(), Some("v9.metadata.json"));
    }
}
