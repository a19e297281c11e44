//! Parquet files, for every format: written with statistics and small row groups, read by row group and position.

mod bloom;
mod counts;
mod foreign;
mod input;
mod numbers;
mod properties;
mod reader;
mod spans;
mod stats;
mod text;
mod writer;

use object_store::path::Path;

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

pub use counts::ReadCounts;
pub use input::Input;
pub(crate) use reader::{FileReader, Read, Readers};
pub(crate) use spans::{GroupRows, Spans, selection};
pub use text::{from_text, to_text};
pub use writer::WriteOptions;
pub(crate) use writer::{Writer, remove_files};

/// Where a table's file lies, by its path within the table's folder. Tables of other writers have files in folders.
pub(crate) fn file_path(folder: &Path, file: &str) -> Result<Path> {
    let elsewhere = |why: &str| {
        Error::new(ErrorKind::Unsupported, format!("a table's file {why}, which can't be read"))
            .with("file", file)
    };
    let first = file.split('/').next().unwrap_or_default();
    if file.starts_with('/') || first.contains(':') && is_scheme(first) {
        return Err(elsewhere("lies outside the table's folder"));
    }
    let within = Path::parse(file).map_err(|e| elsewhere("has a path that is none").because(e))?;
    Ok(folder.parts().chain(within.parts()).collect())
}

/// True for the beginning of a URL.
fn is_scheme(first: &str) -> bool {
    first.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_in_folders_of_the_table_and_nowhere_else() {
        let root = Path::from("lake/t");
        for (file, path) in [
            ("part-1.parquet", "lake/t/part-1.parquet"),
            ("day=1/at 1%3A00/x.parquet", "lake/t/day=1/at 1%3A00/x.parquet"),
        ] {
            assert_eq!(file_path(&root, file).unwrap().as_ref(), path);
        }
        for file in ["s3://other/x.parquet", "file:/x", "/x.parquet", "../x.parquet", "a//b"] {
            let error = file_path(&root, file).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(file), "{error}");
        }
    }
}
