//! What must change for the stored rows to show what the fold found?
//!
//! Every stored row of the region is either kept as it is or goes; what the fold found and no kept row shows comes.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, RecordBatch};

use super::{
    super::{payload::RowRef, scd1::ids},
    events::{Entry, Place, Region, Source, Sources, VISIBLE},
};
use crate::{
    algebra::{
        order::{Op, Ordinal},
        timeline::Version,
    },
    batch::RowChanges,
    error::CdcError,
    names,
    side::SideKind,
    spec::CdcSpec,
};

pub(super) struct Effects<'a> {
    sources: &'a Sources<'a>,
    region: &'a Region,
    settled: &'a [Entry],
    versions: Vec<Version>,
    side: Vec<(usize, SideKind)>,
    kept_visible: Vec<bool>,
    kept_hidden: Vec<bool>,
}

impl<'a> Effects<'a> {
    pub(super) fn new(sources: &'a Sources<'a>, region: &'a Region, settled: &'a [Entry]) -> Self {
        Self {
            sources,
            region,
            settled,
            versions: Vec::new(),
            side: Vec::new(),
            kept_visible: vec![false; sources.prior.visible.batch.num_rows()],
            kept_hidden: vec![false; sources.prior.hidden.batch.num_rows()],
        }
    }

    fn entry(&self, i: usize) -> Option<&'a Entry> {
        self.settled.get(i)
    }

    /// The fold found a version.
    pub(super) fn version(&mut self, version: Version) {
        let (Some(first), Some(tail)) = (self.entry(version.first), self.entry(version.tail)) else { return };
        let end = version.end.and_then(|end| self.entry(end)).map(|entry| entry.at);
        let stored_alike = tail.source == Source::Visible
            && super::events::at(&self.sources.start_at, tail.row) == first.at
            && self.sources.end_of(tail.row) == end;
        match self.kept_visible.get_mut(tail.row as usize) {
            Some(kept) if stored_alike => *kept = true,
            _ => self.versions.push(version),
        }
        for i in version.first..version.tail {
            self.hidden(i, SideKind::Interior);
        }
        if version.first == version.tail {
            return;
        }
        let stored_tail = tail.tail.or_else(|| place_of(&self.region.tails, tail.group, tail.at));
        match stored_tail.and_then(|row| self.kept_hidden.get_mut(row as usize)) {
            Some(kept) => *kept = true,
            None => self.side.push((version.tail, SideKind::Tail)),
        }
    }

    /// The fold found a delete that ends nothing.
    pub(super) fn unmatched_delete(&mut self, i: usize) {
        self.hidden(i, SideKind::Delete);
    }

    /// An event must be hidden: it stays where it is hidden already.
    fn hidden(&mut self, i: usize, kind: SideKind) {
        let Some(entry) = self.entry(i) else { return };
        // A side row of another kind can't stand for this event: an interior is an upsert, a delete is none.
        debug_assert_eq!(entry.op == Op::Delete, kind == SideKind::Delete, "an event keeps what it does");
        match self.kept_hidden.get_mut(entry.row as usize) {
            Some(kept) if entry.source == Source::Hidden => *kept = true,
            _ => self.side.push((i, kind)),
        }
    }

    /// A version that another event shows now, with the values that are stored already, stays as it is.
    fn keep_equal_rows(&mut self) -> Result<(), CdcError> {
        let mut kept = Vec::new();
        let sources = self.sources;
        for (i, version) in self.versions.iter().enumerate() {
            let (Some(first), Some(tail)) = (self.entry(version.first), self.entry(version.tail)) else { continue };
            let Some(row) = place_of(&self.region.visible, first.group, first.at) else { continue };
            let end = version.end.and_then(|end| self.entry(end)).map(|entry| entry.at);
            let stored = RowRef { source: VISIBLE, row: row as usize };
            if sources.end_of(row) == end && sources.payload_order()?.compare(stored, tail.payload()).is_eq() {
                kept.push((i, row));
            }
        }
        for (_, row) in &kept {
            if let Some(kept) = self.kept_visible.get_mut(*row as usize) {
                *kept = true;
            }
        }
        let mut kept = kept.into_iter().map(|(i, _)| i).peekable();
        let mut at = 0..;
        self.versions.retain(|_| at.next() != kept.peek().copied() || kept.next().is_none());
        Ok(())
    }

    /// The difference to what is stored: of the target, and of the side rows.
    pub(super) fn finish(mut self, spec: &CdcSpec, sources: &Sources<'_>) -> Result<(RowChanges, RowChanges), CdcError> {
        self.keep_equal_rows()?;
        let gone = |rows: &[u32], kept: &[bool]| -> Vec<u32> {
            rows.iter().copied().filter(|&row| kept.get(row as usize) != Some(&true)).collect()
        };
        let visible: Vec<u32> = self.region.visible.iter().map(|place| place.row).collect();
        let visible_gone = gone(&visible, &self.kept_visible);
        let hidden_gone = gone(&self.region.hidden, &self.kept_hidden);
        let target = RowChanges {
            deletes: ids(&sources.prior.visible.ids, &visible_gone),
            inserts: self.target_rows(spec)?,
        };
        let side =
            RowChanges { deletes: ids(&sources.prior.hidden.ids, &hidden_gone), inserts: self.side_rows(spec)? };
        Ok((target, side))
    }

    fn target_rows(&self, spec: &CdcSpec) -> Result<RecordBatch, CdcError> {
        let sequence = |i: Option<usize>| i.and_then(|i| self.entry(i)).map(Entry::sequence);
        let mut columns = Vec::with_capacity(spec.target.fields().len());
        for column in &self.sources.columns {
            let shown = self.versions.iter().map(|v| self.entry(v.tail).map(Entry::payload));
            columns.push(column.gather(shown)?);
        }
        columns.push(self.sources.sequences.gather(self.versions.iter().map(|v| sequence(Some(v.first))))?);
        columns.push(self.sources.sequences.gather(self.versions.iter().map(|v| sequence(v.end)))?);
        Ok(RecordBatch::try_new(Arc::clone(&spec.target), columns)?)
    }

    fn side_rows(&self, spec: &CdcSpec) -> Result<RecordBatch, CdcError> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(spec.side.fields().len());
        for (i, column) in self.sources.columns.iter().enumerate() {
            let is_key = spec.keys.contains(&i);
            let value = |&(event, kind): &(usize, SideKind)| -> Option<RowRef> {
                let entry = self.entry(event)?;
                (is_key || kind == SideKind::Interior).then(|| entry.payload())
            };
            columns.push(column.gather(self.side.iter().map(value))?);
        }
        let sequence = self.side.iter().map(|&(event, _)| self.entry(event).map(Entry::sequence));
        columns.push(self.sources.sequences.gather(sequence)?);
        debug_assert_eq!(spec.side.field(columns.len()).name(), names::SIDE_KIND, "the kind is the last column");
        columns.push(Arc::new(Int8Array::from_iter_values(self.side.iter().map(|(_, kind)| kind.code()))));
        Ok(RecordBatch::try_new(Arc::clone(&spec.side), columns)?)
    }
}

/// The row of a key at an ordinal, among places in order.
fn place_of(places: &[Place], group: u32, at: Ordinal) -> Option<u32> {
    let found = places.binary_search_by_key(&(group, at), |place| (place.group, place.at)).ok()?;
    places.get(found).map(|place| place.row)
}
