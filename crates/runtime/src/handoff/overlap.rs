//! Which keys have live changes that are not after their last seeded one?
//!
//! Keys and sequences are held as bytes that compare as their values do: field by field, NULL fields lowest, floats in
//! their total order with one zero. Seeds come first, then live changes.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, RecordBatch,
    cast::AsArray,
    types::{Float32Type, Float64Type},
};
use arrow_schema::{ArrowError, DataType, FieldRef};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use serde_json::{Map, Value};

use super::HandoffSample;
use crate::error::{Error, ErrorKind, Result};

/// What is known of a key.
#[derive(Debug, Default)]
struct Standing {
    last_seeded: Option<Box<[u8]>>,
    /// Where the last of its seeded rows ends.
    last_end: Option<Box<[u8]>>,
    first_live: Option<Box<[u8]>>,
    /// Live changes that are not after the last seeded one.
    overlapping: u64,
}

/// Numbers of a comparison.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) seeded_keys: u64,
    pub(super) live_keys: u64,
    pub(super) keys_of_both: u64,
    pub(super) offending_keys: u64,
    pub(super) offending_changes: u64,
    pub(super) unusable_rows: u64,
}

/// Every key of both sides.
pub(super) struct Overlap {
    keys: RowConverter,
    sequences: RowConverter,
    standings: BTreeMap<Box<[u8]>, Standing>,
    unusable_rows: u64,
}

impl Overlap {
    /// No key yet.
    pub(super) fn new(keys: &[DataType], sequence: &DataType) -> Result<Self> {
        let keys = keys.iter().map(|key| SortField::new(key.clone())).collect();
        Ok(Self {
            keys: RowConverter::new(keys)?,
            sequences: RowConverter::new(vec![SortField::new(sequence.clone())])?,
            standings: BTreeMap::new(),
            unusable_rows: 0,
        })
    }

    /// Seeded changes.
    pub(super) fn seed(&mut self, keys: &[ArrayRef], sequence: &ArrayRef) -> Result<()> {
        let unusable = self.each(keys, sequence, |standing, sequence| {
            raise(&mut standing.last_seeded, sequence);
        })?;
        self.unusable_rows += unusable;
        Ok(())
    }

    /// Where seeded rows end, NULL for those that go on.
    pub(super) fn seed_end(&mut self, keys: &[ArrayRef], end: &ArrayRef) -> Result<()> {
        self.each(keys, end, |standing, end| raise(&mut standing.last_end, end)).map(drop)
    }

    /// Live changes.
    pub(super) fn live(&mut self, keys: &[ArrayRef], sequence: &ArrayRef) -> Result<()> {
        let unusable = self.each(keys, sequence, |standing, sequence| {
            if standing.first_live.as_deref().is_none_or(|first| sequence < first) {
                standing.first_live = Some(sequence.into());
            }
            // A row that ends at 20 holds before 20: a live change at 20 comes after it.
            let overlaps = standing.last_seeded.as_deref().is_some_and(|last| sequence <= last)
                || standing.last_end.as_deref().is_some_and(|end| sequence < end);
            standing.overlapping += u64::from(overlaps);
        })?;
        self.unusable_rows += unusable;
        Ok(())
    }

    /// Calls `change` for every row with key and sequence; the number of the others.
    fn each(
        &mut self,
        keys: &[ArrayRef],
        sequence: &ArrayRef,
        mut change: impl FnMut(&mut Standing, &[u8]),
    ) -> Result<u64> {
        let canonical: Vec<ArrayRef> = keys.iter().map(one_zero).collect();
        let key_rows = self.keys.convert_columns(&canonical)?;
        let sequence_rows: Rows = self.sequences.convert_columns(&[Arc::clone(sequence)])?;
        let mut unusable = 0;
        for (row, (key, position)) in key_rows.iter().zip(sequence_rows.iter()).enumerate() {
            if sequence.is_null(row) || keys.iter().any(|key| key.is_null(row)) {
                unusable += 1;
                continue;
            }
            let key: &[u8] = key.as_ref();
            match self.standings.get_mut(key) {
                Some(standing) => change(standing, position.as_ref()),
                None => change(self.standings.entry(key.into()).or_default(), position.as_ref()),
            }
        }
        Ok(unusable)
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts { unusable_rows: self.unusable_rows, ..Counts::default() };
        for standing in self.standings.values() {
            let (seeded, live) = (standing.last_seeded.is_some(), standing.first_live.is_some());
            counts.seeded_keys += u64::from(seeded);
            counts.live_keys += u64::from(live);
            counts.keys_of_both += u64::from(seeded && live);
            counts.offending_keys += u64::from(standing.overlapping > 0);
            counts.offending_changes += standing.overlapping;
        }
        counts
    }

