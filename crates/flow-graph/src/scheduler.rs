//! Which flow may start now?
//!
//! The scheduler of one update. The driver calls [`handle`](Scheduler::handle) with what happened, then takes
//! actions with [`next_action`](Scheduler::next_action) until there is none, then sleeps until something happens or
//! [`next_deadline`](Scheduler::next_deadline) has come.
//!
//! Invariants: a flow is launched only when all its predecessors satisfy their edges, which for a `ONCE` flow means
//! that its completion is durable; none is launched before everything is cleared that the request clears; never more
//! flows run than there are permits; a refused input changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clearing::{ClearEvent, ClearPhase};
use crate::state::FlowEvent;
use crate::{
    Action, Clearing, Completions, EdgeKind, Flow, FlowId, FlowState, Graph, Input, Mode, Outcome,
    ProtocolError, ResolvedRequest, Settings, Timestamp, UpdateOutcome,
};

/// Decides, for one update of a graph, what the driver does next.
#[derive(Debug, Clone)]
pub struct Scheduler {
    graph: Arc<Graph>,
    settings: Settings,
    request: ResolvedRequest,
    clearing: Option<Clearing>,
    progress: Progress,
}

/// Everything that changes in the course of an update.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Progress {
    /// By flow.
    states: Vec<FlowState>,
    clearing: ClearPhase,
    /// Flows that hold back none of those that wait for them.
    freeing: BTreeSet<FlowId>,
    /// By flow: how many of its predecessors do not satisfy their edges yet.
    blocked: Vec<usize>,
    /// Flows that may start as soon as there is a permit, by rank.
    ready: BTreeSet<(usize, FlowId)>,
    /// Flows that wait for their next attempt.
    sleeping: BTreeSet<(Timestamp, FlowId)>,
    /// Flows whose Persist or Abort has not been handed out yet.
    untold: BTreeSet<FlowId>,
    /// How many flows occupy a permit.
    occupied: usize,
    /// How many flows are not in a final state.
    open: usize,
    now: Timestamp,
    /// Whether something failed for good that another attempt of the update may mend.
    failed_retryably: bool,
    cancelled: bool,
    done: bool,
}

impl Scheduler {
    /// Begins an update. `ONCE` flows that `history` calls complete are idle and satisfy their edges, unless the
    /// request clears them; flows that the request leaves out are excluded, and satisfy theirs unless they are
    /// incomplete `ONCE` flows.
    pub fn start(
        graph: impl Into<Arc<Graph>>,
        request: &ResolvedRequest,
        history: &Completions,
        settings: Settings,
    ) -> Self {
        let graph = graph.into();
        let complete = |flow: &Flow| flow.is_once() && history.contains(flow.name()) && !request.clears(flow);
        let states = graph.flows().map(|(_, flow)| {
            if !request.selects(flow.target()) {
                FlowState::Excluded
            } else if complete(flow) {
                FlowState::Idle
            } else {
                FlowState::Queued
            }
        });
        let states: Vec<_> = states.collect();
        let open = states.iter().filter(|state| !state.is_final()).count();
        let clearing = Clearing::of(request, &graph);
        let phase = if clearing.is_some() { ClearPhase::Due } else { ClearPhase::NotNeeded };
        let progress = Progress { states, open, clearing: phase, ..Progress::default() };
        let mut scheduler = Self { graph, settings, request: request.clone(), clearing, progress };
        scheduler.skip_after_incomplete(history);
        scheduler.count_blocked();
        scheduler
    }

