//! Which ranges of a column may hold one of many keys.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::{KeyCodec, KeyRows};
use crate::contract::Result;

/// The values of one key column of a lookup, sorted.
#[derive(Debug)]
pub(crate) struct ColumnKeys {
    data_type: DataType,
    /// `None` when statistics of such a column can't be relied on.
    sorted: Option<Sorted>,
    has_null: bool,
}

#[derive(Debug)]
struct Sorted {
    codec: KeyCodec,
    keys: KeyRows,
    values: ArrayRef,
}

impl ColumnKeys {
    /// The values of this column.
    pub(crate) fn new(column: &ArrayRef) -> Result<Self> {
        let data_type = column.data_type().clone();
        let sorted = if is_prunable(&data_type) {
            let codec = KeyCodec::new(std::slice::from_ref(&data_type))?;
            let order = codec.encode(std::slice::from_ref(column))?.sorted();
            let values = take(column.as_ref(), &UInt32Array::from(order), None)?;
            let keys = codec.encode(std::slice::from_ref(&values))?;
            Some(Sorted { codec, keys, values })
        } else {
            None
        };
        Ok(Self { data_type, sorted, has_null: column.null_count() > 0 })
    }

    /// For each range, whether one of the values may lie in it. What is not known (a NULL bound) may.
    pub(crate) fn within(&self, min: &ArrayRef, max: &ArrayRef, nulls: &[Option<u64>]) -> Result<Vec<bool>> {
        let Some(Sorted { codec, keys, .. }) = &self.sorted else { return Ok(vec![true; min.len()]) };
        if min.data_type() != &self.data_type || max.data_type() != &self.data_type {
            return Ok(vec![true; min.len()]);
        }
        let low = codec.encode(std::slice::from_ref(min))?;
        let high = codec.encode(std::slice::from_ref(max))?;
        Ok((0..min.len())
            .map(|i| {
                if min.is_null(i) || max.is_null(i) {
                    return true;
                }
                let may_be_null = nulls.get(i).copied().flatten() != Some(0);
                if self.has_null && may_be_null {
                    return true;
                }
                let first = keys.first_not(0, |k| keys.compare(k, &low, i).is_lt());
                first < keys.len() && keys.compare(first, &high, i).is_le()
            })
            .collect())
    }

    /// The values from `min` to `max`, both arrays of one; all where those are not known. `None` where no filter can tell
    /// which of the values a file holds: its values are of another type, or NULL is wanted.
    pub(crate) fn between(&self, min: &ArrayRef, max: &ArrayRef) -> Result<Option<ArrayRef>> {
        let Some(Sorted { keys, values, .. }) = self.sorted.as_ref().filter(|_| !self.has_null) else {
            return Ok(None);
        };
        if min.data_type() != &self.data_type {
            return Ok(None);
        }
        let Some(range) = KeyRange::new(Some(min), Some(max))? else {
            return Ok(Some(Arc::clone(values)));
        };
        let first = keys.first_not(0, |k| keys.compare(k, &range.low, 0).is_lt());
        let end = keys.first_not(first, |k| keys.compare(k, &range.high, 0).is_le());
        Ok(Some(values.slice(first, end - first)))
    }
}

/// True when minimum and maximum of such a column bound every value of it: not for floats (NaN is in neither), and not
/// for nested columns (they have none).
pub(crate) fn is_prunable(data_type: &DataType) -> bool {
    !data_type.is_nested() && !data_type.is_floating() && !matches!(data_type, DataType::Null)
}

/// Smallest and greatest value of the leading key column of a file.
#[derive(Debug)]
pub(crate) struct KeyRange {
    codec: KeyCodec,
    low: KeyRows,
    high: KeyRows,
}

impl KeyRange {
    /// A range from two arrays of one value each; `None` when the range is not known.
    pub(crate) fn new(low: Option<&ArrayRef>, high: Option<&ArrayRef>) -> Result<Option<Self>> {
        let (Some(low), Some(high)) = (low, high) else { return Ok(None) };
        if low.data_type() != high.data_type() || low.is_null(0) || high.is_null(0) {
            return Ok(None);
        }
        let codec = KeyCodec::new(&[low.data_type().clone()])?;
        let (low, high) =
            (codec.encode(std::slice::from_ref(low))?, codec.encode(std::slice::from_ref(high))?);
        Ok(Some(Self { codec, low, high }))
    }

    /// The rows of a sorted column that lie in the range: from the first of the pair up to, not including, the second.
    pub(crate) fn rows(&self, column: &ArrayRef) -> Result<(usize, usize)> {
        let keys = self.codec.encode(std::slice::from_ref(column))?;
        let first = keys.first_not(0, |k| keys.compare(k, &self.low, 0).is_lt());
        let end = keys.first_not(first, |k| keys.compare(k, &self.high, 0).is_le());
        Ok((first, end))
    }
}
