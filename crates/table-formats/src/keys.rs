//! Keys: their order, their equality, and which ranges may hold them.
//!
//! Keys are compared as they are written: canonical values, NULL equal to NULL and before everything else. A single
//! integer-like or string key is compared natively; every other key through `arrow-row`.

mod index;
mod order;
mod range;

pub(crate) use index::{KeyIndex, Matches};
pub(crate) use order::{KeyCodec, KeyRows};
pub(crate) use range::{ColumnKeys, KeyRange};

use arrow_array::{ArrayRef, RecordBatch};

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// The columns of these names, in this order.
pub(crate) fn columns(batch: &RecordBatch, names: &[String]) -> Result<Vec<ArrayRef>> {
    names
        .iter()
        .map(|name| {
            batch
                .column_by_name(name)
                .cloned()
                .ok_or_else(|| Error::new(ErrorKind::Invalid, format!("there is no column `{name}`")))
        })
        .collect()
}
