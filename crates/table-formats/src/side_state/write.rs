//! A new version of the state: one new file at most, some positions marked, and now and then files merged.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{StreamExt, stream};
use object_store::{PutMode, PutOptions};
use roaring::RoaringBitmap;
use strandline_cdc_core::RowChanges;

use super::{MANIFEST_BYTES, Manifest, SideState, StateFile, StateSnapshot};
use crate::{
    contract::{BatchStream, Result, StateVersion},
    error::{Error, ErrorKind},
    merge,
    parquet::Writer,
    rows,
    schema::{adapt, check_keys, widened},
};

/// Versions that may be taken by leftovers above the base.
const TRIES: u64 = 1 << 16;
/// Files of the lowest tier have fewer rows than this; each tier above, eight times as many.
const TIER_ROWS: u64 = 4 << 10;

impl SideState {
    /// Writes the version after a change of the base, whose ids the change's deletes are, with these barriers instead of
    /// the base's. Gives the base's version when nothing changes.
    ///
    /// # Errors
    /// `Invalid` for ids that are not of the base and for rows that don't fit, else the store's.
    pub async fn write(
        &self,
        base: &StateSnapshot,
        change: &RowChanges,
        barriers: Option<&RecordBatch>,
    ) -> Result<StateVersion> {
        let barriers = barriers.filter(|rows| rows.num_rows() > 0);
        if change.is_empty() {
            if barriers == base.barriers() {
                return Ok(base.version);
            }
            let manifest = Manifest { barriers: barriers.cloned(), ..base.manifest.as_ref().clone() };
            return self.put(base.version, &manifest).await;
        }
        let schema = match &base.manifest.schema {
            Some(schema) => widened(schema, change.inserts.schema_ref())?,
            None => change.inserts.schema(),
        };
        check_keys(&schema, &self.keys)?;
        let files = deleted(&base.manifest.files, change)?;
        let inserts = merge::sorted(adapt(&change.inserts, &schema)?, &self.keys)?;
        let merged = self.to_merge(&files, inserts.num_rows() as u64);
        let new = self.write_file(base, &files, &merged, inserts, &schema).await?;
        let kept = files.into_iter().enumerate().filter(|(i, f)| !merged.contains(i) && f.live() > 0);
        let mut files: Vec<_> = kept.map(|(_, file)| file).collect();
        files.extend(new);
        let barriers = barriers.cloned();
        let manifest = Manifest { keys: self.keys.clone(), schema: Some(schema), barriers, files };
        self.put(base.version, &manifest).await
    }

    /// Writes a version without rows and barriers, above another, which need not be of the same keys: what a table that is
    /// replaced begins with.
    ///
    /// # Errors
    /// The store's.
    pub async fn write_empty(&self, above: StateVersion) -> Result<StateVersion> {
        self.put(above, &Manifest::empty(self.keys.clone())).await
    }

    /// Files that are merged into the new one: those of a tier that is full, and those whose rows are mostly gone.
    fn to_merge(&self, files: &[StateFile], inserted: u64) -> BTreeSet<usize> {
        let is_stale = |f: &StateFile| f.live() > 0 && f.deleted.len() > f.live();
        let mut merged: BTreeSet<_> = (0..files.len()).filter(|i| is_stale(&files[*i])).collect();
        loop {
            let rows = inserted + merged.iter().map(|i| files[*i].live()).sum::<u64>();
            let peers: Vec<_> = (0..files.len())
                .filter(|i| {
                    !merged.contains(i) && files[*i].live() > 0 && tier(files[*i].live()) <= tier(rows)
                })
                .collect();
            if rows == 0 || peers.len() + 1 < self.options.fold_files {
                return merged;
            }
            merged.extend(peers);
        }
    }

    async fn write_file(
        &self,
        base: &StateSnapshot,
        files: &[StateFile],
        merged: &BTreeSet<usize>,
        inserts: RecordBatch,
        schema: &SchemaRef,
    ) -> Result<Vec<StateFile>> {
        let mut total = inserts.num_rows() as u64;
        let mut inputs: Vec<BatchStream> = Vec::new();
        for file in merged.iter().filter_map(|i| files.get(*i)) {
            total += file.live();
            inputs.push(rows::ahead(base.clone().open(file.clone(), Arc::clone(schema)).await?));
        }
        inputs.push(stream::iter([Ok(inserts)]).boxed());
        let store = Arc::clone(self.readers.store());
        let options = self.options.files.sharing(total);
        let mut writer = Writer::new(store, self.data_folder(), Arc::clone(schema), &self.keys, options);
        let mut batches = merge::by_key(inputs, schema, &self.keys)?;
        while let Some(batch) = batches.next().await {
            let written = match batch {
                Ok(batch) => writer.write(&batch).await,
                Err(e) => Err(e),
            };
            if let Err(e) = written {
                writer.abandon().await;
                return Err(e);
            }
        }
        let written = writer.finish().await?;
        Ok(written
            .into_iter()
            .map(|f| StateFile { path: f.path, size: f.size, rows: f.rows, deleted: Arc::default() })
            .collect())
    }

    /// Puts a manifest at the first free number above the base's.
    async fn put(&self, base: StateVersion, manifest: &Manifest) -> Result<StateVersion> {
        for version in (base.0 + 1..).take(usize::try_from(TRIES).unwrap_or(usize::MAX)).map(StateVersion) {
            let bytes = manifest.encode(version)?;
            check_size(bytes.len() as u64)?;
            let options = PutOptions::from(PutMode::Create);
            match self.readers.store().put_opts(&self.manifest_path(version), bytes.into(), options).await {
                Ok(_) => return Ok(version),
                Err(object_store::Error::AlreadyExists { .. }) => {}
                Err(e) => return Err(Error::from(e).with("state version", version)),
            }
        }
        let message = format!("no free state version among {TRIES} above {base}");
        Err(Error::new(ErrorKind::Conflict, message))
    }
}

/// Refuses what no reader would open.
fn check_size(bytes: u64) -> Result<()> {
    if bytes <= MANIFEST_BYTES {
        return Ok(());
    }
    let message = format!("the state's manifest would have {bytes} bytes, at most {MANIFEST_BYTES} are read");
    Err(Error::new(ErrorKind::Unsupported, message))
}

fn tier(rows: u64) -> u32 {
    (rows / TIER_ROWS).checked_ilog2().map_or(0, |log| log / 3 + 1)
}

/// The base's files with the change's deletes marked.
fn deleted(files: &[StateFile], change: &RowChanges) -> Result<Vec<StateFile>> {
    let gone = rows::positions_by_file(change.deletes.values().iter().copied(), |file| {
        files.get(file).map(|f| f.rows)
    })?;
    let mut files = files.to_vec();
    for (file, positions) in gone {
        let Some(file) = files.get_mut(file) else { continue };
        if !file.deleted.is_disjoint(&positions) {
            let message = "a row that is deleted already was deleted again";
            return Err(Error::new(ErrorKind::Invalid, message).with("file", &file.path));
        }
        file.deleted = Arc::new(RoaringBitmap::clone(&file.deleted) | positions);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_opened() {
        assert!(check_size(MANIFEST_BYTES).is_ok());
        assert_eq!(check_size(MANIFEST_BYTES + 1).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
