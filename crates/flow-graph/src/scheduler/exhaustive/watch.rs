//! What must hold, as far as an observer can tell who sees actions and inputs only?

use super::*;

/// A set of flows, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Set(pub(super) u8);

impl Set {
    pub(super) fn of(flows: impl IntoIterator<Item = FlowId>) -> Self {
        flows.into_iter().fold(Self::default(), |set, flow| Self(set.0 | 1 << flow.0))
    }

    pub(super) fn contains(self, flow: FlowId) -> bool {
        self.0 >> flow.0 & 1 == 1
    }

    /// Whether it is new.
    pub(super) fn insert(&mut self, flow: FlowId) -> bool {
        let new = !self.contains(flow);
        self.0 |= 1 << flow.0;
        new
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, flow: FlowId) -> bool {
        let old = self.contains(flow);
        self.0 &= !(1 << flow.0);
        old
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Every part of it, the empty one and itself included.
    pub(super) fn parts(self) -> impl Iterator<Item = Self> {
        (0..=self.0).filter(move |part| part & !self.0 == 0).map(Self)
    }
}

/// How far the clearing of an update is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Cleared {
    /// It is not asked for, and may never be.
    #[default]
    No,
    Asked,
    Yes,
    Failed,
}

/// What an observer knows of one update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Seen {
    /// `ONCE` flows whose completion is durable.
    pub(super) complete: Set,
    /// Flows whose completion and checkpoint the request clears.
    pub(super) to_clear: Set,
    pub(super) clears: bool,
    pub(super) cleared: Cleared,
    /// Flows that the request leaves out.
    pub(super) excluded: Set,
    pub(super) started: Set,
    pub(super) running: Set,
    /// Other flows that ended well in this update.
    pub(super) succeeded: Set,
    pub(super) caught_up: Set,
    pub(super) live: Set,
    pub(super) persisting: Set,
    pub(super) aborted: Set,
    /// Flows that have failed once since they began or had caught up, and run again or will.
    pub(super) second: Set,
    pub(super) failed: Set,
    pub(super) failed_retryably: bool,
    pub(super) cancelled: bool,
}

impl Seen {
    /// Whether an edge of that kind from that flow is no reason to wait.
    fn frees(&self, from: FlowId, kind: &EdgeKind, graph: &Graph) -> bool {
        let once = graph.flow(from).is_some_and(Flow::is_once);
        let incomplete = once && !self.complete.contains(from);
        let (done, excluded) =
            (self.complete.contains(from) || self.succeeded.contains(from), self.excluded.contains(from));
        match kind {
            EdgeKind::Order => done || (excluded && !incomplete),
            EdgeKind::Data { .. } => done || excluded || self.caught_up.contains(from),
        }
    }

    pub(super) fn is_free(&self, flow: FlowId, graph: &Graph) -> bool {
        graph
            .edges()
            .iter()
            .filter(|edge| edge.to == flow)
            .all(|edge| self.frees(edge.from, &edge.kind, graph))
    }

    /// What must hold of an action; notes it.
    pub(super) fn obey(&mut self, action: Action, update: &Scheduler) {
        let asked = self.cleared == Cleared::Asked;
        match action {
            Action::Clear => {
                assert!(
                    self.clears && self.cleared == Cleared::No && !self.cancelled && self.started.is_empty()
                );
                self.cleared = Cleared::Asked;
            }
            Action::Launch { flow, attempt } => {
                assert!(
                    !self.clears || self.cleared == Cleared::Yes,
                    "launched before everything is cleared"
                );
                assert!(self.is_free(flow, update.graph()), "launched before what comes first");
                assert!(
                    !self.complete.contains(flow) && !self.succeeded.contains(flow),
                    "a complete flow runs again"
                );
                assert!(!self.cancelled && !self.failed.contains(flow) && !self.excluded.contains(flow));
                assert!(self.running.insert(flow), "launched twice at once");
                assert_eq!(attempt, 1 + u32::from(self.second.contains(flow)));
                self.started.insert(flow);
            }
            Action::Persist { flow } => {
                assert!(!self.complete.contains(flow) && self.persisting.insert(flow), "persisted twice");
            }
            Action::Abort { flow } => {
                assert!(self.cancelled && self.running.contains(flow) && self.aborted.insert(flow));
            }
            Action::Done { outcome } => self.check_end(update, outcome),
        }
        assert!(!asked, "nothing is done until the answer is there: {action:?}");
    }

