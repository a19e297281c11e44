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

    /// True when the cause is a file that is not there.
    pub(crate) fn is_missing_file(&self) -> bool {
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let io = error.downcast_ref::<std::io::Error>();
            let inner = io.and_then(std::io::Error::get_ref).and_then(|e| e.downcast_ref());
            if matches!(error.downcast_ref().or(inner), Some(object_store::Error::NotFound { .. })) {
                return true;
            }
            source = error.source();
        }
        false
    }

    /// True when the same call may succeed later without anybody doing anything: after a conflict it can't, its base is
    /// the same.
    pub fn is_retryable(&self) -> bool {
        self.kind == ErrorKind::Unavailable
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
        let kind = store_kind(&e);
        let message = match refusal(&e) {
            Some((_, message)) => message,
            None => "the store failed",
        };
        Self::new(kind, message).because(e)
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
        _ => refusal(e).map_or(ErrorKind::Unavailable, |(kind, _)| kind),
    }
}

/// What somebody must mend before the store can do it: trying again does not help.
fn refusal(e: &object_store::Error) -> Option<(ErrorKind, &'static str)> {
    use object_store::Error as Store;
    if matches!(e, Store::PermissionDenied { .. }) {
        return Some((ErrorKind::Invalid, NOT_ALLOWED));
    }
    if matches!(e, Store::Unauthenticated { .. }) {
        return Some((ErrorKind::Invalid, "the store does not know these credentials"));
    }
    let mut source = std::error::Error::source(e);
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return io_refusal(io);
        }
        source = error.source();
    }
    None
}

const NOT_ALLOWED: &str = "the store does not allow this: its permissions or our credentials must be changed";

#[expect(clippy::wildcard_enum_match_arm, reason = "what is not known may pass")]
fn io_refusal(e: &std::io::Error) -> Option<(ErrorKind, &'static str)> {
    use std::io::ErrorKind as Io;
    match e.kind() {
        Io::PermissionDenied => Some((ErrorKind::Invalid, NOT_ALLOWED)),
        Io::ReadOnlyFilesystem => Some((ErrorKind::Invalid, "the store can only be read")),
        Io::Unsupported => Some((ErrorKind::Unsupported, "the store can't do this")),
        Io::StorageFull | Io::QuotaExceeded => Some((ErrorKind::Unsupported, "the store is full")),
        _ => None,
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
        None => io.map(|io| io_refusal(io).map_or(ErrorKind::Unavailable, |(kind, _)| kind)),
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_mended_is_not_tried_again() {
        use std::io::ErrorKind as Io;
        let io = |kind: Io| object_store::Error::Generic {
            store: "test",
            source: Box::new(std::io::Error::from(kind)),
        };
        let denied = object_store::Error::PermissionDenied { path: "p".into(), source: "no".into() };
        let unknown = object_store::Error::Unauthenticated { path: "p".into(), source: "who".into() };
        for (error, kind) in [
            (denied, ErrorKind::Invalid),
            (unknown, ErrorKind::Invalid),
            (io(Io::PermissionDenied), ErrorKind::Invalid),
            (io(Io::ReadOnlyFilesystem), ErrorKind::Invalid),
            (io(Io::Unsupported), ErrorKind::Unsupported),
            (io(Io::StorageFull), ErrorKind::Unsupported),
            (io(Io::TimedOut), ErrorKind::Unavailable),
        ] {
            assert_eq!(stored_kind(&error), Some(kind), "{error}");
            let error = Error::from(error);
            assert_eq!((error.kind(), error.is_retryable()), (kind, kind == ErrorKind::Unavailable));
        }
        assert_eq!(stored_kind(&std::io::Error::from(Io::StorageFull)), Some(ErrorKind::Unsupported));
        assert!(!Error::new(ErrorKind::Conflict, "c").is_retryable());
    }
}
