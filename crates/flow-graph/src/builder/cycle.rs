//! Do flows and views wait for each other in a circle?
//!
//! Nodes are flows and views, and an edge leads from what comes first to what waits. Of each knot (a strongly
//! connected set of nodes) the shortest circle through the node declared first is reported, and besides every node
//! that waits for itself (G-21).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::draft::{Draft, Predecessor};
use crate::{CycleStep, GraphError, StepReason};

/// The ways on from one node, in the order in which they were found.
type Ways = Vec<(usize, StepReason)>;

/// Flows have their own places; the view at dataset place `n` has the place `flows + n`.
struct Web<'a> {
    draft: &'a Draft,
    forward: Vec<Ways>,
    backward: Vec<BTreeSet<usize>>,
}

/// Reports the circles of a draft.
pub(super) fn check(draft: &Draft, errors: &mut Vec<GraphError>) {
    let web = Web::weave(draft);
    for node in 0..web.forward.len() {
        if let Some((_, reason)) = web.ways(node).find(|(to, _)| *to == node) {
            errors.push(GraphError::Cycle { steps: vec![web.step(node, node, reason)] });
        }
    }
    let mut knotted = web.untrimmed();
    while let Some(node) = knotted.pop_first() {
        let Some(steps) = web.shortest_circle(node, &knotted) else { continue };
        errors.push(GraphError::Cycle { steps });
        let after = web.reach(node, &knotted, |web, at| web.ways(at).map(|(to, _)| *to).collect());
        let before = web.reach(node, &knotted, |web, at| web.comes_from(at).collect());
        knotted.retain(|other| !(after.contains(other) && before.contains(other)));
    }
}

impl<'a> Web<'a> {
    fn weave(draft: &'a Draft) -> Self {
        let flows = draft.flows.len();
        let nodes = flows.saturating_add(draft.datasets.len());
        let mut web =
            Self { draft, forward: vec![Vec::new(); nodes], backward: vec![BTreeSet::new(); nodes] };
        for (place, wiring) in draft.wiring.iter().enumerate() {
            for read in &wiring.reads {
                web.add_read(place, *read);
            }
            for predecessor in &wiring.after {
                if let Predecessor::Flow(first) = predecessor {
                    web.add(*first, place, StepReason::DependsOn);
                }
            }
        }
        for (view, reads) in draft.view_reads.iter().enumerate() {
            for read in reads {
                web.add_read(flows.saturating_add(view), *read);
            }
        }
        web
    }

    fn add_read(&mut self, reader: usize, read: usize) {
        let draft = self.draft;
        let Some(dataset) = draft.datasets.get(read) else { return };
        if dataset.kind.is_view() {
            self.add(draft.flows.len().saturating_add(read), reader, StepReason::ReadsView);
        } else if !dataset.kind.is_sink() {
            for writer in draft.writers.get(read).into_iter().flatten() {
                self.add(*writer, reader, StepReason::Reads(dataset.name.clone()));
            }
        }
    }

    fn add(&mut self, from: usize, to: usize, reason: StepReason) {
        if let (Some(ways), Some(back)) = (self.forward.get_mut(from), self.backward.get_mut(to)) {
            ways.push((to, reason));
            back.insert(from);
        }
    }

    fn ways(&self, node: usize) -> impl Iterator<Item = &(usize, StepReason)> {
        self.forward.get(node).into_iter().flatten()
    }

    fn comes_from(&self, node: usize) -> impl Iterator<Item = usize> {
        self.backward.get(node).into_iter().flatten().copied()
    }

    fn name(&self, node: usize) -> String {
        let flow = self.draft.flows.get(node).map(|flow| flow.name().to_owned());
        let view = || self.draft.datasets.get(node.checked_sub(self.draft.flows.len())?);
        flow.or_else(|| view().map(|view| view.name.clone())).unwrap_or_default()
    }

    fn step(&self, from: usize, to: usize, reason: &StepReason) -> CycleStep {
        CycleStep { from: self.name(from), to: self.name(to), reason: reason.clone() }
    }

    /// The nodes that remain when those without predecessor, then those without successor, are taken away again
    /// and again. A pipeline without circles leaves none. Edges of a node to itself don't count.
    fn untrimmed(&self) -> BTreeSet<usize> {
        let mut left: BTreeSet<usize> = (0..self.forward.len()).collect();
        trim(&mut left, &|at| self.comes_from(at).collect(), &|at| {
            self.ways(at).map(|(to, _)| *to).collect()
        });
        trim(&mut left, &|at| self.ways(at).map(|(to, _)| *to).collect(), &|at| {
            self.comes_from(at).collect()
        });
        left
    }

    /// All nodes among `within` that can be reached from `start`.
    fn reach(
        &self,
        start: usize,
        within: &BTreeSet<usize>,
        next: fn(&Self, usize) -> Vec<usize>,
    ) -> BTreeSet<usize> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(node) = open.pop() {
            for other in next(self, node) {
                if within.contains(&other) && seen.insert(other) {
                    open.push(other);
                }
            }
        }
        seen
    }

    /// The shortest way from `start` over nodes of `within` back to `start`.
    fn shortest_circle(&self, start: usize, within: &BTreeSet<usize>) -> Option<Vec<CycleStep>> {
        let mut came: BTreeMap<usize, (usize, &StepReason)> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front() {
            for (to, reason) in self.ways(node) {
                if *to == start && node != start {
                    let mut steps = vec![self.step(node, start, reason)];
                    let mut at = node;
                    while let Some((from, reason)) = came.get(&at) {
                        steps.push(self.step(*from, at, reason));
                        at = *from;
                    }
                    steps.reverse();
                    return Some(steps);
                }
                if within.contains(to) && !came.contains_key(to) {
                    came.insert(*to, (node, reason));
                    open.push_back(*to);
                }
            }
        }
        None
    }
}

/// Takes away every node that nothing in `left` but itself leads to.
fn trim(
    left: &mut BTreeSet<usize>,
    sources: &dyn Fn(usize) -> Vec<usize>,
    sinks: &dyn Fn(usize) -> Vec<usize>,
) {
    let mut open: Vec<usize> = left.iter().copied().collect();
    while let Some(node) = open.pop() {
        let held = sources(node).into_iter().any(|source| source != node && left.contains(&source));
        if !held && left.remove(&node) {
            open.extend(sinks(node).into_iter().filter(|sink| left.contains(sink)));
        }
    }
}
