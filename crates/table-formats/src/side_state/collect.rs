//! Which versions of the state, and which of its files, does nobody need any more?
//!
//! Numbers of versions grow with those of the target: what is below the version that the oldest retained target names is
//! named by none that is retained. A version above it may be a leftover, or be about to be named: it stays until the target
//! has moved on. So does whatever is younger than any open plan.

use std::collections::BTreeSet;

use futures::TryStreamExt;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, path::Path};

use super::{MANIFEST_BYTES, Manifest, SideState};
use crate::{
    contract::{FileSums, Result, StateVersion},
    error::{Error, ErrorKind},
    lake::remove_objects,
};

/// What was removed, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collected {
    /// Versions, by their manifests.
    pub versions: u64,
    /// Data files.
    pub files: FileSums,
}

impl SideState {
    /// Removes versions below `oldest` that were written before a moment, in milliseconds since 1970, UTC, and files of that
    /// age that no other version names. `oldest` is the state version of the oldest version of the target that is retained.
    /// A dry run only tells.
    ///
    /// # Errors
    /// `Corrupt` when a version that stays can't be read: then nothing is removed; else the store's.
    pub async fn collect(&self, oldest: StateVersion, before: i64, dry_run: bool) -> Result<Collected> {
        let store = self.readers.store();
        // Files first: one that a version names from now on is younger than all of these.
        let data: Vec<ObjectMeta> = store.list(Some(&self.data_folder())).try_collect().await?;
        let listed = store.list_with_delimiter(Some(&self.root)).await?.objects;
        let is_old = |object: &ObjectMeta| object.last_modified.timestamp_millis() < before;
        let (gone, kept): (Vec<_>, Vec<_>) = listed
            .into_iter()
            .filter_map(|object| Some((number(&object.location)?, object)))
            .partition(|(version, object)| *version < oldest && is_old(object));
        let mut named = BTreeSet::new();
        for (version, object) in kept {
            named.extend(self.files_of(version, &object).await?);
        }
        let unnamed = |object: &ObjectMeta| !named.contains(&object.location);
        let files: Vec<_> = data.into_iter().filter(|object| is_old(object) && unnamed(object)).collect();
        let collected = Collected {
            versions: gone.len() as u64,
            files: files.iter().map(|object| object.size).collect(),
        };
        if !dry_run {
            // Manifests go first, so that none names a file that is gone.
            remove_objects(store, gone.into_iter().map(|(_, object)| object).collect()).await?;
            remove_objects(store, files).await?;
        }
        Ok(collected)
    }

    /// The data files that a version names.
    async fn files_of(&self, version: StateVersion, object: &ObjectMeta) -> Result<Vec<Path>> {
        let path = &object.location;
        if object.size > MANIFEST_BYTES {
            return Err(
                Error::new(ErrorKind::Corrupt, "the manifest is too large to be one").with("manifest", path)
            );
        }
        let bytes = self.readers.store().get(path).await?.bytes().await?;
        let manifest = Manifest::decode(&bytes, version).map_err(|e| e.with("manifest", path))?;
        Ok(manifest.files.into_iter().map(|file| self.data_folder().join(file.path.as_str())).collect())
    }
}

/// The version whose manifest this is.
fn number(path: &Path) -> Option<StateVersion> {
    let number = path.filename()?.strip_suffix(".json")?;
    number.parse().ok().map(StateVersion)
}
