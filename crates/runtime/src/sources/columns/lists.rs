//! Columns of lists and of maps.
//!
//! A part of a list that does not fit is NULL in it, and the list is kept whole beside the columns: its parts have no names by
//! which they could be kept one by one.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, ListArray, MapArray, StructArray};
use arrow_schema::{FieldRef, Fields};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

use super::{Json, Look, Misfit, Rest, builder::Builder, nullable};
use crate::error::{Error, ErrorKind, Result};

/// Where each list ends, and which are NULL.
#[derive(Debug)]
struct Ends {
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl Ends {
    fn new() -> Self {
        Self { lengths: Vec::new(), valid: Vec::new() }
    }

    fn end(&mut self, items: usize, valid: bool) {
        self.lengths.push(items);
        self.valid.push(valid);
    }

    fn finish(&mut self) -> Result<(OffsetBuffer<i32>, Option<NullBuffer>)> {
        let Self { lengths, valid } = std::mem::replace(self, Self::new());
        let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
        let mut offsets = vec![0];
        let mut end = 0_usize;
        for length in lengths {
            end = end.saturating_add(length);
            offsets.push(i32::try_from(end).map_err(|_| {
                Error::new(ErrorKind::Data, "the lists of a batch have too many items").with("items", end)
            })?);
        }
        Ok((OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls))
    }
}

#[derive(Debug)]
pub(super) struct ListColumn {
    item: Builder,
    field: FieldRef,
    ends: Ends,
}

impl ListColumn {
    pub(super) fn new(item: &FieldRef) -> Result<Self> {
        Ok(Self { item: Builder::new(item)?, field: nullable(item), ends: Ends::new() })
    }

    /// Appends a list; the first part of it that does not fit comes back.
    pub(super) fn append(&mut self, items: &[Json<'_>], look: &Look) -> Option<Misfit> {
        let mut rest = Rest::default();
        for item in items {
            self.item.append("[]", item, look, &mut rest);
        }
        self.ends.end(items.len(), true);
        rest.misfits.into_iter().next()
    }

    pub(super) fn append_null(&mut self) {
        self.ends.end(0, false);
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let (offsets, nulls) = self.ends.finish()?;
        Ok(Arc::new(ListArray::try_new(Arc::clone(&self.field), offsets, self.item.finish()?, nulls)?))
    }
}

#[derive(Debug)]
pub(super) struct MapColumn {
    key: Builder,
    value: Builder,
    field: FieldRef,
    parts: Fields,
    ends: Ends,
}

impl MapColumn {
    pub(super) fn new(field: &FieldRef, parts: &Fields) -> Result<Self> {
        let [key, value] = parts.as_ref() else {
            return Err(Error::new(ErrorKind::Internal, "a map has other parts than keys and values"));
        };
        Ok(Self {
            key: Builder::new(key)?,
            value: Builder::new(value)?,
            field: Arc::clone(field),
            parts: parts.clone(),
            ends: Ends::new(),
        })
    }

    /// Appends a map; the first part of it that does not fit comes back.
    pub(super) fn append<'a>(&mut self, entries: &[(Cow<'a, str>, Json<'a>)], look: &Look) -> Option<Misfit> {
        let mut rest = Rest::default();
        // Of a key that comes twice the last counts.
        let last: BTreeMap<&str, usize> =
            entries.iter().enumerate().map(|(at, (key, _))| (key.as_ref(), at)).collect();
        let mut count = 0;
        for (at, (key, value)) in entries.iter().enumerate() {
            if last.get(key.as_ref()) != Some(&at) {
                continue;
            }
            match self.key.append_text(key, look) {
                Ok(()) => {
                    self.value.append("{}", value, look, &mut rest);
                    count += 1;
                }
                Err(why) => rest.mismatch("{}", key, why),
            }
        }
        self.ends.end(count, true);
        rest.misfits.into_iter().next()
    }

    pub(super) fn append_null(&mut self) {
        self.ends.end(0, false);
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let (offsets, nulls) = self.ends.finish()?;
        let columns = vec![self.key.finish()?, self.value.finish()?];
        let entries = StructArray::try_new(self.parts.clone(), columns, None)?;
        Ok(Arc::new(MapArray::try_new(Arc::clone(&self.field), offsets, entries, nulls, false)?))
    }
}
