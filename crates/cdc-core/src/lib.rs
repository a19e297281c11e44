//! Change data capture as a pure function: change events in, rows of SCD type 1, SCD type 2 and bitemporal tables out.
//!
//! # The one idea
//!
//! The rows of a target are a function of the *set* of events received. The order of arrival, the cut into batches,
//! duplicates and replays have no effect. Exactly-once delivery, backfills beside live feeds and retries all lean on it.
//!
//! This crate decides *what the rows must become*. It reads no clock, no randomness, no file and no network: who uses it
//! brings the stored rows as Arrow batches and carries out the [`RowChanges`] that come back.
//!
//! # Laws
//!
//! 1. The target after any number of batches is a function of the set of events received. Two options give that up, and say
//!    so: a monotonic system time, and tombstones that expire.
//! 2. The current rows of an SCD2 target (`__END_AT IS NULL`), without their two system columns, are the SCD1 target of
//!    the same events.
//! 3. The rows of a bitemporal target that are believed (`__SYSTEM_END_AT IS NULL`), without the system columns, are the SCD2
//!    target of those events of which, per key and sequence, only the ones that became known last are kept.
//! 4. Versions are half-open intervals `[__START_AT, __END_AT)`. Per key they never overlap and are never empty; nor do
//!    the rectangles of a bitemporal key.
//!
//! [`guide`] shows them at work.
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | key | the columns that identify a row; equal in canonical form: one NaN, -0.0 is 0.0 |
//! | sequence | the value that orders the events of a key; in a bitemporal target, since when a fact is true |
//! | system sequence | when a fact became known |
//! | upsert | an event that writes a row, or some columns of it |
//! | delete | an event that ends a row; its other values are ignored |
//! | truncate | an event that empties an SCD1 target as of its sequence |
//! | retraction | an event that takes back what was said of its sequence; bitemporal only |
//! | snapshot | a complete image of a source at a version: a key that it lacks is deleted there |
//! | barrier | a truncate or a snapshot: an event of every key, keys never seen included, see [`barriers`] |
//! | tie | two different upserts of one key at one sequence: the larger payload wins, whatever came first |
//! | late event | an event older than one of its key that is known already |
//! | version | a row of an SCD2 target |
//! | run | neighbouring upserts that are equal on the tracked columns: they are one version |
//! | belief | the versions of a key as they were known at a system sequence |
//! | tracked column | a column whose change opens a version; others change within it |
//! | author | of a column: an event that gives it a value. What nobody authored is inherited from the row before |
//! | leaf | what is authored: a column, or a field of a column of structs; lists and maps are one leaf |
//! | absent column | a column of the target that the source does not have any more: no event authors it |
//! | tombstone | a side row that keeps a delete which no visible row shows |
//! | horizon | the greatest sequence of a collected tombstone, see [`retention`] |
//! | side row | hidden state that late events need, see [`side`] |
//!
//! # How a batch goes through
//!
//! [`ChangeBatch::new`] checks and normalizes the source's rows; [`CdcSpec::read_plan`] says which stored rows matter;
//! [`CdcSpec::reconcile`] says which rows go and which come. Reading more than the plan asks for changes nothing.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
//! use strandline_cdc_core::{CdcOptions, CdcSpec, ChangeBatch, Prior, Reconciliation, StoredAs};
//!
//! let city: ArrayRef = Arc::new(StringArray::from(vec![Some("Bergen"), Some("Oslo"), None]));
//! let user: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 1]));
//! let source = RecordBatch::try_from_iter([("user", user), ("city", city)])?;
//! let sequence: ArrayRef = Arc::new(Int64Array::from(vec![20, 10, 30])); // arrives out of order
//! let deletes = BooleanArray::from(vec![false, false, true]);
//!
//! let options =
//!     CdcOptions { keys: vec!["user".to_owned()], stored_as: StoredAs::Scd2, ..CdcOptions::default() };
//! let spec = CdcSpec::new(&options, &source.schema(), sequence.data_type())?;
//! let changes = ChangeBatch::new(&spec, &source, &sequence, Some(&deletes))?;
//!
//! // The target is empty so far; otherwise these are the rows that the plan asks for.
//! let plan = spec.read_plan(&changes)?;
//! assert_eq!(plan.keys.map(|keys| keys.num_rows()), Some(1));
//! let Reconciliation::Done(done) = spec.reconcile(&Prior::empty(&spec), &changes)? else {
//!     panic!("everything was read");
//! };
//!
//! // Oslo [10, 20) and Bergen [20, 30); after that the user is gone.
//! assert_eq!(done.target.inserts.num_rows(), 2);
//! assert!(done.target.deletes.is_empty() && done.side.is_empty());
//! let ends = done.target.inserts.column_by_name("__END_AT").unwrap();
//! assert_eq!(ends.as_ref(), &Int64Array::from(vec![20, 30]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]
#![warn(clippy::arithmetic_side_effects)]

pub(crate) mod algebra;
pub mod barriers;
pub mod batch;
mod columnar;
pub mod definition;
pub mod error;
pub mod guide;
pub mod names;
pub mod retention;
pub mod side;
pub mod snapshot;
pub mod spec;
pub mod target;

pub use barriers::{BarrierKind, Barriers};
pub use batch::{
    Bound, ChangeBatch, ChangeInput, Counts, Lookup, Prior, Proposal, ReadPlan, Reconciled, Reconciliation,
    RowChanges, Rows,
};
pub use columnar::keys;
pub use definition::{Definition, Fact};
pub use error::CdcError;
pub use retention::Collected;
pub use snapshot::{OnStale, SnapshotBatch, SnapshotRules};
pub use spec::{
    CdcOptions, CdcSpec, ColumnSelection, NullSequenceFields, OnTie, SequenceColumn, SequenceTypes, StoredAs,
    SystemTime, widened_rows, wider,
};
pub use target::{Disagreement, FlowTerms, Target};