    /// Whether an input fits what is known; notes it if so.
    pub(super) fn take(&mut self, input: Input, update: &Scheduler) -> bool {
        let graph = update.graph();
        let once = |flow| graph.flow(flow).is_some_and(Flow::is_once);
        match input {
            Input::Cancel => self.cancelled = true,
            Input::Wake => {}
            Input::Cleared if self.cleared == Cleared::Asked => {
                self.cleared = Cleared::Yes;
                self.complete = self.complete.without(self.to_clear);
            }
            Input::NotCleared { retryable } if self.cleared == Cleared::Asked => {
                self.cleared = Cleared::Failed;
                self.failed_retryably |= retryable;
            }
            Input::Progress { flow } => {
                if graph.mode() == Mode::Triggered || once(flow) || !self.running.contains(flow) {
                    return false;
                }
                // One that is told to stop has no say any more.
                if !self.cancelled {
                    self.caught_up.insert(flow);
                    self.live.insert(flow);
                    self.second.remove(flow);
                }
            }
            Input::Finished { flow, outcome } => {
                let told = outcome != Outcome::Stopped || self.aborted.contains(flow);
                if !told || !self.running.remove(flow) {
                    return false;
                }
                self.live.remove(flow);
                match outcome {
                    Outcome::Succeeded if !once(flow) => assert!(self.succeeded.insert(flow)),
                    Outcome::Failed { retryable } if !retryable || self.second.contains(flow) => {
                        self.failed.insert(flow);
                        self.failed_retryably |= retryable;
                    }
                    Outcome::Failed { .. } => assert!(self.second.insert(flow)),
                    Outcome::Succeeded | Outcome::Stopped => {}
                }
            }
            Input::Persisted { flow } => return self.persisting.remove(flow) && self.complete.insert(flow),
            Input::NotPersisted { flow, retryable } => {
                if !self.persisting.remove(flow) {
                    return false;
                }
                self.failed_retryably |= retryable;
                self.failed.insert(flow);
            }
            Input::Cleared | Input::NotCleared { .. } => return false,
        }
        true
    }

    /// What holds at every moment.
    pub(super) fn check(&self, update: &Scheduler, permits: usize) {
        let (progress, graph) = (&update.progress, update.graph());
        assert!(self.cancelled || self.running.without(self.live).len() <= permits, "above the permits");
        assert_eq!(update.failed_retryably(), self.failed_retryably && !self.cancelled);
        assert_eq!(progress.open, progress.states.iter().filter(|state| !state.is_final()).count());
        for flow in &progress.untold {
            assert!(matches!(update.state(*flow), Some(FlowState::Persisting | FlowState::Stopping { .. })));
        }
        let sleeping = progress.sleeping.iter().map(|(_, flow)| flow);
        for flow in progress.ready.iter().map(|(_, flow)| flow).chain(sleeping) {
            assert!(matches!(update.state(*flow), Some(FlowState::Queued | FlowState::Waiting { .. })));
        }
        assert_eq!(progress.occupied, progress.states.iter().filter(|state| state.holds_permit()).count());
        for (flow, _) in graph.flows() {
            let state = update.state(flow).expect("known");
            assert_eq!(state == FlowState::Failed, self.failed.contains(flow));
            assert_eq!(state == FlowState::Live, self.live.contains(flow) && !self.cancelled);
            assert_eq!(state.is_running(), self.running.contains(flow));
            assert_eq!(state == FlowState::Excluded, self.excluded.contains(flow));
            if let FlowState::Skipped { failed } = state {
                assert!(
                    !self.started.contains(flow) && self.holds_back(failed, update),
                    "{flow:?} for {failed:?}"
                );
            }
        }
        for edge in graph.edges().iter().filter(|edge| self.failed.contains(edge.from)) {
            let state = update.state(edge.to).expect("known");
            assert!(self.started.contains(edge.to) || state.is_final(), "{state:?} after a failed flow");
        }
    }

    /// Whether a flow is in a way that keeps others from ever starting.
    fn holds_back(&self, flow: FlowId, update: &Scheduler) -> bool {
        let once = update.graph().flow(flow).is_some_and(Flow::is_once);
        let incomplete = once && !self.complete.contains(flow);
        self.failed.contains(flow) || (self.excluded.contains(flow) && incomplete)
    }

    /// What holds at the end. Without a cancellation the end depends on the outcomes alone, not on their order.
    fn check_end(&self, update: &Scheduler, outcome: UpdateOutcome) {
        assert!(self.running.is_empty() && self.persisting.is_empty(), "done while something runs");
        assert!(!self.clears || self.cancelled || self.cleared != Cleared::No, "done without having cleared");
        let (graph, mut all_well) = (update.graph(), self.cleared != Cleared::Failed);
        for id in graph.topological_order() {
            let (state, complete) = (update.state(*id).expect("known"), self.complete.contains(*id));
            assert!(state.is_final());
            let idle = complete && !self.started.contains(*id);
            match state {
                FlowState::Excluded => continue,
                FlowState::Idle => assert!(idle),
                FlowState::Completed => assert!(complete || self.succeeded.contains(*id)),
                FlowState::NotCleared => assert!(self.cleared == Cleared::Failed && self.started.is_empty()),
                FlowState::Stopped => assert!(self.cancelled),
                FlowState::Failed => assert!(self.started.contains(*id)),
                FlowState::Skipped { .. } => assert!(
                    graph.mode() == Mode::Continuous || !self.is_free(*id, graph),
                    "{id:?} is skipped without a reason"
                ),
                FlowState::Queued
                | FlowState::Running { .. }
                | FlowState::Live
                | FlowState::Waiting { .. }
                | FlowState::Stopping { .. }
                | FlowState::Persisting => panic!("{id:?} is {state:?}"),
            }
            let well = state.satisfies_edges();
            let needless = idle && self.to_clear.contains(*id) && self.cleared != Cleared::Yes;
            assert!(needless || well == (complete || self.succeeded.contains(*id)), "{id:?} is {state:?}");
            all_well &= well;
        }
        assert_eq!(outcome == UpdateOutcome::Completed, all_well);
        assert!(outcome != UpdateOutcome::Canceled || self.cancelled);
    }
}
