//! Change data capture as a pure function.
pub(crate) mod algebra;
pub mod batch;
mod columnar;
pub mod error;
pub mod names;
pub mod side;
pub mod spec;

pub use batch::{Bound, ChangeBatch, Counts, Lookup, Prior, ReadPlan, Reconciled, Reconciliation, RowChanges, Rows};
pub use columnar::keys;
pub use error::CdcError;
pub use spec::{CdcOptions, CdcSpec, ColumnSelection, OnTie, SequenceColumn, StoredAs};
