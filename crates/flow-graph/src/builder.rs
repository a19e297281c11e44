//! How does a set of definitions become a graph?
//!
//! In three steps: resolve the names (`draft`), check every rule (`rules`, `cycle`), lay out the edges (`layout`).
//! The first two collect all errors; the third one runs only when there is none.

mod changes;
mod cycle;
mod draft;
mod layout;
mod rules;

use crate::{Dataset, Flow, Graph, GraphError, Mode};
use draft::Draft;

/// Collects the definitions of a pipeline, in any order.
#[derive(Debug, Clone, Default)]
pub struct GraphBuilder {
    mode: Mode,
    datasets: Vec<Dataset>,
    flows: Vec<Flow>,
}

impl GraphBuilder {
    /// An empty pipeline in triggered mode.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how updates run; continuous mode allows fewer edges (G-23).
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Adds a dataset.
    #[must_use]
    pub fn dataset(mut self, dataset: Dataset) -> Self {
        self.datasets.push(dataset);
        self
    }

    /// Adds a flow; its target, reads and predecessors may be declared later.
    #[must_use]
    pub fn flow(mut self, flow: Flow) -> Self {
        self.flows.push(flow);
        self
    }

    /// Checks the definitions and makes the graph.
    ///
    /// Names are matched exactly first, then without regard to case where that is unambiguous; in the graph they
    /// are spelled as declared.
    ///
    /// # Errors
    ///
    /// All mistakes that can be found, in an order that depends on the definitions only: names first, then rules
    /// of single flows, rules of targets, and cycles.
    pub fn build(self) -> Result<Graph, Vec<GraphError>> {
        let mut errors = Vec::new();
        let draft = Draft::resolve(self.mode, self.datasets, self.flows, &mut errors);
        rules::check_flows(&draft, &mut errors);
        rules::check_targets(&draft, &mut errors);
        cycle::check(&draft, &mut errors);
        if errors.is_empty() { Ok(layout::lay_out(draft)) } else { Err(errors) }
    }
}

#[cfg(test)]
mod tests;
