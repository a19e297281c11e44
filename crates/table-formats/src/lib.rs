//! One table contract, and its adapters.
//!
//! The runtime asks tables for rows by key and commits changes of rows ([`contract`]); a format's adapter knows only
//! files and metadata ([`metadata`]). What lies between is written once:
//!
//! - [`lake`]: tables of Parquet files over any adapter (lookup, copy-on-write, merge-on-read, append, overwrite);
//! - [`parquet`]: the files themselves;
//! - [`memory`]: the adapter without a format; `delta` and `iceberg` (features of these names): the adapters for Delta
//!   Lake and Apache Iceberg;
//! - [`side_state`]: the versioned rows beside a target that its readers never see;
//! - [`layer`]: a decorator that lets commits fail, for tests;
//! - [`durable`]: a local folder that fsyncs;
//! - `conformance` (feature `conformance`): each line of the contract as a function, for adapters' tests.
//!
//! `docs/adapters/writing-one.md` of the repository walks through an adapter of one's own.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod contract;
#[cfg(feature = "delta")]
pub mod delta;
pub mod durable;
pub mod error;
mod hex;
#[cfg(feature = "iceberg")]
#[expect(clippy::disallowed_types, reason = "the iceberg crate takes and gives properties in hash maps")]
pub mod iceberg;
mod keys;
pub mod lake;
pub mod layer;
mod lookup;
pub mod memory;
mod merge;
pub mod metadata;
pub mod parquet;
mod rows;
mod schema;
pub mod side_state;
mod time;

pub use contract::{
    AppendedFile, BatchStream, CommitKind, CommitOutcome, CommitStamp, Committed, LookupPlan, Result,
    RowCondition, RowStream, StateVersion, Table, TableChange, TableCommit, TableDefinition, TableFormat,
    TableSnapshot, TableVersion, WriterId,
};
#[cfg(feature = "delta")]
pub use delta::DeltaFormat;
pub use durable::DurableLocal;
pub use error::{Error, ErrorKind};
#[cfg(feature = "iceberg")]
pub use iceberg::IcebergFormat;
pub use lake::{LakeOptions, LakeTable, WriteMode};
pub use memory::MemoryFormat;
pub use parquet::{ReadCounts, WriteOptions};
pub use side_state::{SideState, StateSnapshot};
