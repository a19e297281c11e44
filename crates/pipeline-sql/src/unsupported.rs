//! Which parts of the language are understood but not executed yet?
//!
//! The parser reads them into the definition types and then asks [`Support`]. A release that executes one of them
//! deletes its line in `NOT_YET`.

use std::{collections::BTreeSet, fmt, ops::Range};

use crate::error::Problem;

/// What the runtime does not execute yet.
const NOT_YET: &[Feature] = &[Feature::PartitionedBy, Feature::ClusterBy];

/// A part of the language that a release may parse without executing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// `IGNORE NULL UPDATES [ON ..]`
    IgnoreNullUpdates,
    /// `APPLY AS TRUNCATE WHEN ..`
    ApplyAsTruncate,
    /// `APPLY AS RETRACT WHEN ..`
    ApplyAsRetract,
    /// `SYSTEM SEQUENCE BY ..`
    SystemSequenceBy,
    /// `STORED AS BITEMPORAL`
    StoredAsBitemporal,
    /// `COLUMNS TO UPDATE ..`
    ColumnsToUpdate,
    /// `VALID TO ..`
    ValidTo,
    /// `AUTO CDC .. FROM SNAPSHOT ..`
    FromSnapshot,
    /// `CONSTRAINT .. EXPECT ..`
    Expectation,
    /// `PARTITIONED BY ..`
    PartitionedBy,
    /// `CLUSTER BY ..`
    ClusterBy,
    /// `CREATE MATERIALIZED VIEW ..`
    MaterializedView,
    /// `CREATE SINK ..`
    Sink,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IgnoreNullUpdates => "IGNORE NULL UPDATES",
            Self::ApplyAsTruncate => "APPLY AS TRUNCATE WHEN",
            Self::ApplyAsRetract => "APPLY AS RETRACT WHEN",
            Self::SystemSequenceBy => "SYSTEM SEQUENCE BY",
            Self::StoredAsBitemporal => "STORED AS BITEMPORAL",
            Self::ColumnsToUpdate => "COLUMNS TO UPDATE",
            Self::ValidTo => "VALID TO",
            Self::FromSnapshot => "FROM SNAPSHOT",
            Self::Expectation => "CONSTRAINT .. EXPECT",
            Self::PartitionedBy => "PARTITIONED BY",
            Self::ClusterBy => "CLUSTER BY",
            Self::MaterializedView => "CREATE MATERIALIZED VIEW",
            Self::Sink => "CREATE SINK",
        })
    }
}

/// What the reader of a definition can execute; anything else is refused with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    not_yet: BTreeSet<Feature>,
}

impl Support {
    /// What this release executes.
    pub fn released() -> Self {
        Self { not_yet: NOT_YET.iter().copied().collect() }
    }

    /// All that has a place in the definition types: for tools that read definitions without running them.
    pub fn everything() -> Self {
        Self { not_yet: BTreeSet::new() }
    }

    /// The same without one feature: for those who embed the parser and execute less.
    #[must_use]
    pub fn without(mut self, feature: Feature) -> Self {
        self.not_yet.insert(feature);
        self
    }

    pub(crate) fn refusal(&self, feature: Feature, range: Range<usize>) -> Option<Problem> {
        self.not_yet.contains(&feature).then(|| Problem::new(range, format!("not supported yet: {feature}")))
    }
}

impl Default for Support {
    fn default() -> Self {
        Self::released()
    }
}
