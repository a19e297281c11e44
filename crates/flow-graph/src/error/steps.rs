//! Why do things wait for each other in a circle?

use std::fmt;

/// Why one thing of a cycle must come before the next one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StepReason {
    /// The later one reads this dataset, which the earlier one writes.
    Reads(String),
    /// The later one reads the earlier one, which is a view.
    ReadsView,
    /// The later one names the earlier one in `depends_on`.
    DependsOn,
}

/// One edge of a cycle: `from` must come before `to`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CycleStep {
    /// The flow or view that must come first.
    pub from: String,
    /// The flow or view that waits for it.
    pub to: String,
    /// How the edge comes about.
    pub reason: StepReason,
}

impl fmt::Display for CycleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, reason } = self;
        match reason {
            StepReason::Reads(dataset) => write!(f, "{to} reads {dataset}, which {from} writes"),
            StepReason::ReadsView => write!(f, "{to} reads the view {from}"),
            StepReason::DependsOn => write!(f, "{to} depends on {from}"),
        }
    }
}
