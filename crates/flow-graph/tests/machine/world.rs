//! Updates of one pipeline, one after the other, with crashes between them.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use strandline_flow_graph::{
    Action, Completions, FlowId, FlowState, Graph, Input, Mode, Outcome, Scheduler, Settings, Timestamp,
    UpdateOutcome,
};

use crate::{
    Random,
    shape::Shape,
    watch::{Asked, Clear, Watch},
};

pub(crate) struct World<'a> {
    shape: &'a Shape,
    graph: Arc<Graph>,
    permits: usize,
    retries: Option<u32>,
    /// Names of `ONCE` flows whose completion is durable: what survives a crash.
    pub(crate) durable: BTreeSet<String>,
}

/// How an update ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Crashed,
    /// Every flow is complete, or was still going on without an error when it was told to stop.
    Well,
    NotWell,
}

impl<'a> World<'a> {
    pub(crate) fn new(shape: &'a Shape, permits: usize, retries: Option<u32>) -> Self {
        let graph = Arc::new(shape.graph());
        Self { shape, graph, permits, retries, durable: BTreeSet::new() }
    }

    fn settings(&self) -> Settings {
        let settings = Settings::default()
            .with_permits(NonZeroUsize::new(self.permits).expect("positive"))
            .with_backoff(Duration::from_millis(3), Duration::from_millis(10));
        match self.retries {
            Some(retries) => settings.with_max_flow_retry_attempts(retries),
            None => settings,
        }
    }

    pub(crate) fn update(&mut self, asked: &Asked, random: &mut Random<'_>, smooth: bool) -> End {
        let graph = Arc::clone(&self.graph);
        let request = asked.request().check(&graph).expect("known names");
        let history: Completions = self.durable.iter().cloned().collect();
        let mut update = Scheduler::start(Arc::clone(&graph), &request, &history, self.settings());
        let mut watch = Watch::new(self.shape, &graph, asked);
        (watch.permits, watch.retries) = (self.permits, self.retries);
        let mut now = Timestamp(0);
        for step in 0..10_000 {
            // Take an action or not: both orders must work, as long as actions are taken at last.
            if (smooth || random.choose(3) != 2)
                && let Some(action) = update.next_action()
            {
                watch.obey(action, &self.durable);
                if let Action::Done { outcome } = action {
                    watch.check_end(&update, outcome, &self.durable);
                    assert_eq!(update.next_action(), None, "nothing comes after the end");
                    return end(&update, outcome, &watch);
                }
                continue;
            }
            if !smooth && random.choose(40) == 39 {
                self.crash(&watch, random);
                return End::Crashed;
            }
            let input = if smooth { smooth_input(&watch) } else { rough_input(&watch, random, step > 400) };
            if input == Input::Wake {
                now = update.next_deadline().unwrap_or(now);
            }
            self.report(&mut update, &mut watch, now, input);
        }
        panic!("the update does not end: {update:?}");
    }

    fn report(&mut self, update: &mut Scheduler, watch: &mut Watch<'_>, now: Timestamp, input: Input) {
        let states = |update: &Scheduler| -> Vec<Option<FlowState>> {
            watch.graph.flows().map(|(flow, _)| update.state(flow)).collect()
        };
        let before = states(update);
        let result = update.handle(now, input);
        let after = states(update);
        assert_eq!(result.is_ok(), watch.take(input, &mut self.durable), "{input:?} {result:?} {before:?}");
        assert!(result.is_ok() || before == after, "a refused input changes nothing");
    }

    /// Of what was under way, any part may have become durable. What is to be cleared is recorded first and finished
    /// before anything else happens, so it is cleared as a whole or not at all.
    fn crash(&mut self, watch: &Watch<'_>, random: &mut Random<'_>) {
        for flow in &watch.persisting {
            if random.choose(2) == 1 {
                self.durable.insert(watch.name(*flow));
            }
        }
        if matches!(watch.clear, Clear::Asked | Clear::Failed) && random.choose(2) == 1 {
            self.durable.retain(|name| !watch.to_clear.contains(name));
        }
    }
}

fn end(update: &Scheduler, outcome: UpdateOutcome, watch: &Watch<'_>) -> End {
    let well = |(flow, _): (FlowId, _)| {
        let state = update.state(flow).expect("known");
        matches!(state, FlowState::Completed | FlowState::Idle)
            || (state == FlowState::Stopped && update.frees_dependents(flow))
    };
    match watch.shape.mode {
        _ if outcome == UpdateOutcome::Completed => End::Well,
        Mode::Continuous if watch.graph.flows().all(well) => End::Well,
        Mode::Triggered | Mode::Continuous => End::NotWell,
    }
}

/// What happens when nothing goes wrong.
fn smooth_input(watch: &Watch<'_>) -> Input {
    let busy = watch.running.keys().find(|flow| !watch.live.contains(flow));
    if watch.clear == Clear::Asked {
        Input::Cleared
    } else if let Some(flow) = watch.persisting.first() {
        Input::Persisted { flow: *flow }
    } else if let Some(flow) = watch.told.iter().find(|flow| watch.running.contains_key(flow)) {
        Input::Finished { flow: *flow, outcome: Outcome::Stopped }
    } else if let Some(flow) = busy {
        if watch.shape.mode == Mode::Triggered || watch.is_once(&watch.name(*flow)) {
            Input::Finished { flow: *flow, outcome: Outcome::Succeeded }
        } else {
            Input::Progress { flow: *flow }
        }
    } else if watch.live.is_empty() {
        Input::Wake
    } else {
        Input::Cancel
    }
}

/// One input: fitting or not, as chance will have it; a cancellation if there have been enough.
fn rough_input(watch: &Watch<'_>, random: &mut Random<'_>, enough: bool) -> Input {
    let flows: Vec<FlowId> = watch.graph.flows().map(|(flow, _)| flow).collect();
    let pick = |set: &[FlowId], random: &mut Random<'_>| {
        let open = if set.is_empty() { &flows } else { set };
        open[random.choose(open.len())]
    };
    let running: Vec<_> = watch.running.keys().copied().collect();
    let persisting: Vec<_> = watch.persisting.iter().copied().collect();
    if enough && !watch.cancelled {
        return Input::Cancel;
    }
    if enough {
        return smooth_input(watch);
    }
    let failed = |retryable| Outcome::Failed { retryable };
    let outcomes = [Outcome::Succeeded, failed(true), failed(false), Outcome::Stopped];
    match random.choose(9) {
        _ if watch.clear == Clear::Asked && random.choose(2) == 0 => Input::Cleared,
        0 | 1 if !running.is_empty() || persisting.is_empty() => {
            Input::Finished { flow: pick(&running, random), outcome: outcomes[random.choose(4)] }
        }
        0..=2 => Input::Persisted { flow: pick(&persisting, random) },
        3 => Input::NotPersisted { flow: pick(&persisting, random), retryable: random.choose(2) == 1 },
        4 => Input::Progress { flow: pick(&running, random) },
        // Anything, from anyone.
        5 => Input::Finished { flow: flows[random.choose(flows.len())], outcome: Outcome::Stopped },
        6 if random.choose(8) == 7 => Input::Cancel,
        7 if random.choose(4) == 3 => Input::NotCleared { retryable: true },
        _ => Input::Wake,
    }
}
