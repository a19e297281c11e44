//! Parquet files, for every format: written with statistics and small row groups, read by row group and position.

mod input;
mod reader;
mod stats;
mod writer;

pub use input::Input;
pub(crate) use reader::{FileReader, Read, Readers};
pub use writer::WriteOptions;
pub(crate) use writer::{Writer, remove_files};
