//! The keys of a lookup, to be matched with the keys of many rows. Which keys are equal is the core's rule.

use arrow_array::{ArrayRef, RecordBatch};
use strandline_cdc_core::keys::{self, UNKNOWN};

use super::ColumnKeys;
use crate::contract::Result;

/// The keys of a lookup.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    keys: keys::KeyIndex,
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

impl Matches {
    /// Every row of a batch, as if they were all of key 0.
    pub(crate) fn all(rows: usize) -> Self {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        Self { rows: (0..rows).collect(), keys: vec![0; rows as usize] }
    }
}

impl KeyIndex {
    /// Indexes distinct keys.
    pub(crate) fn new(keys: &RecordBatch) -> Result<Self> {
        let columns = keys.columns().iter().map(ColumnKeys::new).collect::<Result<_>>()?;
        Ok(Self { keys: keys::KeyIndex::new(keys.columns())?, columns })
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
        let mut found = Matches::default();
        for (row, key) in (0..).zip(self.keys.probe(columns)?) {
            if key != UNKNOWN {
                found.rows.push(row);
                found.keys.push(key);
            }
        }
        Ok(found)
    }
}
