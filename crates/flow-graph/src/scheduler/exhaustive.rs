//! Every graph of three flows, every outcome, every interleaving.
//!
//! For each pair of flows: no edge, a data edge or an order edge, in either direction (edges against the order of
//! declaration only under `--cfg slow`, since they add no new shape); each flow `ONCE` or not; one
//! to three permits; each attempt may succeed, fail for good, or fail retryably (one retry); a cancellation may come
//! at any moment; actions and inputs interleave freely. States are kept, so each is explored once.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers, and a test may panic")]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::*;
use crate::{Dataset, FlowKind, GraphBuilder, GraphError, QueryMode};

const NAMES: [&str; 3] = ["a", "b", "c"];
const PAIRS: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];

fn graph(once: usize, edges: usize) -> Result<Graph, Vec<GraphError>> {
    let mut flows = Vec::new();
    for (place, name) in NAMES.iter().enumerate() {
        let flow = if once >> place & 1 == 1 {
            Flow::new(*name, FlowKind::Append, QueryMode::Batch).once()
        } else {
            Flow::new(*name, FlowKind::Append, QueryMode::Streaming)
        };
        flows.push(flow);
    }
    let mut rest = edges;
    for (left, right) in PAIRS {
        let (kind, from, to) = match rest % 5 {
            0 => (0, left, right),
            kind @ (1 | 2) => (kind, left, right),
            kind => (kind - 2, right, left),
        };
        rest /= 5;
        let flow = flows[to].clone();
        flows[to] = match kind {
            0 => flow,
            1 => flow.reads([NAMES[from]]),
            _ => flow.depends_on([NAMES[from]]),
        };
    }
    let builder =
        NAMES.iter().fold(GraphBuilder::new(), |b, name| b.dataset(Dataset::streaming_table(*name)));
    flows.into_iter().fold(builder, GraphBuilder::flow).build()
}

/// A set of flows, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Set(u8);

impl Set {
    fn contains(self, flow: FlowId) -> bool {
        self.0 >> flow.0 & 1 == 1
    }

    fn insert(&mut self, flow: FlowId) -> bool {
        let new = !self.contains(flow);
        self.0 |= 1 << flow.0;
        new
    }

    fn remove(&mut self, flow: FlowId) -> bool {
        let old = self.contains(flow);
        self.0 &= !(1 << flow.0);
        old
    }

    fn len(self) -> usize {
        self.0.count_ones() as usize
    }
}

/// What an outside observer knows, rebuilt from actions and inputs alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Seen {
    running: Set,
    /// Flows that succeeded, and durably so if they are `ONCE`.
    durable: Set,
    persisting: Set,
    aborted: Set,
    /// Flows in their second and last attempt.
    second: Set,
    failed: Set,
    cancelled: bool,
}

/// What makes two states differ. Time is taken relative to now.
type Key = (Seen, Vec<FlowState>, Set, bool);

fn key(update: &Scheduler, seen: Seen) -> Key {
    let progress = &update.progress;
    let mut states = progress.states.clone();
    for state in &mut states {
        if let FlowState::Waiting { due, .. } = state {
            due.0 = due.0.saturating_sub(progress.now.0);
        }
    }
    let mut untold = Set::default();
    for flow in &progress.untold {
        untold.insert(*flow);
    }
    (seen, states, untold, progress.done)
}

#[derive(Default)]
struct Explorer {
    states: usize,
    ends: usize,
    refused: usize,
}

impl Explorer {
    fn explore(&mut self, graph: &Arc<Graph>, history: &[&str], permits: usize) {
        let settings = Settings::default()
            .with_permits(NonZeroUsize::new(permits).expect("positive"))
            .with_max_flow_retry_attempts(1)
            .with_backoff(Duration::from_millis(1), Duration::from_millis(1));
        let history: Completions = history.iter().copied().collect();
        let update =
            Scheduler::start(Arc::clone(graph), &ResolvedRequest::refresh_all(), &history, settings.clone());
        let mut seen = Seen::default();
        for (id, _) in graph.flows().filter(|(_, flow)| history.contains(flow.name())) {
            seen.durable.insert(id);
        }
        let mut known: BTreeSet<Key> = BTreeSet::new();
        let mut open = vec![(update, seen)];
        while let Some((update, seen)) = open.pop() {
            if !known.insert(key(&update, seen)) {
                continue;
            }
            self.states += 1;
            check(&update, seen, permits);
            self.step_action(&update, seen, &mut open);
            self.step_inputs(&update, seen, &mut open);
        }
    }

