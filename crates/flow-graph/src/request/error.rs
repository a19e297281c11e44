//! What is wrong with a request, and what should its author write instead?

use std::fmt;

use crate::{DatasetKind, error::Similar};

/// What a request asks of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// To bring a target up to date.
    Refresh,
    /// To empty a table and fill it anew.
    FullRefresh,
    /// To let a flow read its source anew.
    ResetCheckpoint,
}

/// The words that follow "cannot" in a message.
impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refresh => "refresh",
            Self::FullRefresh => "fully refresh",
            Self::ResetCheckpoint => "reset the checkpoint of",
        })
    }
}

/// A mistake in a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A target that is not in the pipeline.
    #[error("cannot {ask} {name}: the pipeline has no table or sink of that name{}; correct the name", Similar(.similar))]
    UnknownTarget {
        /// What was asked.
        ask: Ask,
        /// The name as written.
        name: String,
        /// Targets that may be meant: with a similar name, or written by a flow of that name.
        similar: Vec<String>,
    },
    /// A reset of a flow that is not in the pipeline.
    #[error("cannot {} {name}: the pipeline has no flow of that name{}; correct the name", Ask::ResetCheckpoint, Similar(.similar))]
    UnknownFlow {
        /// The name as written.
        name: String,
        /// Flows that may be meant: with a similar name, or into a target of that name.
        similar: Vec<String>,
    },
    /// A name fits several things that differ only in case.
    #[error("cannot {ask} {name}: when case is ignored, that fits {}; write one of them exactly", .candidates.join(" and "))]
    AmbiguousName {
        /// What was asked.
        ask: Ask,
        /// The name as written.
        name: String,
        /// What it may mean.
        candidates: Vec<String>,
    },
    /// A view or sink where that cannot be asked of it.
    #[error("cannot {ask} {name}, which is a {kind}; {}", remedy(*.kind))]
    WrongKind {
        /// What was asked.
        ask: Ask,
        /// The dataset, as declared.
        name: String,
        /// Its kind.
        kind: DatasetKind,
    },
    /// A full refresh of a table whose properties forbid it.
    #[error(
        "cannot fully refresh {table}: its property pipelines.reset.allowed is false; set it to true, or name the tables to refresh fully without this one"
    )]
    ResetNotAllowed {
        /// The table.
        table: String,
    },
    /// A full refresh of everything, and some targets besides.
    #[error("a full refresh of all tables leaves nothing to select; ask for it alone, or only for {}", .named.join(", "))]
    AllAndSome {
        /// The targets that were named as well, as written.
        named: Vec<String>,
    },
}

fn remedy(kind: DatasetKind) -> &'static str {
    if kind.is_sink() {
        "what it holds lies outside of the pipeline: empty it by its own means and reset the checkpoints of its flows"
    } else {
        "a view holds no rows: name the tables that it reads, or those that read it"
    }
}
