//! Does the scheduler keep its promises on graphs of up to six flows, whatever happens in whatever order?
//!
//! A simple model watches from outside, by actions and inputs alone. It shares no code with the scheduler: it keeps
//! what was written down durably, what runs, and which attempts failed. Updates are cancelled, crash, and begin
//! again with what is durable. [`Random`] turns a list of numbers into choices, so that failures shrink.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, helpers included")]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use strandline_flow_graph::{
    Action, Completions, Dataset, Flow, FlowId, FlowKind, FlowState, Graph, GraphBuilder, Input, Outcome,
    ProtocolError, QueryMode, ResolvedRequest, Scheduler, Settings, Timestamp, UpdateOutcome,
};

/// Flow `n` writes table `n`; its edges lead from flows that come before it in `order`.
#[derive(Debug, Clone)]
struct Shape {
    once: Vec<bool>,
    /// For each pair: 0 to 2 no edge, 3 data, 4 data through a view, 5 order.
    edges: Vec<u8>,
    /// The order of declaration.
    order: Vec<usize>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    (1_usize..=6).prop_flat_map(|flows| {
        let once = prop::collection::vec(any::<bool>(), flows);
        let edges = prop::collection::vec(0_u8..6, flows * flows);
        (once, edges, Just((0..flows).collect::<Vec<_>>()).prop_shuffle())
            .prop_map(|(once, edges, order)| Shape { once, edges, order })
    })
}

/// The graph, and by flow name the names of what must come before it.
fn build(shape: &Shape) -> (Arc<Graph>, BTreeMap<String, BTreeSet<String>>) {
    let (mut builder, mut model) = (GraphBuilder::new(), BTreeMap::new());
    let count = shape.once.len();
    for to in &shape.order {
        let name = format!("f{to}");
        let query = if shape.once[*to] { QueryMode::Batch } else { QueryMode::Streaming };
        let mut flow = Flow::new(&name, FlowKind::Append, query);
        if shape.once[*to] {
            flow = flow.once();
        }
        let mut before = BTreeSet::new();
        for from in 0..*to {
            let first = format!("f{from}");
            flow = match shape.edges[to * count + from] {
                3 => flow.reads([first.clone()]),
                4 => flow.reads([format!("view_{first}")]),
                5 => flow.depends_on([first.clone()]),
                _ => continue,
            };
            before.insert(first);
        }
        builder = builder
            .flow(flow)
            .dataset(Dataset::streaming_table(&name))
            .dataset(Dataset::view(format!("view_{name}")).reads([name.clone()]));
        model.insert(name, before);
    }
    (Arc::new(builder.build().expect("edges lead forward")), model)
}

/// Choices out of a list of numbers; when it is used up, always the first one.
struct Random<'a>(std::slice::Iter<'a, u8>);

impl Random<'_> {
    fn choose(&mut self, options: usize) -> usize {
        self.0.next().map_or(0, |number| usize::from(*number) % options.max(1))
    }
}

struct World {
    graph: Arc<Graph>,
    before: BTreeMap<String, BTreeSet<String>>,
    permits: usize,
    retries: u32,
    /// Names of `ONCE` flows whose completion is durable: what survives a crash.
    durable: BTreeSet<String>,
}

#[derive(Default)]
struct Watch {
    running: BTreeMap<FlowId, u32>,
    persisting: BTreeSet<FlowId>,
    told: BTreeSet<FlowId>,
    succeeded: BTreeSet<String>,
    failed: BTreeSet<String>,
    attempts: BTreeMap<FlowId, u32>,
    cancelled: bool,
}

enum End {
    Crashed,
    Done(UpdateOutcome),
}

impl World {
    fn name(&self, flow: FlowId) -> String {
        self.graph.flow(flow).expect("known").name().to_owned()
    }

    fn update(&mut self, random: &mut Random<'_>, smooth: bool) -> End {
        let settings = Settings::default()
            .with_permits(NonZeroUsize::new(self.permits).expect("positive"))
            .with_max_flow_retry_attempts(self.retries)
            .with_backoff(Duration::from_millis(3), Duration::from_millis(10));
        let history: Completions = self.durable.iter().cloned().collect();
        let request = ResolvedRequest::refresh_all();
        let mut update = Scheduler::start(Arc::clone(&self.graph), &request, &history, settings);
        let mut watch = Watch { succeeded: self.durable.clone(), ..Watch::default() };
        let mut now = Timestamp(0);
        for _ in 0..10_000 {
            // Take an action or not: both orders must work, as long as actions are taken at last.
            if random.choose(3) != 2
                && let Some(action) = update.next_action()
            {
                if let Some(outcome) = self.obey(&update, &mut watch, action) {
                    assert_eq!(update.next_action(), None, "nothing comes after the end");
                    return End::Done(outcome);
                }
                continue;
            }
            if !smooth && random.choose(40) == 39 {
                return End::Crashed;
            }
            self.report(&mut update, &mut watch, &mut now, random, smooth);
        }
        panic!("the update does not end");
    }