    /// The driver takes one action.
    fn step_action(&mut self, update: &Scheduler, seen: Seen, open: &mut Vec<(Scheduler, Seen)>) {
        let (mut update, mut seen) = (update.clone(), seen);
        let Some(action) = update.next_action() else {
            let waits = seen.running.len() > 0 || seen.persisting.len() > 0;
            assert!(waits || update.next_deadline().is_some() || update.is_done(), "stuck: {update:?}");
            return;
        };
        match action {
            Action::Launch { flow, attempt } => {
                for before in update.graph().predecessors(flow) {
                    assert!(
                        seen.durable.contains(*before),
                        "launched before {before:?} was durably complete"
                    );
                }
                assert!(!seen.durable.contains(flow), "a complete flow runs again");
                assert!(!seen.cancelled, "launched after a cancellation");
                assert!(seen.running.insert(flow), "launched twice at once");
                let again = attempt > 1;
                assert!(attempt <= 2 && (!again || seen.second.insert(flow)), "attempt {attempt}");
            }
            Action::Clear => panic!("nothing is to be cleared"),
            Action::Persist { flow } => assert!(seen.persisting.insert(flow), "persisted twice"),
            Action::Abort { flow } => {
                assert!(seen.cancelled && seen.running.contains(flow) && seen.aborted.insert(flow));
            }
            Action::Done { outcome } => {
                self.ends += 1;
                check_end(&update, seen, outcome);
            }
        }
        open.push((update, seen));
    }

    /// Everything that can be reported, fitting or not.
    fn step_inputs(&mut self, update: &Scheduler, seen: Seen, open: &mut Vec<(Scheduler, Seen)>) {
        let mut inputs = vec![(Input::Cancel, update.progress.now)];
        inputs.push((Input::Wake, update.next_deadline().unwrap_or(update.progress.now)));
        for (flow, _) in update.graph().flows() {
            let ends = [
                Outcome::Succeeded,
                Outcome::Failed { retryable: true },
                Outcome::Failed { retryable: false },
                Outcome::Stopped,
            ];
            let finished = ends.map(|outcome| Input::Finished { flow, outcome });
            for input in finished
                .into_iter()
                .chain([Input::Persisted { flow }, Input::NotPersisted { flow, retryable: false }])
            {
                inputs.push((input, update.progress.now));
            }
        }
        let mut scratch = update.clone();
        for (input, now) in inputs {
            let mut seen = seen;
            if seen.take(update, input) {
                let mut update = update.clone();
                assert_eq!(update.handle(now, input), Ok(()), "{input:?} {:?}", update.progress);
                open.push((update, seen));
            } else {
                self.refused += 1;
                assert!(scratch.handle(now, input).is_err(), "{input:?} {:?}", update.progress);
            }
        }
        assert_eq!(scratch.progress, update.progress, "refused inputs change nothing");
    }
}

impl Seen {
    /// Whether the input fits what is known, and if so, what is known then.
    fn take(&mut self, update: &Scheduler, input: Input) -> bool {
        match input {
            Input::Cancel => self.cancelled = true,
            Input::Wake => {}
            Input::Cleared | Input::NotCleared { .. } | Input::Progress { .. } => return false,
            Input::Finished { flow, outcome } => {
                if !self.running.contains(flow)
                    || (outcome == Outcome::Stopped && !self.aborted.contains(flow))
                {
                    return false;
                }
                self.running.remove(flow);
                let once = update.graph().flow(flow).is_some_and(Flow::is_once);
                match outcome {
                    Outcome::Succeeded if once => {}
                    Outcome::Succeeded => {
                        self.durable.insert(flow);
                    }
                    Outcome::Failed { retryable } if !retryable || self.second.contains(flow) => {
                        self.failed.insert(flow);
                    }
                    Outcome::Failed { .. } | Outcome::Stopped => {}
                }
            }
            Input::Persisted { flow } => {
                return self.persisting.remove(flow) && self.durable.insert(flow);
            }
            Input::NotPersisted { flow, .. } => {
                return self.persisting.remove(flow) && self.failed.insert(flow);
            }
        }
        true
    }
}

