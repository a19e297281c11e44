//! What do the names in the definitions refer to?
//!
//! Invariant: every reference in a [`Draft`] is a place in its own lists; a name that could not be resolved has
//! left an error and no reference.

use std::collections::BTreeMap;

use crate::names::{Found, Names};
use crate::{Dataset, DatasetKind, Flow, GraphError, Mode};

/// What a name in `depends_on` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predecessor {
    /// The flow at this place.
    Flow(usize),
    /// The view at this place among the datasets.
    View(usize),
}

/// What one flow is tied to.
#[derive(Debug, Default)]
pub(super) struct Wiring {
    pub(super) target: Option<usize>,
    pub(super) reads: Vec<usize>,
    pub(super) after: Vec<Predecessor>,
}

/// The definitions, with names resolved as far as possible and spelled as declared.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) mode: Mode,
    pub(super) datasets: Vec<Dataset>,
    pub(super) flows: Vec<Flow>,
    /// By flow.
    pub(super) wiring: Vec<Wiring>,
    /// What a view reads, by dataset.
    pub(super) view_reads: Vec<Vec<usize>>,
    /// The flows that write it, by dataset.
    pub(super) writers: Vec<Vec<usize>>,
}

impl Draft {
    pub(super) fn resolve(
        mode: Mode,
        mut datasets: Vec<Dataset>,
        mut flows: Vec<Flow>,
        errors: &mut Vec<GraphError>,
    ) -> Self {
        refuse_duplicate_datasets(&datasets, errors);
        let names = Names::new(datasets.iter().map(Dataset::name));
        let declared: Vec<String> = datasets.iter().map(|dataset| dataset.name.clone()).collect();

        let mut wiring: Vec<Wiring> = Vec::new();
        let mut writers = vec![Vec::new(); datasets.len()];
        for (place, flow) in flows.iter_mut().enumerate() {
            let target = resolve_target(flow, &names, errors);
            if let Some(target) = target {
                flow.target = spelled(&declared, target);
                if let Some(list) = writers.get_mut(target) {
                    list.push(place);
                }
            }
            wiring.push(Wiring { target, ..Wiring::default() });
        }
        refuse_duplicate_flows(&datasets, &flows, errors);

        for (flow, wiring) in flows.iter_mut().zip(&mut wiring) {
            wiring.reads = resolve_reads(flow.name(), &flow.reads, &names, errors);
            flow.reads = wiring.reads.iter().map(|read| spelled(&declared, *read)).collect();
        }
        let mut view_reads = Vec::new();
        for dataset in &mut datasets {
            let reads = resolve_reads(&dataset.name, &dataset.reads, &names, errors);
            dataset.reads = reads.iter().map(|read| spelled(&declared, *read)).collect();
            view_reads.push(reads);
        }
        resolve_predecessors(&datasets, &mut flows, &mut wiring, errors);
        Self { mode, datasets, flows, wiring, view_reads, writers }
    }

    /// Each flow with what it is tied to, by place.
    pub(super) fn wired(&self) -> impl Iterator<Item = (&Flow, &Wiring)> {
        self.flows.iter().zip(&self.wiring)
    }

    /// Each dataset with the flows that write it, in declaration order.
    pub(super) fn written(&self) -> impl Iterator<Item = (&Dataset, Vec<&Flow>)> {
        let flows = |places: &Vec<usize>| places.iter().filter_map(|place| self.flows.get(*place)).collect();
        self.datasets.iter().zip(self.writers.iter().map(flows))
    }

    pub(super) fn kind(&self, dataset: usize) -> Option<DatasetKind> {
        self.datasets.get(dataset).map(Dataset::kind)
    }
}

fn spelled(declared: &[String], place: usize) -> String {
    declared.get(place).cloned().unwrap_or_default()
}

