//! How do the settled events of a key become versions? (SCD2; its last point is SCD1)
//!
//! A *run* is a maximal chain of neighbouring upserts of which each repeats its predecessor on the tracked columns. A
//! run is one version: it starts at its first event, shows the values of its last, and ends where the next event of the
//! key stands, whatever that is. A delete that directly follows an upsert is the end of that run and leaves no other
//! trace; any other delete ends nothing and must be remembered as it is.

use super::order::Op;

/// A version, as places in the list of settled events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    /// The event that opens it.
    pub(crate) first: usize,
    /// The event whose values it shows.
    pub(crate) tail: usize,
    /// The event that ends it, if any.
    pub(crate) end: Option<usize>,
}

/// What the fold of a key's events finds, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A version.
    Version(Version),
    /// A delete that ends no version.
    UnmatchedDelete(usize),
}

/// Folds the events `range` of one key, settled and in order, into what they show.
///
/// `repeats(i)` tells whether upsert `i` equals upsert `i - 1` on tracked columns; it is asked for neighbours only.
pub(crate) fn fold(
    range: std::ops::Range<usize>,
    op: impl Fn(usize) -> Op,
    repeats: impl Fn(usize) -> bool,
    mut found: impl FnMut(Found),
) {
    let mut open: Option<Version> = None;
    for i in range {
        match (op(i), open) {
            (Op::Barrier | Op::Snapshot | Op::Retract, _) => {}
            (Op::Delete, None) => found(Found::UnmatchedDelete(i)),
            (Op::Delete, Some(version)) => {
                found(Found::Version(Version { end: Some(i), ..version }));
                open = None;
            }
            (Op::Upsert, Some(version)) if repeats(i) => open = Some(Version { tail: i, ..version }),
            (Op::Upsert, previous) => {
                if let Some(version) = previous {
                    found(Found::Version(Version { end: Some(i), ..version }));
                }
                open = Some(Version { first: i, tail: i, end: None });
            }
        }
    }
    if let Some(version) = open {
        found(Found::Version(version));
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
