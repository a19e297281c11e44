//! Change data capture as a pure function.
pub mod batch;
pub mod error;
pub mod names;

pub use batch::{Bound, ChangeBatch, Counts, Lookup, Prior, ReadPlan, Reconciled, Reconciliation, RowChanges, Rows};
pub use error::CdcError;