    fn obey(&mut self, update: &Scheduler, watch: &mut Watch, action: Action) -> Option<UpdateOutcome> {
        match action {
            Action::Launch { flow, attempt } => {
                let name = self.name(flow);
                assert!(self.before[&name].is_subset(&watch.succeeded), "{name} started too early");
                assert!(!watch.succeeded.contains(&name), "{name} runs although it is complete");
                assert!(!watch.cancelled);
                assert!(watch.running.insert(flow, attempt).is_none(), "{name} runs twice at once");
                assert!(watch.running.len() <= self.permits);
                let attempts = watch.attempts.entry(flow).or_default();
                *attempts += 1;
                assert_eq!(*attempts, attempt);
                assert!(attempt <= 1 + self.retries);
            }
            Action::Persist { flow } => assert!(watch.persisting.insert(flow)),
            Action::Abort { flow } => {
                assert!(watch.cancelled && watch.running.contains_key(&flow) && watch.told.insert(flow));
            }
            Action::Done { outcome } => {
                self.check_end(update, watch, outcome);
                return Some(outcome);
            }
            other => panic!("unknown action {other:?}"),
        }
        None
    }

    /// One input: fitting or not, as chance will have it.
    fn report(
        &mut self,
        update: &mut Scheduler,
        watch: &mut Watch,
        now: &mut Timestamp,
        random: &mut Random<'_>,
        smooth: bool,
    ) {
        let flows: Vec<FlowId> = self.graph.flows().map(|(flow, _)| flow).collect();
        let pick = |set: Vec<FlowId>, random: &mut Random<'_>| {
            let open = if set.is_empty() { &flows } else { &set };
            open[random.choose(open.len())]
        };
        let running: Vec<_> = watch.running.keys().copied().collect();
        let persisting: Vec<_> = watch.persisting.iter().copied().collect();
        let idle = running.is_empty() && persisting.is_empty();
        let input = match random.choose(if smooth { 3 } else { 6 }) {
            _ if idle && update.next_deadline().is_some() => Input::Wake,
            0 if !running.is_empty() || persisting.is_empty() => {
                let outcomes = [
                    Outcome::Succeeded,
                    Outcome::Failed { retryable: true },
                    Outcome::Failed { retryable: false },
                    Outcome::Stopped,
                ];
                let outcome = outcomes[if smooth { 0 } else { random.choose(4) }];
                Input::Finished { flow: pick(running, random), outcome }
            }
            0 | 1 => Input::Persisted { flow: pick(persisting, random) },
            3 => Input::NotPersisted { flow: pick(persisting, random), retryable: false },
            // Anything, from anyone.
            4 => Input::Finished { flow: flows[random.choose(flows.len())], outcome: Outcome::Stopped },
            5 if random.choose(8) == 7 => Input::Cancel,
            _ => Input::Wake,
        };
        if input == Input::Wake {
            *now = update.next_deadline().unwrap_or(*now);
        }
        let states: Vec<_> = flows.iter().map(|flow| update.state(*flow)).collect();
        let result = update.handle(*now, input);
        assert_eq!(result.is_ok(), self.take(watch, input), "{input:?} {result:?} {states:?}");
        if result.is_err() {
            assert_eq!(states, flows.iter().map(|flow| update.state(*flow)).collect::<Vec<_>>());
        }
    }

    /// Whether the input fits; notes it if so.
    fn take(&mut self, watch: &mut Watch, input: Input) -> bool {
        match input {
            Input::Finished { flow, outcome } => {
                let name = self.name(flow);
                let told = watch.told.contains(&flow);
                if !watch.running.contains_key(&flow) || (outcome == Outcome::Stopped && !told) {
                    return false;
                }
                let attempt = watch.running.remove(&flow).expect("it runs");
                let once = self.graph.flow(flow).expect("known").is_once();
                match outcome {
                    Outcome::Succeeded if !once => assert!(watch.succeeded.insert(name)),
                    Outcome::Failed { retryable } if !retryable || attempt > self.retries => {
                        watch.failed.insert(name);
                    }
                    Outcome::Succeeded | Outcome::Failed { .. } | Outcome::Stopped => {}
                }
                true
            }
            Input::Persisted { flow } if watch.persisting.remove(&flow) => {
                let name = self.name(flow);
                assert!(self.durable.insert(name.clone()) && watch.succeeded.insert(name));
                true
            }
            Input::NotPersisted { flow, .. } if watch.persisting.remove(&flow) => {
                watch.failed.insert(self.name(flow))
            }
            Input::Cancel => {
                watch.cancelled = true;
                true
            }
            Input::Wake => true,
            Input::Persisted { .. } | Input::NotPersisted { .. } => false,
            other => panic!("unknown input {other:?}"),
        }
    }

    fn check_end(&self, update: &Scheduler, watch: &Watch, outcome: UpdateOutcome) {
        assert!(watch.running.is_empty() && watch.persisting.is_empty());
        let mut doomed = watch.failed.clone();
        for id in self.graph.topological_order() {
            let (name, state) = (self.name(*id), update.state(*id).expect("known"));
            assert!(state.is_final(), "{name} ends as {state:?}");
            let succeeded = matches!(state, FlowState::Completed | FlowState::Idle);
            assert_eq!(succeeded, watch.succeeded.contains(&name), "{name} ends as {state:?}");
            assert_eq!(state == FlowState::Failed, watch.failed.contains(&name));
            if !succeeded && !self.before[&name].is_disjoint(&doomed) {
                doomed.insert(name.clone());
                let skipped = matches!(state, FlowState::Skipped { failed } if watch.failed.contains(&self.name(failed)));
                assert!(skipped || watch.cancelled, "{name} ends as {state:?}");
            } else {
                assert!(!matches!(state, FlowState::Skipped { .. }), "{name} is skipped without a reason");
            }
            assert!(watch.cancelled || state != FlowState::Stopped);
        }
        let complete = watch.succeeded.len() == self.graph.flows().len();
        assert_eq!(outcome == UpdateOutcome::Completed, complete);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(slow) { 100_000 } else { 2_000 }, failure_persistence: None,
        ..ProptestConfig::default() })]

    /// rough updates with failures, crashes and nonsense, then a smooth one that
    /// must complete everything, and one more in which every `ONCE` flow is idle.
    #[test]
    fn r12_to_r15_updates_keep_their_promises(
        shape in shapes(),
        permits in 1_usize..4,
        retries in 0_u32..3,
        choices in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let (graph, before) = build(&shape);
        let mut world = World { graph, before, permits, retries, durable: BTreeSet::new() };
        let mut random = Random(choices.iter());
        for _ in 0..3 {
            let survived = world.durable.clone();
            match world.update(&mut random, false) {
                End::Crashed | End::Done(_) => {}
            }
            prop_assert!(survived.is_subset(&world.durable), "completions are never lost");
        }
        for _ in 0..2 {
            let end = world.update(&mut random, true);
            prop_assert!(matches!(end, End::Done(UpdateOutcome::Completed)));
        }
        let once = shape.once.iter().filter(|once| **once).count();
        prop_assert_eq!(world.durable.len(), once);
    }

    /// G-26: the topological order has each flow once, after all that it waits for.
    #[test]
    fn g26_edges_and_order_match_the_definitions(shape in shapes()) {
        let (graph, before) = build(&shape);
        let mut seen = BTreeSet::new();
        for id in graph.topological_order() {
            let name = graph.flow(*id).expect("known").name();
            let named: BTreeSet<String> = graph
                .predecessors(*id)
                .iter()
                .map(|id| graph.flow(*id).expect("known").name().to_owned())
                .collect();
            prop_assert_eq!(&named, &before[name]);
            prop_assert!(named.is_subset(&seen));
            prop_assert!(seen.insert(name.to_owned()));
        }
        prop_assert_eq!(seen.len(), before.len());
    }
}

#[test]
fn an_id_of_another_graph_is_refused_by_name_and_never_panics() {
    let (large, _) = build(&Shape { once: vec![false; 3], edges: vec![0; 9], order: vec![0, 1, 2] });
    let (small, _) = build(&Shape { once: vec![false], edges: vec![0], order: vec![0] });
    let foreign = large.flow_id("f2").expect("known");
    let request = ResolvedRequest::refresh_all();
    let mut update =
        Scheduler::start(Arc::clone(&small), &request, &Completions::none(), Settings::default());
    let outcome = Outcome::Succeeded;
    for input in [Input::Finished { flow: foreign, outcome }, Input::Persisted { flow: foreign }] {
        let refused = update.handle(Timestamp(0), input);
        assert_eq!(refused, Err(ProtocolError::UnknownFlow { flow: foreign }));
    }
    assert_eq!((update.state(foreign), small.flow(foreign)), (None, None));
    assert!(small.predecessors(foreign).is_empty() && small.successors(foreign).is_empty());
}
