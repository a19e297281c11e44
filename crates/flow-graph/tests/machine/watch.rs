//! What does a user ask for, and what may happen then?

use std::collections::{BTreeMap, BTreeSet};

use strandline_flow_graph::{
    Action, FlowId, FlowState, Graph, Input, Mode, Outcome, Scheduler, UpdateOutcome, UpdateRequest,
};

use crate::{
    Random,
    shape::{Shape, flow_name, table_name},
};

/// A request, by numbers.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    refresh: BTreeSet<usize>,
    full: BTreeSet<usize>,
    reset: BTreeSet<usize>,
}

impl Asked {
    pub(crate) fn at_random(shape: &Shape, random: &mut Random<'_>) -> Self {
        let mut asked = Self::default();
        if random.choose(3) == 0 {
            return asked;
        }
        for table in shape.tables() {
            match random.choose(6) {
                4 => drop(asked.refresh.insert(table)),
                5 => drop(asked.full.insert(table)),
                _ => {}
            }
        }
        asked.reset.extend((0..shape.flows()).filter(|_| random.choose(8) == 7));
        asked
    }

    pub(crate) fn request(&self) -> UpdateRequest {
        UpdateRequest::refresh(self.refresh.iter().map(|table| table_name(*table)))
            .with_full_refresh(self.full.iter().map(|table| table_name(*table)))
            .with_checkpoint_reset(self.reset.iter().map(|flow| flow_name(*flow)))
    }

    /// The flows whose completion and checkpoint are cleared.
    pub(crate) fn cleared(&self, shape: &Shape) -> BTreeSet<String> {
        let cleared = |flow: &usize| self.full.contains(&shape.table(*flow)) || self.reset.contains(flow);
        (0..shape.flows()).filter(cleared).map(flow_name).collect()
    }

    fn excluded(&self, shape: &Shape) -> BTreeSet<String> {
        let all = self.refresh.is_empty() && self.full.is_empty();
        let reset: BTreeSet<_> = self.reset.iter().map(|flow| shape.table(*flow)).collect();
        let takes_part = |flow: &usize| {
            let table = shape.table(*flow);
            all || [&self.refresh, &self.full, &reset].iter().any(|tables| tables.contains(&table))
        };
        (0..shape.flows()).filter(|flow| !takes_part(flow)).map(flow_name).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clear {
    /// Not asked for, or not yet.
    No,
    Asked,
    Yes,
    Failed,
}

/// What is known of one update.
pub(crate) struct Watch<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) graph: &'a Graph,
    pub(crate) permits: usize,
    pub(crate) retries: Option<u32>,
    pub(crate) to_clear: BTreeSet<String>,
    pub(crate) clear: Clear,
    excluded: BTreeSet<String>,
    pub(crate) running: BTreeMap<FlowId, u32>,
    pub(crate) live: BTreeSet<FlowId>,
    pub(crate) persisting: BTreeSet<FlowId>,
    pub(crate) told: BTreeSet<FlowId>,
    started: BTreeSet<String>,
    caught_up: BTreeSet<String>,
    succeeded: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// Attempts since the flow began or had caught up.
    attempts: BTreeMap<FlowId, u32>,
    pub(crate) cancelled: bool,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(shape: &'a Shape, graph: &'a Graph, asked: &Asked) -> Self {
        Self {
            shape,
            graph,
            permits: 1,
            retries: None,
            to_clear: asked.cleared(shape),
            clear: Clear::No,
            excluded: asked.excluded(shape),
            running: BTreeMap::new(),
            live: BTreeSet::new(),
            persisting: BTreeSet::new(),
            told: BTreeSet::new(),
            started: BTreeSet::new(),
            caught_up: BTreeSet::new(),
            succeeded: BTreeSet::new(),
            failed: BTreeSet::new(),
            attempts: BTreeMap::new(),
            cancelled: false,
        }
    }

    pub(crate) fn name(&self, flow: FlowId) -> String {
        self.graph.flow(flow).expect("known").name().to_owned()
    }

    pub(crate) fn is_once(&self, name: &str) -> bool {
        (0..self.shape.flows()).any(|flow| flow_name(flow) == name && self.shape.once[flow])
    }

    /// How often a flow is tried.
    fn tries(&self) -> u32 {
        match (self.retries, self.shape.mode) {
            (Some(retries), _) => retries + 1,
            (None, Mode::Triggered) => 3,
            (None, Mode::Continuous) => u32::MAX,
        }
    }

    fn is_done(&self, name: &str, durable: &BTreeSet<String>) -> bool {
        durable.contains(name) || self.succeeded.contains(name)
    }

    /// Whether that flow, of which another one is in wait, is no reason to wait any longer.
    fn lets_go(&self, first: &str, by_data: bool, durable: &BTreeSet<String>) -> bool {
        let left_out = self.excluded.contains(first) && (by_data || !self.is_once(first));
        self.is_done(first, durable) || left_out || (by_data && self.caught_up.contains(first))
    }

    fn is_free(&self, name: &str, durable: &BTreeSet<String>) -> bool {
        self.shape.before(name).iter().all(|(first, by_data)| self.lets_go(first, *by_data, durable))
    }

