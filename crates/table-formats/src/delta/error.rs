//! deltalake's errors, by what the caller must do.

use deltalake_core::{DeltaTableError, kernel::transaction::TransactionError};

use crate::error::{Error, ErrorKind};

/// An error of deltalake's as one of ours.
pub(super) fn of(e: DeltaTableError, what: &str) -> Error {
    Error::new(kind(&e), what).because(e)
}

/// True when another writer's log entry was there first.
#[expect(clippy::wildcard_enum_match_arm, reason = "any other error is none of these")]
pub(super) fn is_conflict(e: &DeltaTableError) -> bool {
    match e {
        DeltaTableError::VersionAlreadyExists(_) => true,
        DeltaTableError::Transaction { source } => matches!(
            source,
            TransactionError::VersionAlreadyExists(_)
                | TransactionError::MaxCommitAttempts(_)
                | TransactionError::CommitConflict(_)
        ),
        _ => false,
    }
}

/// True when a table could not be created because somebody else did.
pub(super) fn is_lost_race(e: &Error) -> bool {
    e.kind() == ErrorKind::Conflict
}

#[expect(clippy::wildcard_enum_match_arm, reason = "any other error says that the log contradicts itself")]
fn kind(e: &DeltaTableError) -> ErrorKind {
    if is_conflict(e) {
        return ErrorKind::Conflict;
    }
    let mut source = Some(e as &(dyn std::error::Error + 'static));
    while let Some(error) = source {
        if let Some(kind) = crate::error::stored_kind(error) {
            return kind;
        }
        source = error.source();
    }
    match e {
        DeltaTableError::NotATable(_) | DeltaTableError::InvalidVersion(_) => ErrorKind::NotFound,
        DeltaTableError::Io { .. } | DeltaTableError::Generic(_) => ErrorKind::Unavailable,
        // The kernel's error type has no public name, and hides the store's error from its chain.
        DeltaTableError::KernelError(e) if format!("{e:?}").contains("ObjectStore(") => {
            ErrorKind::Unavailable
        }
        DeltaTableError::KernelError(e) if format!("{e:?}").contains("Unsupported") => ErrorKind::Unsupported,
        DeltaTableError::Transaction { .. } | DeltaTableError::UnsupportedColumnMapping { .. } => {
            ErrorKind::Unsupported
        }
        _ => ErrorKind::Corrupt,
    }
}
