//! How are rows of a file deleted: by writing the file anew without them, or by marking them beside it?

use std::{fmt, str::FromStr};

use crate::error::{Error, ErrorKind};

/// Property of a table that says its [`WriteMode`].
pub const WRITE_MODE: &str = "strandline.writeMode";

/// How deleted rows are written. The rows of a table are the same either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteMode {
    /// As costs least, file by file: a large file that loses a small share of its rows is masked, others are written anew. A
    /// Delta table gets no deletion vectors from this unless it has them enabled, for some readers refuse such tables.
    #[default]
    Auto,
    /// Rows are marked as deleted beside their files (deletion vectors, position deletes): changes cost what they are,
    /// readers pay a little until the files are compacted.
    MergeOnRead,
    /// Files that lose rows are written anew: any reader reads them, and changes cost what the files are.
    CopyOnWrite,
}

impl FromStr for WriteMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.to_ascii_lowercase().replace('-', "_").as_str() {
            "auto" => Ok(Self::Auto),
            "merge_on_read" => Ok(Self::MergeOnRead),
            "copy_on_write" => Ok(Self::CopyOnWrite),
            _ => {
                let message =
                    format!("`{text}` is no write mode; there are auto, merge_on_read and copy_on_write");
                Err(Error::new(ErrorKind::Invalid, message).with("property", WRITE_MODE))
            }
        }
    }
}

impl fmt::Display for WriteMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::MergeOnRead => "merge_on_read",
            Self::CopyOnWrite => "copy_on_write",
        })
    }
}
