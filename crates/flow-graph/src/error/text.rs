//! Pieces of messages that several errors share.

use std::fmt;

use crate::{CycleStep, DatasetKind, FlowKind, GraphError};

/// What to do about a flow that does not fit its target.
pub(super) fn wrong_target_remedy(kind: &FlowKind, target: DatasetKind) -> &'static str {
    match (kind, target) {
        (_, DatasetKind::View | DatasetKind::TemporaryView) => {
            "a view is defined by its own query, so write a table instead"
        }
        (FlowKind::Update, _) => "update flows write sinks only, so use an append flow or write a sink",
        (FlowKind::AutoCdc(_) | FlowKind::Snapshot(_), _) => "declare the target as a streaming table",
        (FlowKind::Complete, _) => "declare the target as a materialized view, or make the flow append",
        (FlowKind::Append, _) => "declare the target as a streaming table, or drop the flow",
    }
}

/// The condition's name and a colon, where there is one, for the beginning of a message.
pub(super) struct Tag<'a>(pub(super) &'a GraphError);

impl fmt::Display for Tag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.condition().map_or(Ok(()), |condition| write!(f, "{condition}: "))
    }
}

/// A hint at what may be meant, for the middle of a message.
pub(crate) struct Similar<'a>(pub(crate) &'a [String]);

impl fmt::Display for Similar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " (did you mean {}?)", self.0.join(" or ")) }
    }
}

/// The names of a circle, joined by arrows.
pub(super) struct Path<'a>(pub(super) &'a [CycleStep]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.0.first() {
            f.write_str(&first.from)?;
        }
        self.0.iter().try_for_each(|step| write!(f, " -> {}", step.to))
    }
}

/// The edges of a circle, one after the other.
pub(super) struct Steps<'a>(pub(super) &'a [CycleStep]);

impl fmt::Display for Steps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{step}")?;
        }
        Ok(())
    }
}