fn refuse_duplicate_datasets(datasets: &[Dataset], errors: &mut Vec<GraphError>) {
    let mut seen = BTreeMap::new();
    for dataset in datasets {
        if let Some(first) = seen.get(dataset.name()) {
            errors.push(GraphError::DuplicateDataset {
                name: dataset.name.clone(),
                first: *first,
                second: dataset.kind,
            });
        } else {
            seen.insert(dataset.name(), dataset.kind);
        }
    }
}

/// A view defines itself, under its own name.
fn refuse_duplicate_flows(datasets: &[Dataset], flows: &[Flow], errors: &mut Vec<GraphError>) {
    let views = datasets.iter().filter(|dataset| dataset.kind.is_view());
    let mut seen: BTreeMap<_, _> = views.map(|view| (view.name(), view.name())).collect();
    for flow in flows {
        if let Some(first) = seen.get(flow.name()) {
            errors.push(GraphError::DuplicateFlow {
                name: flow.name().to_owned(),
                first_target: (*first).to_owned(),
                second_target: flow.target.clone(),
                unnamed: !flow.is_named(),
            });
        } else {
            seen.insert(flow.name(), flow.target());
        }
    }
}

fn resolve_target(flow: &Flow, names: &Names, errors: &mut Vec<GraphError>) -> Option<usize> {
    let (user, target) = (flow.name().to_owned(), flow.target.clone());
    match names.find(&target) {
        Found::One(place) => return Some(place),
        Found::Nothing(similar) => errors.push(GraphError::UnknownTarget { flow: user, target, similar }),
        Found::Several(candidates) => {
            errors.push(GraphError::AmbiguousName { user, name: target, candidates });
        }
    }
    None
}

fn resolve_reads(reader: &str, reads: &[String], names: &Names, errors: &mut Vec<GraphError>) -> Vec<usize> {
    let mut places = Vec::new();
    for name in reads {
        let (user, name) = (reader.to_owned(), name.clone());
        match names.find(&name) {
            Found::One(place) if places.contains(&place) => {}
            Found::One(place) => places.push(place),
            Found::Nothing(similar) => {
                errors.push(GraphError::UnknownRead { reader: user, dataset: name, similar });
            }
            Found::Several(candidates) => errors.push(GraphError::AmbiguousName { user, name, candidates }),
        }
    }
    places
}

/// Equal names collapse to one edge (G-19).
fn resolve_predecessors(
    datasets: &[Dataset],
    flows: &mut [Flow],
    wiring: &mut [Wiring],
    errors: &mut Vec<GraphError>,
) {
    let views: Vec<usize> =
        datasets.iter().enumerate().filter(|(_, dataset)| dataset.kind.is_view()).map(|(at, _)| at).collect();
    let declared: Vec<String> = flows
        .iter()
        .map(|flow| flow.name().to_owned())
        .chain(views.iter().filter_map(|at| datasets.get(*at)).map(|view| view.name.clone()))
        .collect();
    let names = Names::new(declared.iter().map(String::as_str));
    let flow_count = flows.len();
    for (flow, wiring) in flows.iter_mut().zip(wiring) {
        let mut spellings = Vec::new();
        for name in &flow.depends_on {
            let (user, name) = (flow.name().to_owned(), name.clone());
            match names.find(&name) {
                Found::One(place) => {
                    let predecessor = match place.checked_sub(flow_count).and_then(|view| views.get(view)) {
                        Some(view) => Predecessor::View(*view),
                        None => Predecessor::Flow(place),
                    };
                    if !wiring.after.contains(&predecessor) {
                        wiring.after.push(predecessor);
                        spellings.push(spelled(&declared, place));
                    }
                }
                Found::Nothing(similar) => {
                    errors.push(GraphError::UnknownPredecessor { flow: user, predecessor: name, similar });
                }
                Found::Several(candidates) => {
                    errors.push(GraphError::AmbiguousName { user, name, candidates });
                }
            }
        }
        flow.depends_on = spellings;
    }
}