/// What holds at every moment.
fn check(update: &Scheduler, seen: Seen, permits: usize) {
    let progress = &update.progress;
    assert!(seen.running.len() <= permits, "above the permits");
    assert!(seen.cancelled || progress.occupied == seen.running.len());
    let open = progress.states.iter().filter(|state| !state.is_final()).count();
    assert_eq!(progress.open, open);
    for flow in &progress.untold {
        assert!(matches!(update.state(*flow), Some(FlowState::Persisting | FlowState::Stopping { .. })));
    }
    for flow in
        progress.ready.iter().map(|(_, flow)| flow).chain(progress.sleeping.iter().map(|(_, flow)| flow))
    {
        assert!(matches!(update.state(*flow), Some(FlowState::Queued | FlowState::Waiting { .. })));
    }
    for (flow, _) in update.graph().flows().filter(|(flow, _)| seen.failed.contains(*flow)) {
        assert_eq!(update.state(flow), Some(FlowState::Failed));
        for next in update.graph().successors(flow) {
            let state = update.state(*next).expect("known");
            let held = matches!(state, FlowState::Skipped { .. } | FlowState::Idle);
            assert!(held || (seen.cancelled && state == FlowState::Stopped), "{next:?} is {state:?}");
        }
    }
    for (flow, _) in update.graph().flows() {
        if let Some(FlowState::Skipped { failed }) = update.state(flow) {
            assert!(seen.failed.contains(failed), "skipped for {failed:?}, which has not failed");
        }
    }
}

/// What holds at the end. Without a cancellation the end depends on the outcomes alone, not on their order.
fn check_end(update: &Scheduler, seen: Seen, outcome: UpdateOutcome) {
    assert!(seen.running.len() == 0 && seen.persisting.len() == 0, "done while something runs");
    for id in update.graph().topological_order() {
        let state = update.state(*id).expect("known");
        assert!(state.is_final());
        assert_eq!(state.satisfies_edges(), seen.durable.contains(*id));
        let held = update.graph().predecessors(*id).iter().any(|before| !seen.durable.contains(*before));
        if !seen.cancelled && state != FlowState::Idle {
            assert_eq!(matches!(state, FlowState::Skipped { .. }), held, "{id:?} is {state:?}");
        }
    }
    let complete = update.graph().flows().all(|(id, _)| seen.durable.contains(id));
    assert_eq!(outcome == UpdateOutcome::Completed, complete);
    assert!(outcome != UpdateOutcome::Canceled || seen.cancelled);
}

/// A crash at any moment leaves some `ONCE` flows durably complete, so updates begin
/// with every set of them.
#[test]
fn every_graph_of_three_flows_in_every_interleaving() {
    let mut explorer = Explorer::default();
    let (mut graphs, mut circles) = (0, 0);
    let forward = |edges: usize| [edges % 5, edges / 5 % 5, edges / 25].iter().all(|kind| *kind < 3);
    for edges in 0..125 {
        for once in 0..8 {
            let Ok(graph) = graph(once, edges).map(Arc::new).map_err(|errors| {
                assert!(errors.iter().all(|error| matches!(error, GraphError::Cycle { .. })), "{errors:?}");
            }) else {
                circles += 1;
                continue;
            };
            graphs += 1;
            if !cfg!(slow) && !forward(edges) {
                continue;
            }
            for complete in (0..8).filter(|complete| complete & !once == 0) {
                let history: Vec<_> =
                    (0..3).filter(|place| complete >> place & 1 == 1).map(|place| NAMES[place]).collect();
                for permits in 1..=3 {
                    explorer.explore(&graph, &history, permits);
                }
            }
        }
    }
    let Explorer { states, ends, refused } = explorer;
    println!(
        "{graphs} graphs and {circles} circles built; {states} states, {ends} ends, {refused} inputs refused"
    );
    // Two of the eight ways to direct three edges are circles, with two kinds for each edge.
    assert_eq!((graphs, circles), (8 * (125 - 2 * 8), 8 * 2 * 8));
}
