//! The crate's errors, by what the caller must do; and ours, as it hands them through.

use std::panic::{AssertUnwindSafe, catch_unwind};

use iceberg::ErrorKind as Theirs;

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// An error of the crate as one of ours. One of ours that it handed through, such as the store's, keeps its kind.
pub(super) fn of(e: iceberg::Error, what: &str) -> Error {
    Error::new(kind(&e), what).because(e)
}

/// What the crate makes of bytes that anybody may have written. Its Avro reader panics on some that it should refuse, such as
/// a schema whose name is none: that is an error here as well.
pub(super) fn parsed<T>(what: &str, parse: impl FnOnce() -> iceberg::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(parse)) {
        Ok(parsed) => parsed.map_err(|e| of(e, what)),
        Err(_) => Err(Error::new(ErrorKind::Corrupt, what).with("why", "the reader broke off on its bytes")),
    }
}

/// One of ours, for the crate to hand through.
pub(super) fn ours(e: Error) -> iceberg::Error {
    iceberg::Error::new(Theirs::Unexpected, e.to_string()).with_retryable(e.is_retryable()).with_source(e)
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "all others say that they made no sense of what they read"
)]
fn kind(e: &iceberg::Error) -> ErrorKind {
    let mut source = std::error::Error::source(e);
    while let Some(error) = source {
        let known =
            error.downcast_ref::<Error>().map(Error::kind).or_else(|| crate::error::stored_kind(error));
        if let Some(kind) = known {
            return kind;
        }
        source = error.source();
    }
    match e.kind() {
        Theirs::FeatureUnsupported => ErrorKind::Unsupported,
        Theirs::TableNotFound | Theirs::NamespaceNotFound => ErrorKind::NotFound,
        Theirs::PreconditionFailed
        | Theirs::CatalogCommitConflicts
        | Theirs::TableAlreadyExists
        | Theirs::NamespaceAlreadyExists => ErrorKind::Conflict,
        _ => ErrorKind::Corrupt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_store_keeps_its_kind_through_the_crate() {
        let store = object_store::Error::NotFound { path: "p".into(), source: "gone".into() };
        let through = of(ours(Error::from(store)), "a manifest could not be read");
        assert_eq!(through.kind(), ErrorKind::NotFound);
        let busy = ours(Error::new(ErrorKind::Unavailable, "the store failed"));
        assert!(busy.retryable());
        assert_eq!(of(busy, "w").kind(), ErrorKind::Unavailable);
        for (theirs, kind) in [
            (Theirs::DataInvalid, ErrorKind::Corrupt),
            (Theirs::FeatureUnsupported, ErrorKind::Unsupported),
            (Theirs::CatalogCommitConflicts, ErrorKind::Conflict),
            (Theirs::TableNotFound, ErrorKind::NotFound),
        ] {
            assert_eq!(of(iceberg::Error::new(theirs, "e"), "w").kind(), kind);
        }
    }
}
