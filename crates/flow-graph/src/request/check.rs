//! What do the names in a request refer to?

use std::collections::BTreeSet;

use super::{Ask, RequestError, ResolvedRequest, UpdateRequest};
use crate::{
    Dataset, Flow, FlowId, Graph,
    names::{Found, Names},
};

/// Resolves a request, or says all that is wrong with it.
pub(super) fn check(request: &UpdateRequest, graph: &Graph) -> Result<ResolvedRequest, Vec<RequestError>> {
    let mut check = Check {
        graph,
        datasets: Names::new(graph.datasets().iter().map(Dataset::name)),
        flows: Names::new(graph.flows().map(|(_, flow)| flow.name())),
        errors: Vec::new(),
    };
    let mut targets = check.refreshed(&request.refresh);
    let mut emptied = check.emptied(&request.full_refresh);
    let mut reset = check.reset(&request.reset_checkpoint);
    if request.full_refresh_all {
        let named: Vec<_> = request.refresh.union(&request.full_refresh).cloned().collect();
        if !named.is_empty() {
            check.errors.push(RequestError::AllAndSome { named });
        }
        let tables = graph.datasets().iter().filter(|dataset| dataset.kind().is_table());
        emptied = tables.filter_map(|table| check.full_refresh_of(table)).collect();
        let kept = graph.flows().filter(|(_, flow)| !emptied.contains(flow.target()));
        reset.extend(kept.map(|(_, flow)| flow.name().to_owned()));
    }
    if !check.errors.is_empty() {
        return Err(check.errors);
    }
    let all = request.full_refresh_all || (targets.is_empty() && emptied.is_empty());
    let targets = (!all).then(|| {
        targets.extend(emptied.iter().cloned());
        targets.extend(graph.flows().filter(|(_, flow)| reset.contains(flow.name())).map(target));
        targets
    });
    // Emptying a table resets its flows anyway.
    let covered = |name: &String| {
        let id = graph.flow_id(name);
        id.and_then(|id| graph.flow(id)).is_some_and(|flow| emptied.contains(flow.target()))
    };
    reset.retain(|name| !covered(name));
    Ok(ResolvedRequest { targets, emptied, reset })
}

fn target((_, flow): (FlowId, &Flow)) -> String {
    flow.target().to_owned()
}

struct Check<'a> {
    graph: &'a Graph,
    datasets: Names,
    flows: Names,
    errors: Vec<RequestError>,
}

impl<'a> Check<'a> {
    fn refreshed(&mut self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for name in names {
            let Some(dataset) = self.dataset(Ask::Refresh, name) else { continue };
            if dataset.kind().is_view() {
                self.refuse_kind(Ask::Refresh, dataset);
            } else {
                found.insert(dataset.name().to_owned());
            }
        }
        found
    }

    fn emptied(&mut self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for name in names {
            let Some(dataset) = self.dataset(Ask::FullRefresh, name) else { continue };
            if dataset.kind().is_table() {
                found.extend(self.full_refresh_of(dataset));
            } else {
                self.refuse_kind(Ask::FullRefresh, dataset);
            }
        }
        found
    }

    ///
    fn full_refresh_of(&mut self, table: &Dataset) -> Option<String> {
        let name = table.name().to_owned();
        if table.allows_reset() {
            return Some(name);
        }
        self.errors.push(RequestError::ResetNotAllowed { table: name });
        None
    }

    fn reset(&mut self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for name in names {
            match self.flows.find(name) {
                Found::One(place) => {
                    let flow = self.graph.flows().nth(place);
                    found.extend(flow.map(|(_, flow)| flow.name().to_owned()));
                }
                Found::Nothing(mut similar) => {
                    if let Found::One(place) = self.datasets.find(name)
                        && let Some(dataset) = self.graph.datasets().get(place)
                    {
                        let writers = self.graph.writers(dataset.name());
                        similar =
                            writers.filter_map(|id| Some(self.graph.flow(id)?.name().to_owned())).collect();
                    }
                    self.errors.push(RequestError::UnknownFlow { name: name.clone(), similar });
                }
                Found::Several(candidates) => self.refuse_ambiguous(Ask::ResetCheckpoint, name, candidates),
            }
        }
        found
    }

    fn dataset(&mut self, ask: Ask, name: &str) -> Option<&'a Dataset> {
        match self.datasets.find(name) {
            Found::One(place) => return self.graph.datasets().get(place),
            Found::Nothing(mut similar) => {
                if let Found::One(place) = self.flows.find(name) {
                    similar = self.graph.flows().nth(place).map(target).into_iter().collect();
                }
                self.errors.push(RequestError::UnknownTarget { ask, name: name.to_owned(), similar });
            }
            Found::Several(candidates) => self.refuse_ambiguous(ask, name, candidates),
        }
        None
    }

    fn refuse_kind(&mut self, ask: Ask, dataset: &Dataset) {
        let (name, kind) = (dataset.name().to_owned(), dataset.kind());
        self.errors.push(RequestError::WrongKind { ask, name, kind });
    }

    fn refuse_ambiguous(&mut self, ask: Ask, name: &str, candidates: Vec<String>) {
        self.errors.push(RequestError::AmbiguousName { ask, name: name.to_owned(), candidates });
    }
}
