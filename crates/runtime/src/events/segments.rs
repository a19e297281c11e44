//! Where do events lie, so that a killed process leaves what happened, and the log doesn't grow for ever?
//!
//! `events/<update>/<first>-<last>.jsonl`: the events from number `first` to `last` of an update, in one immutable object.
//! Each flush adds one. Sixteen of a size become one of the next size, so that a long update has few objects and each
//! event is rewritten a few times only; a merged object is written before its parts are removed, and a reader leaves out
//! a part whose whole lies beside it.

use std::{collections::BTreeMap, sync::Arc};

use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};

use crate::{
    error::{Error, ErrorKind, Result, store_error},
    state::engine_path,
};

/// So many objects of one size become one of the next.
const MERGED: usize = 16;
/// An object that has this many bytes is not merged any more.
const LARGEST: u64 = 4 << 20;
/// A running update keeps this many bytes of its newest events.
const MOST_OF_UPDATE: u64 = 64 << 20;
/// Events of this many updates are kept.
const MOST_UPDATES: usize = 100;
/// Events of earlier updates have this many bytes together.
const MOST_OF_ALL: u64 = 256 << 20;

/// An object of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) path: Path,
    first: u64,
    last: u64,
    bytes: u64,
    /// How often its events were merged.
    level: u32,
}

/// The log of the update that runs.
#[derive(Debug)]
pub(super) struct Segments {
    store: Arc<dyn ObjectStore>,
    update: u64,
    written: Vec<Segment>,
}

impl Segments {
    pub(super) fn new(store: Arc<dyn ObjectStore>, update: u64) -> Self {
        Self { store, update, written: Vec::new() }
    }

    /// Adds lines, durably.
    pub(super) async fn append(&mut self, first: u64, last: u64, lines: Vec<u8>) -> Result<()> {
        let segment = self.put(first, last, lines, 0).await?;
        self.written.push(segment);
        self.merge().await?;
        self.forget_oldest().await
    }

    async fn put(&self, first: u64, last: u64, lines: Vec<u8>, level: u32) -> Result<Segment> {
        let path = engine_path(&["events", &folder(self.update), &format!("{first:012}-{last:012}.jsonl")]);
        let bytes = lines.len() as u64;
        self.store.put(&path, lines.into()).await.map_err(|e| store_error(e, &path))?;
        Ok(Segment { path, first, last, bytes, level })
    }

    async fn merge(&mut self) -> Result<()> {
        while let Some(start) = self.written.len().checked_sub(MERGED)
            && let Some(parts @ [oldest, .., newest]) = self.written.get(start..)
            && parts.iter().all(|part| part.level == oldest.level && part.bytes < LARGEST)
        {
            let mut lines = Vec::new();
            for part in parts {
                lines.extend_from_slice(&read(&self.store, &part.path).await?);
            }
            let whole = self.put(oldest.first, newest.last, lines, oldest.level + 1).await?;
            for part in self.written.split_off(start) {
                remove(&self.store, &part.path).await?;
            }
            self.written.push(whole);
        }
        Ok(())
    }

    async fn forget_oldest(&mut self) -> Result<()> {
        let mut bytes: u64 = self.written.iter().map(|segment| segment.bytes).sum();
        while bytes > MOST_OF_UPDATE && self.written.len() > 1 {
            let oldest = self.written.remove(0);
            bytes -= oldest.bytes;
            remove(&self.store, &oldest.path).await?;
        }
        Ok(())
    }
}

fn folder(update: u64) -> String {
    format!("{update:020}")
}

/// All objects of the log by update, each in the order of its events, without parts of what lies there as a whole.
pub(crate) async fn all(store: &Arc<dyn ObjectStore>) -> Result<BTreeMap<u64, Vec<Segment>>> {
    let mut updates = listed(store).await?;
    for segments in updates.values_mut() {
        segments.sort_by_key(|segment| (segment.first, std::cmp::Reverse(segment.last)));
        let mut seen = 0;
        segments.retain(|segment| {
            let is_new = segment.last > seen;
            seen = seen.max(segment.last);
            is_new
        });
    }
    Ok(updates)
}

async fn listed(store: &Arc<dyn ObjectStore>) -> Result<BTreeMap<u64, Vec<Segment>>> {
    let root = engine_path(&["events"]);
    let objects: Vec<_> = store.list(Some(&root)).try_collect().await.map_err(|e| store_error(e, &root))?;
    let mut updates: BTreeMap<u64, Vec<Segment>> = BTreeMap::new();
    for object in objects {
        let parts: Vec<_> = object.location.parts().collect();
        let [.., update, name] = parts.as_slice() else { continue };
        let range = name.as_ref().strip_suffix(".jsonl").and_then(|range| range.split_once('-'));
        let numbers = range.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        // What is no part of the log may lie there; it is let be.
        let (Ok(update), Some((first, last))) = (update.as_ref().parse::<u64>(), numbers) else { continue };
        let segment = Segment { path: object.location.clone(), first, last, bytes: object.size, level: 0 };
        updates.entry(update).or_default().push(segment);
    }
    Ok(updates)
}

/// Removes events of updates that are too old to be kept.
pub(super) async fn forget_old_updates(store: &Arc<dyn ObjectStore>) -> Result<()> {
    let mut bytes = 0;
    for (place, segments) in listed(store).await?.into_values().rev().enumerate() {
        bytes += segments.iter().map(|segment| segment.bytes).sum::<u64>();
        if place >= MOST_UPDATES || bytes > MOST_OF_ALL {
            for segment in segments {
                remove(store, &segment.path).await?;
            }
        }
    }
    Ok(())
}

/// The lines of an object.
pub(crate) async fn read(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<Vec<u8>> {
    let result = store.get(path).await.map_err(|e| store_error(e, path))?;
    if result.meta.size > 2 * MOST_OF_UPDATE {
        return Err(
            Error::new(ErrorKind::State, "a file of the event log is too large to be one").with("file", path)
        );
    }
    Ok(result.bytes().await.map_err(|e| store_error(e, path))?.to_vec())
}

async fn remove(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<()> {
    match store.delete(path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(store_error(error, path)),
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