    /// What must hold of an action; notes it.
    pub(crate) fn obey(&mut self, action: Action, durable: &BTreeSet<String>) {
        assert!(self.clear != Clear::Asked, "nothing is done until the answer is there: {action:?}");
        let clears = !self.to_clear.is_empty();
        match action {
            Action::Clear => {
                assert!(clears && self.clear == Clear::No && !self.cancelled && self.started.is_empty());
                self.clear = Clear::Asked;
            }
            Action::Launch { flow, attempt } => {
                let name = self.name(flow);
                assert!(!clears || self.clear == Clear::Yes, "{name} started before everything is cleared");
                assert!(self.is_free(&name, durable), "{name} started too early");
                assert!(!self.is_done(&name, durable), "{name} runs although it is complete");
                assert!(!self.cancelled && !self.excluded.contains(&name) && !self.failed.contains(&name));
                assert!(self.running.insert(flow, attempt).is_none(), "{name} runs twice at once");
                assert!(self.running.len() - self.live.len() <= self.permits);
                let attempts = self.attempts.entry(flow).or_default();
                *attempts += 1;
                assert_eq!(*attempts, attempt);
                assert!(attempt <= self.tries());
                self.started.insert(name);
            }
            Action::Persist { flow } => assert!(self.persisting.insert(flow)),
            Action::Abort { flow } => {
                assert!(self.cancelled && self.running.contains_key(&flow) && self.told.insert(flow));
            }
            Action::Done { .. } => {}
            other => panic!("unknown action {other:?}"),
        }
    }

    /// Whether the input fits; notes it, and what it makes durable, if so.
    pub(crate) fn take(&mut self, input: Input, durable: &mut BTreeSet<String>) -> bool {
        match input {
            Input::Finished { flow, outcome } => {
                let told = self.told.contains(&flow);
                if !self.running.contains_key(&flow) || (outcome == Outcome::Stopped && !told) {
                    return false;
                }
                let (name, attempt) = (self.name(flow), self.running.remove(&flow).expect("it runs"));
                // Once it has caught up, a flow fails as in its first attempt.
                let attempt = if self.live.remove(&flow) { 1 } else { attempt };
                self.attempts.insert(flow, attempt);
                match outcome {
                    Outcome::Succeeded if !self.is_once(&name) => assert!(self.succeeded.insert(name)),
                    Outcome::Failed { retryable } if !retryable || attempt >= self.tries() => {
                        self.failed.insert(name);
                    }
                    Outcome::Succeeded | Outcome::Failed { .. } | Outcome::Stopped => {}
                }
                true
            }
            Input::Progress { flow } => {
                let name = self.name(flow);
                let fits = self.shape.mode == Mode::Continuous && !self.is_once(&name);
                if !fits || !self.running.contains_key(&flow) {
                    return false;
                }
                if !self.cancelled {
                    self.live.insert(flow);
                    self.caught_up.insert(name);
                }
                true
            }
            Input::Persisted { flow } => {
                let name = self.name(flow);
                self.persisting.remove(&flow) && durable.insert(name)
            }
            Input::NotPersisted { flow, .. } => {
                self.persisting.remove(&flow) && self.failed.insert(self.name(flow))
            }
            Input::Cleared | Input::NotCleared { .. } if self.clear != Clear::Asked => false,
            Input::Cleared => {
                durable.retain(|name| !self.to_clear.contains(name));
                self.clear = Clear::Yes;
                true
            }
            Input::NotCleared { .. } => {
                self.clear = Clear::Failed;
                true
            }
            Input::Cancel => {
                self.cancelled = true;
                true
            }
            Input::Wake => true,
            other => panic!("unknown input {other:?}"),
        }
    }

    pub(crate) fn check_end(&self, update: &Scheduler, outcome: UpdateOutcome, durable: &BTreeSet<String>) {
        assert!(self.running.is_empty() && self.persisting.is_empty());
        let mut all_well = self.clear != Clear::Failed;
        for (id, _) in self.graph.flows() {
            let (name, state) = (self.name(id), update.state(id).expect("known"));
            assert!(state.is_final(), "{name} ends as {state:?}");
            let started = self.started.contains(&name);
            let to_do = self.to_clear.contains(&name) && self.clear != Clear::Yes;
            let expected = match state {
                FlowState::Excluded => self.excluded.contains(&name),
                FlowState::Idle => durable.contains(&name) && !started && !to_do,
                FlowState::Completed => started && self.is_done(&name, durable),
                FlowState::Failed => self.failed.contains(&name),
                FlowState::Skipped { failed } => {
                    let first = self.name(failed);
                    let incomplete = self.excluded.contains(&first) && !durable.contains(&first);
                    !started && (self.failed.contains(&first) || incomplete)
                }
                FlowState::Stopped => self.cancelled,
                FlowState::NotCleared => self.clear == Clear::Failed && self.started.is_empty(),
                FlowState::Queued
                | FlowState::Running { .. }
                | FlowState::Live
                | FlowState::Waiting { .. }
                | FlowState::Stopping { .. }
                | FlowState::Persisting => false,
                other => panic!("unknown state {other:?}"),
            };
            assert!(expected, "{name} ends as {state:?}");
            // What could have started has, unless nothing more was to start.
            let held_up = self.cancelled || self.clear == Clear::Failed;
            let lost = self.shape.mode == Mode::Continuous && matches!(state, FlowState::Skipped { .. });
            let passive = matches!(state, FlowState::Excluded | FlowState::Idle);
            assert!(
                started || passive || held_up || lost || !self.is_free(&name, durable),
                "{name} never started"
            );
            all_well &= passive || state == FlowState::Completed;
        }
        assert_eq!(outcome == UpdateOutcome::Completed, all_well);
        assert!(outcome != UpdateOutcome::Canceled || self.cancelled);
    }
}
