//! When is one payload larger than another, and when does it repeat it?
//!
//! The payload order of R-TIE: kept non-key columns in the order of their names, compared by value, NULL lowest, floats
//! by total order, nested values field by field and element by element.

use std::{cmp::Ordering, collections::BTreeMap};

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_ord::{
    cmp::not_distinct,
    ord::{DynComparator, make_comparator},
};
use arrow_schema::{ArrowError, DataType, SortOptions};

use super::gather::Column;

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

    /// Compares the values of one column, given by its place in comparison order.
    pub(crate) fn compare_column(&self, column: usize, a: RowRef, b: RowRef) -> Ordering {
        let comparators = self.comparators.get(&(a.source, b.source));
        comparators.and_then(|all| all.get(column)).map_or(Ordering::Equal, |compare| compare(a.row, b.row))
    }
}

fn comparators_of(left: &[ArrayRef], right: &[ArrayRef]) -> Result<Vec<DynComparator>, ArrowError> {
    let nulls_lowest = SortOptions { descending: false, nulls_first: true };
    left.iter().zip(right).map(|(l, r)| make_comparator(l.as_ref(), r.as_ref(), nulls_lowest)).collect()
}

/// Two rows that are to be compared, and the number under which the answer is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) number: usize,
    pub(crate) before: RowRef,
    pub(crate) after: RowRef,
}

/// The pairs whose rows are equal in every column. NULL equals NULL.
///
/// Each column is asked only about the pairs that the columns before it could not tell apart.
pub(crate) fn equal_pairs<'a>(
    columns: impl IntoIterator<Item = &'a Column>,
    mut pairs: Vec<Pair>,
) -> Result<Vec<Pair>, ArrowError> {
    let mut columns: Vec<&Column> = columns.into_iter().collect();
    columns.sort_by_key(|column| !column.is_flat());
    for column in columns {
        if pairs.is_empty() {
            break;
        }
        let side =
            |row: fn(&Pair) -> RowRef| column.gather(&column.places(pairs.iter().map(|p| Some(row(p)))));
        let equal = equal(&side(|pair| pair.before)?, &side(|pair| pair.after)?)?;
        let mut equal = equal.values().iter();
        pairs.retain(|_| equal.next().unwrap_or_default());
    }
    Ok(pairs)
}

/// Row by row equality of two arrays, NULL equal to NULL.
fn equal(a: &ArrayRef, b: &ArrayRef) -> Result<BooleanArray, ArrowError> {
    if a.data_type().is_nested() || matches!(a.data_type(), DataType::Null) {
        let compare = make_comparator(a.as_ref(), b.as_ref(), SortOptions::default())?;
        return Ok((0..a.len()).map(|i| Some(compare(i, i).is_eq())).collect());
    }
    not_distinct(a, b)
}
