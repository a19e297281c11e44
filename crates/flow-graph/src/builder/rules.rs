//! Does each flow fit its target, its neighbours and the mode?
//!
//! Rules of one flow come first, then rules of the flows that share a target. A rule whose names could not be
//! resolved is passed over; the missing name is already reported.

use super::changes;
use super::draft::{Draft, Predecessor};
use crate::{Dataset, DatasetKind, Flow, FlowKind, GraphError, Mode, QueryMode};

/// Checks what concerns one flow or view alone.
pub(super) fn check_flows(draft: &Draft, errors: &mut Vec<GraphError>) {
    for (flow, wiring) in draft.wired() {
        if let Some(target) = wiring.target.and_then(|target| draft.datasets.get(target)) {
            check_target_kind(flow, target, errors);
        }
        check_query(flow, errors);
        for read in wiring.reads.iter().filter_map(|read| draft.datasets.get(*read)) {
            check_read(flow.name(), None, read, errors);
        }
        for predecessor in &wiring.after {
            check_predecessor(draft, flow, *predecessor, errors);
        }
    }
    for (view, reads) in draft.datasets.iter().zip(&draft.view_reads) {
        for read in reads.iter().filter_map(|read| draft.datasets.get(*read)) {
            check_read(view.name(), Some(view.kind()), read, errors);
        }
    }
}

/// G-16, and a batch query behind a materialized view.
fn check_query(flow: &Flow, errors: &mut Vec<GraphError>) {
    let (name, target) = (flow.name().to_owned(), flow.target.clone());
    match (&flow.kind, flow.query, flow.once) {
        (FlowKind::Append, QueryMode::Streaming, true) => {
            errors.push(GraphError::StreamingOnce { flow: name, target });
        }
        (FlowKind::Append | FlowKind::AutoCdc(_) | FlowKind::Update, QueryMode::Batch, false) => {
            errors.push(GraphError::BatchNotOnce { flow: name, kind: Box::new(flow.kind.clone()), target });
        }
        (FlowKind::Complete, QueryMode::Streaming, _) => {
            errors.push(GraphError::StreamingMaterializedView { flow: name, target });
        }
        _ => {}
    }
}

/// G-17, G-18, and which kinds can be `ONCE`.
fn check_target_kind(flow: &Flow, target: &Dataset, errors: &mut Vec<GraphError>) {
    let fits = match target.kind {
        DatasetKind::StreamingTable => !matches!(flow.kind, FlowKind::Update | FlowKind::Complete),
        DatasetKind::MaterializedView => matches!(flow.kind, FlowKind::Complete),
        DatasetKind::Sink | DatasetKind::ForeachBatchSink => {
            matches!(flow.kind, FlowKind::Append | FlowKind::Update)
        }
        DatasetKind::View | DatasetKind::TemporaryView => false,
    };
    let (name, kind) = (flow.name().to_owned(), Box::new(flow.kind.clone()));
    let (target, target_kind) = (target.name.clone(), target.kind);
    if !fits {
        errors.push(GraphError::WrongTarget { flow: name, kind, target, target_kind });
    } else if flow.once
        && (matches!(flow.kind, FlowKind::Update | FlowKind::Complete)
            || target_kind == DatasetKind::ForeachBatchSink)
    {
        errors.push(GraphError::OnceNotAllowed { flow: name, kind, target, target_kind });
    }
}

/// A sink is never read; a view that lasts reads no view that does not.
fn check_read(reader: &str, reader_kind: Option<DatasetKind>, read: &Dataset, errors: &mut Vec<GraphError>) {
    if read.kind.is_sink() {
        errors.push(GraphError::ReadsSink { reader: reader.to_owned(), sink: read.name.clone() });
    }
    if reader_kind == Some(DatasetKind::View) && read.kind == DatasetKind::TemporaryView {
        errors.push(GraphError::ReadsTemporaryView { view: reader.to_owned(), temporary: read.name.clone() });
    }
}

/// G-22, G-23, G-24 (a foreachBatch flow is never `ONCE`).
fn check_predecessor(draft: &Draft, flow: &Flow, predecessor: Predecessor, errors: &mut Vec<GraphError>) {
    let depends_on_view = |predecessor: &str, view: &str| GraphError::DependsOnView {
        flow: flow.name().to_owned(),
        predecessor: predecessor.to_owned(),
        view: view.to_owned(),
    };
    match predecessor {
        Predecessor::View(view) => {
            if let Some(view) = draft.datasets.get(view) {
                errors.push(depends_on_view(&view.name, &view.name));
            }
        }
        Predecessor::Flow(place) => {
            let Some((other, wiring)) = draft.flows.get(place).zip(draft.wiring.get(place)) else { return };
            if wiring.target.and_then(|target| draft.kind(target)).is_some_and(DatasetKind::is_view) {
                errors.push(depends_on_view(other.name(), other.target()));
            }
            if draft.mode == Mode::Continuous && !other.once {
                errors.push(GraphError::PredecessorMustBeOnce {
                    flow: flow.name().to_owned(),
                    predecessor: other.name().to_owned(),
                });
            }
        }
    }
}

/// Checks what concerns the flows of one target together.
pub(super) fn check_targets(draft: &Draft, errors: &mut Vec<GraphError>) {
    for (dataset, writers) in draft.written() {
        match dataset.kind {
            DatasetKind::StreamingTable | DatasetKind::MaterializedView if writers.is_empty() => {
                // The flows of a name declared twice went to the first dataset; that error is already there.
                let namesakes = draft.datasets.iter().filter(|other| other.name == dataset.name).count();
                if namesakes == 1 {
                    let (dataset, kind) = (dataset.name.clone(), dataset.kind);
                    errors.push(GraphError::DatasetWithoutFlow { dataset, kind });
                }
            }
            DatasetKind::MaterializedView if writers.len() > 1 => errors.push(GraphError::MultipleQueries {
                dataset: dataset.name.clone(),
                flows: writers.iter().map(|flow| flow.name().to_owned()).collect(),
            }),
            DatasetKind::StreamingTable => {
                check_mixture(dataset, &writers, errors);
                changes::check(draft.mode, dataset, &writers, errors);
            }
            DatasetKind::MaterializedView
            | DatasetKind::View
            | DatasetKind::TemporaryView
            | DatasetKind::Sink
            | DatasetKind::ForeachBatchSink => {}
        }
    }
}

/// G-08: the flow declared first decides what the table is for.
fn check_mixture(target: &Dataset, writers: &[&Flow], errors: &mut Vec<GraphError>) {
    let family = |flow: &Flow| match flow.kind {
        FlowKind::Append => Some(false),
        FlowKind::AutoCdc(_) | FlowKind::Snapshot(_) => Some(true),
        FlowKind::Update | FlowKind::Complete => None,
    };
    let mut members = writers.iter().filter(|flow| family(flow).is_some());
    let Some(first) = members.next() else { return };
    for second in members.filter(|flow| family(flow) != family(first)) {
        errors.push(GraphError::MixedTarget {
            target: target.name.clone(),
            first: first.name().to_owned(),
            first_kind: Box::new(first.kind.clone()),
            second: second.name().to_owned(),
            second_kind: Box::new(second.kind.clone()),
        });
    }
}
