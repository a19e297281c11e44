//! Tables in Apache Iceberg's format. Its spec types, manifests and metadata are the `iceberg` crate's; data files are
//! [`crate::parquet`]'s, and the commit of changed rows is ours.

pub mod catalog;
mod error;
pub mod storage;
pub mod warehouse;

pub use catalog::{Catalog, Creation, Loaded, RestCatalog, RestOptions, SqlCatalog, SqlOptions, Swap};
pub use storage::file_io;
pub use warehouse::Warehouse;
