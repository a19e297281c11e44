//! What does a source give for a batch?

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};

/// Change rows as a source has them, with the values of the flow's expressions beside them. All of one length.
#[derive(Debug, Clone, Copy)]
pub struct ChangeInput<'a> {
    /// The source's columns. What the flow does not keep is ignored.
    pub source: &'a RecordBatch,
    /// `SEQUENCE BY`.
    pub sequence: &'a ArrayRef,
    /// `SYSTEM SEQUENCE BY`, for a bitemporal target.
    pub system_sequence: Option<&'a ArrayRef>,
    /// `APPLY AS DELETE WHEN`: NULL and FALSE mean upsert.
    pub deletes: Option<&'a BooleanArray>,
    /// `APPLY AS TRUNCATE WHEN`, for an SCD1 target. Keys of such rows are ignored and may be NULL.
    pub truncates: Option<&'a BooleanArray>,
    /// `APPLY AS RETRACT WHEN`, for a bitemporal target.
    pub retracts: Option<&'a BooleanArray>,
    /// Which rows set a column, by the column's name, or a leaf of a struct, by its path (`column.field`); what is not
    /// named is set by every row. Needs a flow with partial updates, at least [`crate::CdcOptions::authored_masks`].
    pub authored: &'a [(String, BooleanArray)],
    /// Where an upsert ends by itself: a delete at this sequence comes with it, which must be above the upsert's own. For
    /// rows of a legacy history that ended without a successor. NULL for no end.
    pub valid_to: Option<&'a ArrayRef>,
    /// When the batch is applied, in milliseconds since 1970: the age of tombstones that expire counts from here. Fixed
    /// by the caller, so that a batch applied again is the same batch.
    pub applied_at: Option<i64>,
    /// For [`crate::SystemTime::Monotonic`]: the greatest system sequence that the target had seen when the batch was
    /// planned, as an array of length 1. Events that claim to be older count as learned then. Fixed by the caller, so
    /// that a batch applied again is the same batch.
    pub system_floor: Option<&'a ArrayRef>,
}

impl<'a> ChangeInput<'a> {
    /// Upserts only.
    pub fn new(source: &'a RecordBatch, sequence: &'a ArrayRef) -> Self {
        Self {
            source,
            sequence,
            system_sequence: None,
            deletes: None,
            truncates: None,
            retracts: None,
            authored: &[],
            valid_to: None,
            applied_at: None,
            system_floor: None,
        }
    }
}
