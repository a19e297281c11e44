//! What must the change flows of one target agree on, and what must they not be beside a snapshot flow?

use std::fmt;

use crate::CdcFacts;

/// A fact on which the change flows of one target must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CdcFact {
    /// The key columns.
    Keys,
    /// The shape of the target.
    StoredAs,
    /// The type of the sequence.
    SequenceType,
    /// The written `TRACK HISTORY` clause.
    TrackHistory,
}

impl fmt::Display for CdcFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keys => "KEYS",
            Self::StoredAs => "STORED AS",
            Self::SequenceType => "the type of SEQUENCE BY",
            Self::TrackHistory => "TRACK HISTORY",
        })
    }
}

impl CdcFact {
    /// The condition name of a disagreement, between a snapshot flow and a change flow if it is `hybrid`.
    pub(super) fn condition(self, hybrid: bool) -> &'static str {
        match self {
            Self::Keys if hybrid => "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_KEYS_MISMATCH",
            Self::SequenceType if hybrid => {
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_SEQUENCE_TYPE_MISMATCH"
            }
            Self::Keys | Self::StoredAs | Self::SequenceType | Self::TrackHistory => "AUTOCDC_FLOWS_DISAGREE",
        }
    }
}

/// What keeps a snapshot flow from sharing a target with change flows (G-11, A-23), besides the facts on which they
/// must agree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HybridRule {
    /// The pipeline is continuous.
    Continuous,
    /// The target is not stored as SCD type 1, but as this.
    StoredAs(String),
    /// The target's expectations are judged on the snapshot's rows.
    Expectations,
    /// The change flow sets only some columns of a row.
    PartialUpdates,
}

impl HybridRule {
    pub(super) fn condition(&self) -> &'static str {
        match self {
            Self::Continuous => "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_CONTINUOUS_NOT_SUPPORTED",
            Self::StoredAs(_) => "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_REQUIRES_SCD1",
            Self::Expectations => "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_EXPECTATIONS_NOT_SUPPORTED",
            Self::PartialUpdates => "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_IGNORE_NULL_UNSUPPORTED",
        }
    }
}

/// What stands against the pair, and what to do.
impl fmt::Display for HybridRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continuous => f.write_str("the pipeline is continuous; run it triggered, or give each flow its own target"),
            Self::StoredAs(stored_as) => {
                write!(f, "it is stored as {stored_as}; store it as {}, or give each flow its own target", CdcFacts::SCD1)
            }
            Self::Expectations => f.write_str(
                "it has expectations, and a row that is dropped from a snapshot would be taken for a deleted one; check the rows in the flows' queries",
            ),
            Self::PartialUpdates => f.write_str(
                "the AUTO CDC flow sets only some columns of a row while a snapshot says all of it; drop IGNORE NULL UPDATES or COLUMNS TO UPDATE, or the snapshot flow",
            ),
        }
    }
}
