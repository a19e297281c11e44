//! What was believed of a key, and from when until when?
//!
//! The belief at a system time is the timeline of the events known by then. It changes with each event that becomes
//! known, and only around that event: its own step, later steps as far as they inherit from it, and the versions on
//! both sides. So the walk over system time keeps the current timeline and touches the neighbourhood of each event; the
//! cost of an event does not depend on how much is known already, but for a logarithm.
//!
//! A row of the table is a version of a belief with the longest interval in which it was believed.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound::{Excluded, Unbounded},
};

use super::{
    order::{Op, Ordinal},
    step::{Filled, Step, Write},
};

/// An event, settled. Given in the order of system time; those of one business sequence within it in the order of what they
/// were given as, then of rank.
#[derive(Debug, Clone)]
pub(crate) struct Told<Row> {
    /// Business sequence.
    pub(crate) at: Ordinal,
    /// System sequence.
    pub(crate) system: Ordinal,
    pub(crate) op: Op,
    pub(crate) write: Option<Write<Row>>,
}

/// Since when a row is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// It was believed before the walk began.
    Before,
    At(Ordinal),
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Belief<Row> {
    pub(crate) start: Ordinal,
    pub(crate) end: Option<Ordinal>,
    pub(crate) values: Filled<Row>,
    pub(crate) since: Since,
    /// The system sequence at which it ceased to be believed.
    pub(crate) until: Option<Ordinal>,
}

/// What the walk needs to know of values.
pub(crate) struct Values<Row, Same> {
    pub(crate) leaves: usize,
    /// A row whose leaves are NULL.
    pub(crate) null: Row,
    /// Whether two rows show the same.
    pub(crate) same: Same,
}

/// The rows that were believed at system sequence `from`, just before its events, or at any later time.
pub(crate) fn beliefs<Row: Copy, Same: Fn(&Filled<Row>, &Filled<Row>) -> bool>(
    told: &[Told<Row>],
    from: Ordinal,
    values: &Values<Row, Same>,
) -> Vec<Belief<Row>> {
    let known = told.partition_point(|event| event.system < from);
    let (before, after) = told.split_at(known);
    let mut walk = Walk {
        values,
        nodes: BTreeMap::new(),
        bounds: BTreeMap::new(),
        shown: BTreeMap::new(),
        ended: Vec::new(),
    };
    walk.start(before);
    for moment in after.chunk_by(|a, b| a.system == b.system) {
        walk.learn(moment);
    }
    let open = walk.shown.into_iter().map(|(start, shown)| shown.belief(start, None));
    walk.ended.into_iter().chain(open).collect()
}

/// A sequence, and the row after it.
struct Node<Row> {
    step: Step<Row>,
    filled: Option<Filled<Row>>,
}

/// A version of the current belief.
struct Shown<Row> {
    end: Option<Ordinal>,
    values: Filled<Row>,
    since: Since,
}

impl<Row> Shown<Row> {
    fn belief(self, start: Ordinal, until: Option<Ordinal>) -> Belief<Row> {
        Belief { start, end: self.end, values: self.values, since: self.since, until }
    }
}

/// Where a version opens, and where one ends and none follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Opens,
    Closes,
}

struct Walk<'v, Row, Same> {
    values: &'v Values<Row, Same>,
    nodes: BTreeMap<Ordinal, Node<Row>>,
    bounds: BTreeMap<Ordinal, Edge>,
    /// Versions of the current belief, by start.
    shown: BTreeMap<Ordinal, Shown<Row>>,
    ended: Vec<Belief<Row>>,
}

