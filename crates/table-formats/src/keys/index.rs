//! A hash index of the keys of a lookup.

use std::hash::BuildHasher;

use arrow_array::{Array, ArrayRef, RecordBatch};
use hashbrown::{DefaultHashBuilder, HashTable};

use super::{ColumnKeys, KeyCodec, KeyRows, order::is_null};
use crate::contract::Result;

/// The keys of a lookup, to be matched with the keys of many rows.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    codec: KeyCodec,
    keys: KeyRows,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    columns: Vec<ColumnKeys>,
}

/// Which rows matched which keys.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// Rows, ascending.
    pub(crate) rows: Vec<u32>,
    /// For each, the key that it matched.
    pub(crate) keys: Vec<u32>,
}

impl KeyIndex {
    /// Indexes distinct keys.
    pub(crate) fn new(keys: &RecordBatch) -> Result<Self> {
        let types: Vec<_> = keys.schema().fields().iter().map(|f| f.data_type().clone()).collect();
        let codec = KeyCodec::new(&types)?;
        let columns = keys.columns().iter().map(ColumnKeys::new).collect::<Result<_>>()?;
        let keys = codec.encode(keys.columns())?;
        let hasher = DefaultHashBuilder::default();
        let mut table = HashTable::with_capacity(keys.len());
        for i in 0..keys.len() {
            let slot = u32::try_from(i).map_err(|_| too_many())?;
            table.insert_unique(hash(&hasher, &keys, i), slot, |j| hash(&hasher, &keys, *j as usize));
        }
        Ok(Self { codec, keys, table, hasher, columns })
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The keys, by column: for pruning.
    pub(crate) fn columns(&self) -> &[ColumnKeys] {
        &self.columns
    }

    /// Rows whose key is one of ours.
    pub(crate) fn matches(&self, columns: &[ArrayRef]) -> Result<Matches> {
        let rows = self.codec.encode(columns)?;
        let mut found = Matches::default();
        for i in 0..rows.len() {
            let equal = |j: &u32| rows.compare(i, &self.keys, *j as usize).is_eq();
            if let Some(key) = self.table.find(hash(&self.hasher, &rows, i), equal) {
                found.rows.push(u32::try_from(i).map_err(|_| too_many())?);
                found.keys.push(*key);
            }
        }
        Ok(found)
    }
}

fn hash(hasher: &DefaultHashBuilder, rows: &KeyRows, i: usize) -> u64 {
    match rows {
        KeyRows::Int(values, nulls) => {
            if is_null(nulls.as_ref(), i) {
                return 0;
            }
            // Fibonacci hashing with the high half folded in: hashbrown takes its tag from the top bits.
            let mixed = values[i].cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ (mixed >> 32)
        }
        KeyRows::Str(values) if values.is_null(i) => 0,
        KeyRows::Str(values) => hasher.hash_one(values.value(i)),
        KeyRows::Rows(rows) => hasher.hash_one(rows.row(i).data()),
    }
}

fn too_many() -> crate::Error {
    crate::Error::new(crate::ErrorKind::Invalid, "too many rows in one batch of keys")
}
