//! What must change for the stored rows to show what the fold found?
//!
//! Every stored row of the region is either kept as it is or goes; what the fold found and no kept row shows comes.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch, new_null_array};

use super::{
    super::{ids, payload::RowRef},
    events::{Entry, Place, Region, Source},
    sources::{Sources, VISIBLE, at},
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
    tails: Cursor<'a>,
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
            tails: Cursor(&region.tails),
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
            && at(&self.sources.start_at, tail.row) == first.at
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
        let stored_tail = tail.tail().or_else(|| self.tails.find(tail.group, tail.at));
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
        let (sources, settled) = (self.sources, self.settled);
        let mut places = Cursor(&self.region.visible);
        let mut changed = Vec::with_capacity(self.versions.len());
        for version in self.versions.drain(..) {
            let (Some(first), Some(tail)) = (settled.get(version.first), settled.get(version.tail)) else {
                continue;
            };
            let end = version.end.and_then(|end| settled.get(end)).map(|entry| entry.at);
            let mut stored = places.find(first.group, first.at).filter(|&row| sources.end_of(row) == end);
            if let Some(row) = stored {
                let shown = RowRef { source: VISIBLE, row: row as usize };
                if sources.payload_order()?.compare(shown, tail.payload()).is_ne() {
                    stored = None;
                }
            }
            match stored.and_then(|row| self.kept_visible.get_mut(row as usize)) {
                Some(kept) => *kept = true,
                None => changed.push(version),
            }
        }
        self.versions = changed;
        Ok(())
    }

    /// The difference to what is stored: of the target, and of the side rows.
    pub(super) fn finish(mut self, spec: &CdcSpec) -> Result<(RowChanges, RowChanges), CdcError> {
        self.keep_equal_rows()?;
        let gone = |rows: &mut dyn Iterator<Item = u32>, kept: &[bool]| -> Vec<u32> {
            rows.filter(|&row| kept.get(row as usize) != Some(&true)).collect()
        };
        let visible_gone = gone(&mut self.region.visible.iter().map(|place| place.row), &self.kept_visible);
        let hidden_gone = gone(&mut self.region.hidden.iter().copied(), &self.kept_hidden);
        let prior = self.sources.prior;
        let target =
            RowChanges { deletes: ids(&prior.visible.ids, &visible_gone), inserts: self.target_rows(spec)? };
        let side =
            RowChanges { deletes: ids(&prior.hidden.ids, &hidden_gone), inserts: self.side_rows(spec)? };
        Ok((target, side))
    }

    fn target_rows(&self, spec: &CdcSpec) -> Result<RecordBatch, CdcError> {
        let sources = self.sources;
        let mut columns = Vec::with_capacity(spec.target.fields().len());
        let shown = sources.places(self.versions.iter().map(|v| self.entry(v.tail).map(Entry::payload)));
        for column in &sources.columns {
            columns.push(column.gather(&shown)?);
        }
        let sequence = |i: Option<usize>| i.and_then(|i| self.entry(i)).map(Entry::sequence);
        let starts = sources.sequences.places(self.versions.iter().map(|v| sequence(Some(v.first))));
        columns.push(sources.sequences.gather(&starts)?);
        let ends = sources.sequences.places(self.versions.iter().map(|v| sequence(v.end)));
        columns.push(sources.sequences.gather(&ends)?);
        Ok(RecordBatch::try_new(Arc::clone(&spec.target), columns)?)
    }

    fn side_rows(&self, spec: &CdcSpec) -> Result<RecordBatch, CdcError> {
        let sources = self.sources;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(spec.side.fields().len());
        let events = || self.side.iter().map(|&(event, kind)| (self.entry(event), kind));
        let keys = sources.places(events().map(|(entry, _)| entry.map(Entry::payload)));
        let payload = |(entry, kind): (Option<&Entry>, SideKind)| {
            entry.filter(|_| kind == SideKind::Interior).map(Entry::payload)
        };
        let payloads = sources.places(events().map(payload));
        for (i, column) in sources.columns.iter().enumerate() {
            columns.push(column.gather(if spec.keys.contains(&i) { &keys } else { &payloads })?);
        }
        let sequences = sources.sequences.places(events().map(|(entry, _)| entry.map(Entry::sequence)));
        columns.push(sources.sequences.gather(&sequences)?);
        let schema = super::super::side_schema(spec, sources.prior);
        for field in schema.fields().iter().skip(columns.len()) {
            columns.push(match field.name().as_str() {
                names::SIDE_KIND => {
                    Arc::new(Int8Array::from_iter_values(self.side.iter().map(|(_, kind)| kind.code())))
                }
                names::APPLIED_AT => {
                    let applied = |kind| sources.changes.applied_at.filter(|_| kind == SideKind::Delete);
                    Arc::new(self.side.iter().map(|(_, kind)| applied(*kind)).collect::<Int64Array>())
                }
                _ => new_null_array(field.data_type(), self.side.len()),
            });
        }
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}

/// Finds places in order: each question is about a place at or after the one before.
struct Cursor<'a>(&'a [Place]);

impl Cursor<'_> {
    /// The row of a key at an ordinal.
    fn find(&mut self, group: u32, at: Ordinal) -> Option<u32> {
        while let [place, rest @ ..] = self.0 {
            match (place.group, place.at).cmp(&(group, at)) {
                std::cmp::Ordering::Less => self.0 = rest,
                std::cmp::Ordering::Equal => return Some(place.row),
                std::cmp::Ordering::Greater => return None,
            }
        }
        None
    }
}