    /// The lowest keys that offend.
    pub(super) fn samples(&self, names: &[FieldRef], most: usize) -> Result<Vec<HandoffSample>> {
        let offending: Vec<Offender<'_>> = self
            .standings
            .iter()
            .filter(|(_, standing)| standing.overlapping > 0)
            .filter_map(|(key, standing)| {
                let last = standing.last_seeded.as_deref().max(standing.last_end.as_deref());
                let (last, first) = (last?, standing.first_live.as_deref()?);
                Some(Offender { key, last, first, changes: standing.overlapping })
            })
            .take(most)
            .collect();
        let keys = decoded(&self.keys, offending.iter().map(|row| row.key))?;
        let last = decoded(&self.sequences, offending.iter().map(|row| row.last))?;
        let first = decoded(&self.sequences, offending.iter().map(|row| row.first))?;
        let keys = keys.iter().map(json_values).collect::<Result<Vec<_>>>()?;
        let moments = |columns: &[ArrayRef]| columns.first().map(json_values).transpose();
        let (last, first) = (moments(&last)?.unwrap_or_default(), moments(&first)?.unwrap_or_default());
        let samples = offending.iter().enumerate().map(|(n, row)| {
            let value = |values: &[Value]| values.get(n).cloned().unwrap_or_default();
            let key: Map<String, Value> =
                names.iter().zip(&keys).map(|(name, values)| (name.name().clone(), value(values))).collect();
            HandoffSample { key, last_seeded: value(&last), first_live: value(&first), changes: row.changes }
        });
        Ok(samples.collect())
    }
}

/// A key to be shown, in bytes.
struct Offender<'a> {
    key: &'a [u8],
    last: &'a [u8],
    first: &'a [u8],
    changes: u64,
}

fn raise(last: &mut Option<Box<[u8]>>, sequence: &[u8]) {
    if last.as_deref().is_none_or(|last| sequence > last) {
        *last = Some(sequence.into());
    }
}

/// -0.0 is the key 0.0, and there is one NaN.
fn one_zero(key: &ArrayRef) -> ArrayRef {
    match key.data_type() {
        DataType::Float32 => {
            let one = |x: f32| if x.is_nan() { f32::NAN } else { x + 0.0 };
            Arc::new(key.as_primitive::<Float32Type>().unary::<_, Float32Type>(one))
        }
        DataType::Float64 => {
            let one = |x: f64| if x.is_nan() { f64::NAN } else { x + 0.0 };
            Arc::new(key.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
        }
        _ => Arc::clone(key),
    }
}

/// The columns that rows of bytes stand for.
fn decoded<'a>(
    converter: &RowConverter,
    rows: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let parser = converter.parser();
    converter.convert_rows(rows.map(|bytes| parser.parse(bytes)))
}

/// The values of a column, as JSON.
fn json_values(column: &ArrayRef) -> Result<Vec<Value>> {
    let batch = RecordBatch::try_from_iter_with_nullable([("value", Arc::clone(column), true)])?;
    let mut writer = arrow_json::WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, arrow_json::writer::JsonArray>(Vec::new());
    if batch.num_rows() > 0 {
        writer.write(&batch)?;
    }
    writer.finish()?;
    let bytes = writer.into_inner();
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<Map<String, Value>> = serde_json::from_slice(&bytes)
        .map_err(|e| Error::new(ErrorKind::Internal, "a sample can't be shown").because(e))?;
    Ok(rows.into_iter().map(|mut row| row.remove("value").unwrap_or_default()).collect())
}