impl<Row: Copy, Same: Fn(&Filled<Row>, &Filled<Row>) -> bool> Walk<'_, Row, Same> {
    /// The belief from which the walk sets out.
    fn start(&mut self, told: &[Told<Row>]) {
        for event in told {
            let node =
                self.nodes.entry(event.at).or_insert_with(|| Node { step: Step::default(), filled: None });
            node.step.take(event.op, event.write.as_ref());
        }
        let mut before: Option<Filled<Row>> = None;
        for (&at, node) in &mut self.nodes {
            node.filled = node.step.apply(before.as_ref(), self.values.leaves, self.values.null);
            if let Some(edge) = edge(before.as_ref(), node.filled.as_ref(), &self.values.same) {
                self.bounds.insert(at, edge);
            }
            before.clone_from(&node.filled);
        }
        let starts: Vec<Ordinal> = self.bounds.keys().copied().collect();
        for at in starts {
            if let Some((end, values)) = self.version(at) {
                self.shown.insert(at, Shown { end, values, since: Since::Before });
            }
        }
    }

    /// Takes the events that become known at one system sequence.
    fn learn(&mut self, moment: &[Told<Row>]) {
        let Some(system) = moment.first().map(|event| event.system) else { return };
        let mut touched: BTreeSet<Ordinal> = BTreeSet::new();
        for event in moment {
            let node =
                self.nodes.entry(event.at).or_insert_with(|| Node { step: Step::default(), filled: None });
            node.step.take(event.op, event.write.as_ref());
            touched.insert(event.at);
        }
        let mut changed: BTreeSet<Ordinal> = BTreeSet::new();
        for &at in &touched {
            self.refill(at, &mut changed);
        }
        let mut affected: BTreeSet<Ordinal> = BTreeSet::new();
        for &at in &changed {
            affected.extend(self.bounds.range(..=at).next_back().map(|(start, _)| *start));
            affected.extend(self.bounds.range(..at).next_back().map(|(start, _)| *start));
        }
        for &at in &changed {
            let own = self.nodes.get(&at).and_then(|node| node.filled.as_ref());
            match edge(self.before(at).as_ref(), own, &self.values.same) {
                Some(edge) => self.bounds.insert(at, edge),
                None => self.bounds.remove(&at),
            };
        }
        for &at in &changed {
            affected.insert(at);
            affected.extend(self.bounds.range(..at).next_back().map(|(start, _)| *start));
        }
        for at in affected {
            self.show(at, system);
        }
    }

    /// The row before a sequence.
    fn before(&self, at: Ordinal) -> Option<Filled<Row>> {
        self.nodes.range(..at).next_back().and_then(|(_, node)| node.filled.clone())
    }

    /// Fills the step at `at` and those that inherit from it. Every step whose row, or whose row before, may have
    /// changed is noted.
    fn refill(&mut self, at: Ordinal, changed: &mut BTreeSet<Ordinal>) {
        let mut before = self.before(at);
        let Values { leaves, null, same } = self.values;
        for (&next, node) in self.nodes.range_mut(at..) {
            changed.insert(next);
            if next != at && !node.step.inherits() {
                return;
            }
            let filled = node.step.apply(before.as_ref(), *leaves, *null);
            let alike = match (&filled, &node.filled) {
                (Some(new), Some(old)) => same(new, old),
                (None, None) => true,
                _ => false,
            };
            if alike && next != at {
                return;
            }
            before.clone_from(&filled);
            node.filled = filled;
        }
    }

    /// The version that opens at a sequence, if one does.
    fn version(&self, at: Ordinal) -> Option<(Option<Ordinal>, Filled<Row>)> {
        if self.bounds.get(&at) != Some(&Edge::Opens) {
            return None;
        }
        let end = self.bounds.range((Excluded(at), Unbounded)).next().map(|(end, _)| *end);
        Some((end, self.nodes.get(&at)?.filled.clone()?))
    }

    /// What the belief shows at a start, from `system` on.
    fn show(&mut self, at: Ordinal, system: Ordinal) {
        let version = self.version(at);
        let alike = match (&version, self.shown.get(&at)) {
            (Some((end, values)), Some(shown)) => {
                *end == shown.end && (self.values.same)(values, &shown.values)
            }
            (None, None) => true,
            _ => false,
        };
        if alike {
            return;
        }
        if let Some(shown) = self.shown.remove(&at) {
            self.ended.push(shown.belief(at, Some(system)));
        }
        if let Some((end, values)) = version {
            self.shown.insert(at, Shown { end, values, since: Since::At(system) });
        }
    }
}

/// What happens between two rows.
fn edge<Row>(
    before: Option<&Filled<Row>>,
    after: Option<&Filled<Row>>,
    same: &impl Fn(&Filled<Row>, &Filled<Row>) -> bool,
) -> Option<Edge> {
    match (before, after) {
        (None, None) => None,
        (Some(before), Some(after)) if same(before, after) => None,
        (_, Some(_)) => Some(Edge::Opens),
        (Some(_), None) => Some(Edge::Closes),
    }
}

#[cfg(test)]
#[path = "belief_tests.rs"]
mod tests;
