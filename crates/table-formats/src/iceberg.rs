//! Tables in Apache Iceberg's format. Its spec types, manifests and metadata are the `iceberg` crate's; data files are
//! [`crate::parquet`]'s, and the commit of changed rows is ours.

pub mod catalog;
pub mod warehouse;

pub use catalog::{Catalog, Creation, Loaded, Swap};
pub use warehouse::Warehouse;
