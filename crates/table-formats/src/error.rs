//! One error for everything that reads or writes tables; its kind says what the caller must do.

use std::fmt;

/// What the caller must do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call is wrong: change it.
    Invalid,
    /// The thing named does not exist.
    NotFound,
    /// Somebody else was first: look again.
    Conflict,
    /// The store did not answer, or not in time: try again.
    Unavailable,
    /// What is stored contradicts itself: stop and repair.
    Corrupt,
    /// The format or the store cannot do this.
    Unsupported,
    /// A fault of ours: report it.
    Internal,
}

/// What went wrong, where, and why.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    context: Vec<(&'static str, String)>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// A new error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), context: Vec::new(), source: None }
    }

    /// Adds where or with what it happened.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.context.push((name, value.to_string()));
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What the caller must do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::Conflict)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for (i, (name, value)) in self.context.iter().enumerate() {
            write!(f, "{}{name} {value}", if i == 0 { " (" } else { ", " })?;
        }
        if self.context.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}

impl From<object_store::Error> for Error {
    fn from(e: object_store::Error) -> Self {
        Self::new(store_kind(&e), "the store failed").because(e)
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(e: arrow_schema::ArrowError) -> Self {
        Self::new(ErrorKind::Internal, "rows could not be processed").because(e)
    }
}

impl From<parquet::errors::ParquetError> for Error {
    fn from(e: parquet::errors::ParquetError) -> Self {
        Self::new(parquet_kind(&e), "a Parquet file could not be read or written").because(e)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what is not known may pass")]
fn store_kind(e: &object_store::Error) -> ErrorKind {
    use object_store::Error as Store;
    match e {
        Store::NotFound { .. } => ErrorKind::NotFound,
        Store::AlreadyExists { .. } | Store::Precondition { .. } => ErrorKind::Conflict,
        Store::NotSupported { .. } | Store::NotImplemented { .. } => ErrorKind::Unsupported,
        Store::InvalidPath { .. } => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    }
}

fn parquet_kind(e: &parquet::errors::ParquetError) -> ErrorKind {
    // A file that a table names and that is not there is as corrupt as one that can't be decoded.
    let mut source = Some(e as &(dyn std::error::Error + 'static));
    while let Some(error) = source {
        if let Some(kind) = stored_kind(error) {
            return kind;
        }
        source = error.source();
    }
    ErrorKind::Corrupt
}

/// The kind of a store's error, also within an I/O error, for something that must exist.
pub(crate) fn stored_kind(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let io = error.downcast_ref::<std::io::Error>();
    let inner = io.and_then(std::io::Error::get_ref).and_then(|e| e.downcast_ref());
    match error.downcast_ref().or(inner).map(store_kind) {
        Some(ErrorKind::NotFound) => Some(ErrorKind::Corrupt),
        None if io.is_some() => Some(ErrorKind::Unavailable),
        kind => kind,
    }
}