    /// Takes note of what happened at `now`. A moment earlier than one seen before counts as that one.
    ///
    /// # Errors
    ///
    /// If the input does not fit the state of its flow; the state, and the time, are then as before.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Result<(), ProtocolError> {
        let now = now.max(self.progress.now);
        match input {
            Input::Finished { flow, outcome } => self.finish(now, flow, outcome)?,
            Input::Persisted { flow } => self.settle(flow, FlowEvent::Persisted)?,
            Input::NotPersisted { flow, retryable } => {
                self.settle(flow, FlowEvent::NotPersisted)?;
                self.progress.failed_retryably |= retryable;
            }
            Input::Progress { flow } => self.catch_up(flow)?,
            Input::Cleared => self.clear(ClearEvent::Cleared)?,
            Input::NotCleared { retryable } => {
                self.clear(ClearEvent::NotCleared)?;
                self.progress.failed_retryably |= retryable;
            }
            Input::Cancel => self.cancel(),
            Input::Wake => {}
        }
        self.progress.now = now;
        self.wake_sleepers();
        Ok(())
    }

    /// What to do next; `None` until something happens. What makes completions durable comes before what starts.
    pub fn next_action(&mut self) -> Option<Action> {
        if let Some(asked) = self.progress.clearing.on(ClearEvent::HandedOut) {
            self.progress.clearing = asked;
            return Some(Action::Clear);
        }
        if !self.progress.clearing.is_over() {
            return None;
        }
        while let Some(flow) = self.progress.untold.pop_first() {
            match self.state(flow) {
                Some(FlowState::Persisting) => return Some(Action::Persist { flow }),
                Some(FlowState::Stopping { .. }) => return Some(Action::Abort { flow }),
                _ => {}
            }
        }
        if self.progress.occupied < self.settings.permits() {
            while let Some((_, flow)) = self.progress.ready.pop_first() {
                if let Some(FlowState::Running { attempt }) = self.apply(flow, FlowEvent::Launched) {
                    return Some(Action::Launch { flow, attempt });
                }
            }
        }
        if self.progress.open == 0 && !self.progress.done {
            self.progress.done = true;
            return Some(Action::Done { outcome: self.outcome() });
        }
        None
    }

    /// When to call [`handle`](Self::handle) with [`Input::Wake`] if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.progress.sleeping.first().map(|(due, _)| *due)
    }

    /// Where a flow stands; `None` for an id of another graph.
    pub fn state(&self, flow: FlowId) -> Option<FlowState> {
        self.progress.states.get(flow.0).copied()
    }

    /// Whether a flow holds back none of those that wait for it: its state says so, or it has caught up once.
    pub fn frees_dependents(&self, flow: FlowId) -> bool {
        self.progress.freeing.contains(&flow)
    }

    /// What this update clears before its first flow starts, if anything.
    pub fn clearing(&self) -> Option<&Clearing> {
        self.clearing.as_ref()
    }

    /// Whether something failed that another attempt of the update may mend, and nobody cancelled it: what
    /// [`UpdateAttempts::after`](crate::UpdateAttempts::after) asks.
    pub fn failed_retryably(&self) -> bool {
        self.progress.failed_retryably && !self.progress.cancelled
    }

    /// What another attempt of this update asks for: the same targets. What has been cleared is not cleared again.
    pub fn request_to_retry(&self) -> ResolvedRequest {
        if self.progress.clearing == ClearPhase::Cleared {
            self.request.without_clearing()
        } else {
            self.request.clone()
        }
    }

    /// Whether [`Action::Done`] has been handed out.
    pub fn is_done(&self) -> bool {
        self.progress.done
    }

    /// The graph of this update.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    fn finish(&mut self, now: Timestamp, flow: FlowId, outcome: Outcome) -> Result<(), ProtocolError> {
        let state = self.known(flow)?;
        let Some(attempt) = state.attempt() else {
            return Err(ProtocolError::NotRunning { flow, state });
        };
        let event = match outcome {
            Outcome::Succeeded => FlowEvent::Succeeded { once: self.is_once(flow) },
            Outcome::Failed { retryable } => {
                let wait = self.settings.wait_after(self.graph.mode(), attempt).filter(|_| retryable);
                FlowEvent::Failed { retry: wait.map(|wait| now.after(wait)) }
            }
            Outcome::Stopped if self.progress.untold.contains(&flow) => {
                return Err(ProtocolError::NotAborted { flow, state });
            }
            Outcome::Stopped => FlowEvent::Aborted,
        };
        let ended = self.apply(flow, event).ok_or(ProtocolError::NotAborted { flow, state })?;
        if let (FlowState::Failed, Outcome::Failed { retryable: true }) = (ended, outcome) {
            self.progress.failed_retryably = true;
        }
        Ok(())
    }

    /// Only a flow that goes on can have caught up; one that ends by itself succeeds.
    fn catch_up(&mut self, flow: FlowId) -> Result<(), ProtocolError> {
        let state = self.known(flow)?;
        if self.graph.mode() == Mode::Triggered || self.is_once(flow) {
            return Err(ProtocolError::NotContinuous { flow, state });
        }
        self.apply(flow, FlowEvent::CaughtUp).map(|_| ()).ok_or(ProtocolError::NotRunning { flow, state })
    }

    /// The answer to a Clear that was handed out.
    fn clear(&mut self, event: ClearEvent) -> Result<(), ProtocolError> {
        let phase = self.progress.clearing.on(event).ok_or(ProtocolError::NotClearing)?;
        self.progress.clearing = phase;
        if phase == ClearPhase::NotCleared {
            for place in 0..self.progress.states.len() {
                self.apply(FlowId(place), FlowEvent::NotCleared);
            }
            self.progress.ready.clear();
        }
        Ok(())
    }

    /// The answer to a Persist that was handed out.
    fn settle(&mut self, flow: FlowId, event: FlowEvent) -> Result<(), ProtocolError> {
        let state = self.known(flow)?;
        let refused = ProtocolError::NotPersisting { flow, state };
        if self.progress.untold.contains(&flow) {
            return Err(refused);
        }
        self.apply(flow, event).map(|_| ()).ok_or(refused)
    }

    fn cancel(&mut self) {
        self.progress.cancelled = true;
        self.progress.clearing =
            self.progress.clearing.on(ClearEvent::Cancelled).unwrap_or(self.progress.clearing);
        for place in 0..self.progress.states.len() {
            self.apply(FlowId(place), FlowEvent::Cancelled);
        }
        self.progress.ready.clear();
        self.progress.sleeping.clear();
    }

    fn is_once(&self, flow: FlowId) -> bool {
        self.graph.flow(flow).is_some_and(Flow::is_once)
    }

    fn known(&self, flow: FlowId) -> Result<FlowState, ProtocolError> {
        self.state(flow).ok_or(ProtocolError::UnknownFlow { flow })
    }

    /// Moves one flow on, and with it all that follows from the move. `None`, and no change, if it cannot move so.
    fn apply(&mut self, flow: FlowId, event: FlowEvent) -> Option<FlowState> {
        let progress = &mut self.progress;
        let state = progress.states.get_mut(flow.0)?;
        let (old, new) = (*state, state.on(event)?);
        *state = new;
        if old == new {
            return Some(new);
        }
        progress.occupied = progress
            .occupied
            .saturating_add(usize::from(new.holds_permit()))
            .saturating_sub(usize::from(old.holds_permit()));
        progress.open = progress.open.saturating_sub(usize::from(new.is_final()));
        progress.untold.remove(&flow);
        match new {
            FlowState::Persisting | FlowState::Stopping { .. } => {
                progress.untold.insert(flow);
            }
            FlowState::Waiting { due, .. } => {
                progress.sleeping.insert((due, flow));
            }
            FlowState::Live | FlowState::Completed => self.free_dependents(flow),
            FlowState::Failed => self.skip_after(flow, flow),
            FlowState::Skipped { .. } => {
                // After a flow that had caught up it may have been about to start.
                progress.ready.remove(&(self.graph.rank(flow), flow));
            }
            FlowState::Queued
            | FlowState::Running { .. }
            | FlowState::Stopped
            | FlowState::Idle
            | FlowState::Excluded
            | FlowState::NotCleared => {}
        }
        Some(new)
    }

    /// One predecessor less for each flow that waits for this one, the first time.
    fn free_dependents(&mut self, flow: FlowId) {
        let progress = &mut self.progress;
        if !progress.freeing.insert(flow) {
            return;
        }
        for next in self.graph.successors(flow) {
            let Some(blocked) = progress.blocked.get_mut(next.0) else { continue };
            *blocked = blocked.saturating_sub(1);
            let free = *blocked == 0 && progress.states.get(next.0) == Some(&FlowState::Queued);
            if free {
                progress.ready.insert((self.graph.rank(*next), *next));
            }
        }
    }

    /// No flow that waits for `flow`, directly or not, will start; `failed` is why.
    fn skip_after(&mut self, flow: FlowId, failed: FlowId) {
        let graph = Arc::clone(&self.graph);
        let mut open = graph.successors(flow).to_vec();
        while let Some(next) = open.pop() {
            if self.apply(next, FlowEvent::PredecessorFailed { failed }).is_some() {
                open.extend(graph.successors(next));
            }
        }
    }

    /// an excluded `ONCE` flow that is not complete holds back what depends on it. A data edge does not.
    fn skip_after_incomplete(&mut self, history: &Completions) {
        let graph = Arc::clone(&self.graph);
        for edge in graph.edges().iter().filter(|edge| edge.kind == EdgeKind::Order) {
            let excluded = self.state(edge.from) == Some(FlowState::Excluded);
            let incomplete =
                graph.flow(edge.from).is_some_and(|flow| flow.is_once() && !history.contains(flow.name()));
            if excluded && incomplete {
                let event = FlowEvent::PredecessorFailed { failed: edge.from };
                if self.apply(edge.to, event).is_some() {
                    self.skip_after(edge.to, edge.from);
                }
            }
        }
    }

    fn count_blocked(&mut self) {
        let satisfied = |flow: &FlowId| self.state(*flow).is_some_and(FlowState::satisfies_edges);
        let open = |flow| self.graph.predecessors(flow).iter().filter(|other| !satisfied(other)).count();
        let freeing = self.graph.flows().map(|(flow, _)| flow).filter(satisfied).collect();
        let blocked = self.graph.flows().map(|(flow, _)| open(flow)).collect();
        self.progress.freeing = freeing;
        self.progress.blocked = blocked;
        for (flow, _) in self.graph.flows() {
            let free = self.progress.blocked.get(flow.0) == Some(&0)
                && self.progress.states.get(flow.0) == Some(&FlowState::Queued);
            if free {
                self.progress.ready.insert((self.graph.rank(flow), flow));
            }
        }
    }

    fn wake_sleepers(&mut self) {
        let progress = &mut self.progress;
        while let Some((due, flow)) =
            progress.sleeping.first().copied().filter(|(due, _)| *due <= progress.now)
        {
            progress.sleeping.remove(&(due, flow));
            progress.ready.insert((self.graph.rank(flow), flow));
        }
    }

    fn outcome(&self) -> UpdateOutcome {
        let any = |wanted: fn(&FlowState) -> bool| self.progress.states.iter().any(wanted);
        if any(|state| matches!(state, FlowState::Stopped)) {
            UpdateOutcome::Canceled
        } else if self.progress.clearing == ClearPhase::NotCleared
            || any(|state| matches!(state, FlowState::Failed | FlowState::Skipped { .. }))
        {
            UpdateOutcome::Failed
        } else {
            UpdateOutcome::Completed
        }
    }
}

#[cfg(test)]
mod exhaustive;
#[cfg(test)]
mod tests;
