//! One error for everything that happens while a pipeline runs: what, where, why, and what to do.

use std::fmt;

use strandline_table_formats::error::{Error as TableError, ErrorKind as TableErrorKind};

/// What the caller must do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The definition is wrong: mend the SQL or the options.
    Definition,
    /// The data is wrong: mend the input, or the expression that reads it.
    Data,
    /// The thing named does not exist.
    NotFound,
    /// Input that was listed is no longer there.
    Gone,
    /// The input has columns that are not known yet: record them, which [`crate::sources::NewColumns`] names as the cause, and
    /// go on with them.
    SchemaEvolved,
    /// Another process is at work: wait or stop it.
    Busy,
    /// A store did not answer: try again.
    Unavailable,
    /// What is stored contradicts itself or what the definition says.
    State,
    /// Not possible with this format or store.
    Unsupported,
    /// A fault of ours: report it.
    Internal,
}

/// What went wrong.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    context: Vec<(&'static str, String)>,
    help: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Result of runtime operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A new error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), context: Vec::new(), help: None, source: None }
    }

    /// Adds where or with what it happened: a flow, a file, a column.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.context.push((name, value.to_string()));
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
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

    /// What to do, in words.
    pub fn help_text(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// True when the same call may succeed later without anybody mending anything.
    pub fn is_retryable(&self) -> bool {
        self.kind == ErrorKind::Unavailable
    }

    /// The message and its causes, on one line.
    pub fn full_text(&self) -> String {
        let mut text = self.to_string();
        let mut cause: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(self);
        while let Some(error) = cause {
            let next = error.to_string();
            if !text.contains(&next) {
                text.push_str(": ");
                text.push_str(&next);
            }
            cause = error.source();
        }
        text
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

impl From<TableError> for Error {
    fn from(error: TableError) -> Self {
        let kind = match error.kind() {
            TableErrorKind::Invalid => ErrorKind::Data,
            TableErrorKind::NotFound => ErrorKind::NotFound,
            TableErrorKind::Conflict => ErrorKind::Busy,
            TableErrorKind::Unavailable => ErrorKind::Unavailable,
            TableErrorKind::Corrupt => ErrorKind::State,
            TableErrorKind::Unsupported => ErrorKind::Unsupported,
            _ => ErrorKind::Internal,
        };
        let message = error.to_string();
        match std::error::Error::source(&error) {
            Some(cause) => Self::new(kind, message).because(cause.to_string()),
            None => Self::new(kind, message),
        }
    }
}

impl From<strandline_cdc_core::CdcError> for Error {
    fn from(error: strandline_cdc_core::CdcError) -> Self {
        use strandline_cdc_core::CdcError as E;
        let kind = match &error {
            E::NullKey { .. }
            | E::NullSequence { .. }
            | E::Tie { .. }
            | E::ColumnsToUpdateInvalid { .. }
            | E::EventOfOtherShape { .. } => ErrorKind::Data,
            E::InvalidState { .. } => ErrorKind::State,
            E::Arrow(_) => ErrorKind::Internal,
            _ => ErrorKind::Definition,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<datafusion::error::DataFusionError> for Error {
    fn from(error: datafusion::error::DataFusionError) -> Self {
        use datafusion::error::DataFusionError as E;
        match error {
            // Our own errors travel through DataFusion's streams and come back whole.
            E::External(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::new(ErrorKind::Data, other.to_string()),
            },
            E::ArrowError(inner, _) => Self::from(*inner),
            E::Context(_, inner) => Self::from(*inner),
            other => {
                let kind = match other.find_root() {
                    E::Plan(_) | E::SchemaError(..) | E::SQL(..) | E::NotImplemented(_) => {
                        ErrorKind::Definition
                    }
                    _ => ErrorKind::Data,
                };
                Self::new(kind, other.strip_backtrace())
            }
        }
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::ExternalError(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::new(ErrorKind::Data, other.to_string()),
            },
            other => Self::new(ErrorKind::Data, other.to_string()),
        }
    }
}

impl From<Error> for datafusion::error::DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}

/// An error of an object store, with the path.
pub(crate) fn store_error(error: object_store::Error, path: &impl fmt::Display) -> Error {
    let kind = match error {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::InvalidPath { .. } => ErrorKind::Data,
        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => {
            ErrorKind::Busy
        }
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
            ErrorKind::Unsupported
        }
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            ErrorKind::State
        }
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, "the store failed").with("path", path).because(error)
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::new(ErrorKind::Internal, "a value can't be encoded as JSON").because(error)
    }
}
