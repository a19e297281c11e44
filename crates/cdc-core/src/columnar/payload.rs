//! When is one payload larger than another, and when does it repeat it?
//!
//! The payload order of R-TIE: kept non-key columns in the order of their names, compared by value, NULL lowest, floats
//! by total order, nested values field by field and element by element.

use std::{cmp::Ordering, collections::BTreeMap};

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_ord::{
    cmp::not_distinct,
    ord::{DynComparator, make_comparator},
};
use arrow_schema::{ArrowError, DataType, SortOptions};

/// A row of one of several sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowRef {
    pub(crate) source: usize,
    pub(crate) row: usize,
}

/// Compares payloads across sources.
pub(crate) struct PayloadOrder {
    /// A comparator per column, in comparison order, for each pair of sources.
    comparators: BTreeMap<(usize, usize), Vec<DynComparator>>,
}

impl PayloadOrder {
    /// `sources`: per source, the columns to compare, in comparison order.
    ///
    /// # Errors
    /// An Arrow error for a type that has no order.
    pub(crate) fn new(sources: &[Vec<ArrayRef>]) -> Result<Self, ArrowError> {
        let mut comparators = BTreeMap::new();
        for (a, left) in sources.iter().enumerate() {
            for (b, right) in sources.iter().enumerate() {
                comparators.insert((a, b), comparators_of(left, right)?);
            }
        }
        Ok(Self { comparators })
    }

    pub(crate) fn compare(&self, a: RowRef, b: RowRef) -> Ordering {
        let columns = self.comparators.get(&(a.source, b.source)).into_iter().flatten();
        columns.map(|compare| compare(a.row, b.row)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }
}

fn comparators_of(left: &[ArrayRef], right: &[ArrayRef]) -> Result<Vec<DynComparator>, ArrowError> {
    let nulls_lowest = SortOptions { descending: false, nulls_first: true };
    left.iter().zip(right).map(|(l, r)| make_comparator(l.as_ref(), r.as_ref(), nulls_lowest)).collect()
}

/// For each row but the first: does it equal the row before it in every column? NULL equals NULL.
pub(crate) fn repeats(columns: &[ArrayRef], rows: usize) -> Result<BooleanBuffer, ArrowError> {
    let pairs = rows.saturating_sub(1);
    let mut all = BooleanBuffer::new_set(pairs);
    if pairs == 0 {
        return Ok(all);
    }
    for column in columns {
        let (before, after) = (column.slice(0, pairs), column.slice(1, pairs));
        all = &all & equal(&before, &after)?.values();
    }
    Ok(all)
}

/// Row by row equality of two arrays, NULL equal to NULL.
fn equal(a: &ArrayRef, b: &ArrayRef) -> Result<BooleanArray, ArrowError> {
    if a.data_type().is_nested() || matches!(a.data_type(), DataType::Null) {
        let compare = make_comparator(a.as_ref(), b.as_ref(), SortOptions::default())?;
        return Ok((0..a.len()).map(|i| Some(compare(i, i).is_eq())).collect());
    }
    not_distinct(a, b)
}
