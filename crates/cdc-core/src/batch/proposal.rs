//! What do the upserts of a batch want to write, before any of it is held to the rules of the target?
//!
//! Checks of data quality judge events here: a row that they take out is not in the set of events, whatever is wrong with
//! its key or its sequence.

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;

use super::{ChangeInput, authored::authored, kept_rows, validate::Ops, validate::check_lengths};
use crate::{
    CdcError, CdcSpec,
    columnar::leaves::{Leaves, quoted},
};

/// The rows of a batch as its upserts would write them.
#[derive(Debug, Clone)]
pub struct Proposal {
    rows: RecordBatch,
    upserts: BooleanBuffer,
    leaves: Leaves,
    /// Per leaf, the rows that set it; `None` when every upsert sets the whole row.
    set: Option<Vec<BooleanBuffer>>,
}

impl Proposal {
    /// Reads a batch. Keys and sequences may be NULL here.
    ///
    /// # Errors
    /// [`CdcError::SchemaMismatch`] for columns that are missing, of another type or of another length;
    /// [`CdcError::ColumnsToUpdateInvalid`]; [`CdcError::EventOfOtherShape`].
    pub fn of(spec: &CdcSpec, input: &ChangeInput<'_>) -> Result<Self, CdcError> {
        check_lengths(spec, input)?;
        let upserts = Ops::new(spec, input)?.upserts;
        let none_keyed = BooleanBuffer::new_unset(input.source.num_rows());
        let rows = kept_rows(spec, input.source, &none_keyed)?;
        let set = authored(spec, input, &rows, &upserts)?;
        Ok(Self { rows, upserts, leaves: spec.leaves(), set })
    }

    /// The kept columns, one row a row of the source, in canonical form. What rows of other events hold means nothing.
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// Which rows are upserts.
    pub fn upserts(&self) -> BooleanArray {
        BooleanArray::new(self.upserts.clone(), None)
    }

    /// Which rows set a column, or a field of a struct, given by its path: `["address", "city"]`. `None` when every upsert
    /// does, as it does set the key.
    pub fn sets(&self, path: &[String]) -> Option<BooleanArray> {
        let set = self.set.as_ref()?;
        // What lies within a list or a map is set with it.
        let mut within: Vec<String> = path.iter().map(|name| quoted(name)).collect();
        while !within.is_empty() {
            let leaves = self.leaves.named_alone(&within.join("."));
            if !leaves.is_empty() {
                let all = BooleanBuffer::new_set(self.rows.num_rows());
                let bits =
                    leaves.into_iter().filter_map(|leaf| set.get(leaf)).fold(all, |all, leaf| &all & leaf);
                return Some(BooleanArray::new(bits, None));
            }
            within.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Array, ArrayRef, Int64Array, StringArray, StructArray};
    use arrow_schema::{DataType, Field};

    use super::*;
    use crate::{CdcOptions, ColumnSelection};

    fn source() -> (RecordBatch, ArrayRef) {
        let city = Arc::new(Field::new("city", DataType::Utf8, true));
        let zip = Arc::new(Field::new("zip.code", DataType::Int64, true));
        let address = StructArray::from(vec![
            (city, Arc::new(StringArray::from(vec![Some("Oslo"), None, Some("Rome")])) as ArrayRef),
            (zip, Arc::new(Int64Array::from(vec![None, Some(2), Some(3)])) as ArrayRef),
        ]);
        let columns: [(&str, ArrayRef); 3] = [
            ("k", Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]))),
            ("n", Arc::new(Int64Array::from(vec![Some(1), None, None]))),
            ("address", Arc::new(address)),
        ];
        let sequence: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        (RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap(), sequence)
    }

    fn proposal(partial: Option<ColumnSelection>) -> Proposal {
        let (source, sequence) = source();
        let deletes = BooleanArray::from(vec![Some(false), None, Some(true)]);
        let options =
            CdcOptions { keys: vec!["k".to_owned()], ignore_null_updates: partial, ..CdcOptions::default() };
        let spec = CdcSpec::new(&options, &source.schema(), sequence.data_type()).unwrap();
        Proposal::of(&spec, &ChangeInput { deletes: Some(&deletes), ..ChangeInput::new(&source, &sequence) })
            .unwrap()
    }

    fn path(parts: &[&str]) -> Vec<String> {
        parts.iter().map(|&part| part.to_owned()).collect()
    }

    #[test]
    fn a11_null_keys_and_sequences_are_no_obstacle_and_deletes_are_exempt() {
        let proposal = proposal(None);
        assert_eq!(proposal.upserts(), BooleanArray::from(vec![true, true, false]));
        assert_eq!(proposal.rows().num_rows(), 3);
        assert_eq!(proposal.sets(&path(&["n"])), None);
    }

    #[test]
    fn a11_what_a_row_leaves_unset_is_known_leaf_by_leaf() {
        let proposal = proposal(Some(ColumnSelection::All));
        let sets =
            |parts: &[&str]| proposal.sets(&path(parts)).map(|set| set.iter().flatten().collect::<Vec<_>>());
        assert_eq!(sets(&["n"]), Some(vec![true, false, false]));
        assert_eq!(sets(&["address", "city"]), Some(vec![true, false, true]));
        assert_eq!(sets(&["address", "zip.code"]), Some(vec![false, true, true]));
        assert_eq!(sets(&["address"]), Some(vec![false, false, true]), "a whole is set where all of it is");
        assert_eq!(sets(&["k"]), None, "every upsert sets its key");
    }
}
