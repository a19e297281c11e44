//! Maintenance of a table: compaction, old versions, and files that belong to none.
//!
//! No answer changes by it, nor that of a version which is still kept. What is removed is removed last: files that are
//! looked at before the versions that may name them, so that a commit in between can only keep more.

use std::{collections::BTreeSet, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, path::Path};

use super::{LakeOptions, compact::Compactor, snapshot::Files};
use crate::{
    contract::{FileSums, MaintainOptions, Maintained, Result},
    error::ErrorKind,
    metadata::TableHead,
    parquet::file_path,
};

/// Folders within a table's that begin with one of these are the format's own, and not looked into.
const HIDDEN: [char; 2] = ['_', '.'];
/// But for this one, which holds data files.
const CHANGES: &str = "_change_data";

/// Maintains a table.
pub(super) async fn maintain(
    files: Files,
    options: LakeOptions,
    asked: &MaintainOptions,
) -> Result<Maintained> {
    let metadata = Arc::clone(&files.metadata);
    let mut done = Maintained { before: sums(&metadata.head(None).await?), ..Maintained::default() };
    if asked.compact {
        Compactor { files: files.clone(), options }.run(asked.dry_run, &mut done).await?;
    }
    done.after = sums(&metadata.head(None).await?);
    if let Some(before) = asked.expire_before {
        match expire(&files, before, asked.dry_run, &mut done).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                done.notices.push(format!("old versions are kept: {error}"));
            }
            ended => ended?,
        }
    }
    Ok(done)
}

fn sums(head: &TableHead) -> FileSums {
    head.files.iter().map(|file| file.size).collect()
}

/// Forgets versions, and removes files that belong to none.
async fn expire(files: &Files, before: i64, dry_run: bool, done: &mut Maintained) -> Result<()> {
    let metadata = &files.metadata;
    if !dry_run {
        done.versions_expired = metadata.expire(before).await?;
    }
    let old = unnamed_before(metadata.store(), metadata.root(), before).await?;
    let mut named = BTreeSet::new();
    for name in metadata.named_files(before).await? {
        named.insert(file_path(metadata.root(), &name)?);
    }
    let gone: Vec<ObjectMeta> = old.into_iter().filter(|object| !named.contains(&object.location)).collect();
    done.removed = gone.iter().map(|object| object.size).collect();
    if dry_run { Ok(()) } else { remove_objects(metadata.store(), gone).await }
}

/// What lies in a table's folder since before a moment.
async fn unnamed_before(store: &Arc<dyn ObjectStore>, root: &Path, before: i64) -> Result<Vec<ObjectMeta>> {
    let depth = root.parts().count();
    let is_visible = |path: &Path| {
        let first = path.parts().nth(depth);
        first.is_some_and(|first| first.as_ref() == CHANGES || !first.as_ref().starts_with(HIDDEN))
    };
    let found = store.list(Some(root)).try_filter(|object| {
        let old = object.last_modified.timestamp_millis() < before && is_visible(&object.location);
        futures::future::ready(old)
    });
    Ok(found.try_collect().await?)
}

/// Removes objects; one that is gone already is.
pub(crate) async fn remove_objects(store: &Arc<dyn ObjectStore>, objects: Vec<ObjectMeta>) -> Result<()> {
    let paths = stream::iter(objects).map(|object| Ok(object.location)).boxed();
    let mut deletions = store.delete_stream(paths);
    while let Some(deleted) = deletions.next().await {
        match deleted {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
