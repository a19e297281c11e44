//! Does the scheduler keep its promises on graphs of up to six flows, whatever happens in whatever order?
//!
//! A simple model watches from outside, by actions and inputs alone (`watch`). It shares no code with the scheduler: it
//! keeps what was written down durably, what runs, and which attempts failed. Updates ask for refreshes, full refreshes
//! and resets, are cancelled, crash, and begin again with what is durable (`world`). [`Random`] turns a list of numbers
//! into choices, so that failures shrink.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, helpers included")]

mod shape;
mod watch;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use strandline_flow_graph::{
    Completions, Input, Mode, Outcome, ProtocolError, ResolvedRequest, Scheduler, Settings, Timestamp,
};

use shape::{Shape, shapes};
use watch::Asked;
use world::{End, World};

/// Choices out of a list of numbers; when it is used up, always the first one.
struct Random<'a>(std::slice::Iter<'a, u8>);

impl Random<'_> {
    fn choose(&mut self, options: usize) -> usize {
        self.0.next().map_or(0, |number| usize::from(*number) % options.max(1))
    }
}

const CASES: u32 = if cfg!(slow) { 100_000 } else { 2_000 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// rough updates with requests, failures, crashes and nonsense, then a
    /// smooth one that must complete everything, and one more in which every `ONCE` flow is idle.
    #[test]
    fn r01_r04_r06_to_r09_r12_to_r15_updates_keep_their_promises(
        shape in shapes(),
        permits in 1_usize..4,
        retries in prop::option::of(0_u32..3),
        choices in prop::collection::vec(any::<u8>(), 0..500),
    ) {
        let mut world = World::new(&shape, permits, retries);
        let mut random = Random(choices.iter());
        for _ in 0..4 {
            let asked = Asked::at_random(&shape, &mut random);
            let (survived, cleared) = (world.durable.clone(), asked.cleared(&shape));
            world.update(&asked, &mut random, false);
            let lost: BTreeSet<_> = survived.difference(&world.durable).cloned().collect();
            prop_assert!(lost.is_subset(&cleared), "completions are lost by nothing but a request: {lost:?}");
        }
        for _ in 0..2 {
            let end = world.update(&Asked::default(), &mut random, true);
            prop_assert!(end == End::Well);
        }
        let once: BTreeSet<_> = (0..shape.flows()).filter(|n| shape.once[*n]).map(shape::flow_name).collect();
        prop_assert_eq!(world.durable, once);
    }

    /// G-26: the topological order has each flow once, after all that it waits for.
    #[test]
    fn g26_edges_and_order_match_the_definitions(shape in shapes()) {
        let graph = shape.graph();
        let mut seen = BTreeSet::new();
        for id in graph.topological_order() {
            let name = graph.flow(*id).expect("known").name().to_owned();
            let named: BTreeSet<String> = graph
                .predecessors(*id)
                .iter()
                .map(|id| graph.flow(*id).expect("known").name().to_owned())
                .collect();
            let expected: BTreeSet<_> = shape.before(&name).into_iter().map(|(first, _)| first).collect();
            prop_assert_eq!(&named, &expected);
            prop_assert!(named.is_subset(&seen));
            prop_assert!(seen.insert(name));
        }
        prop_assert_eq!(seen.len(), shape.flows());
    }
}

#[test]
fn an_id_of_another_graph_is_refused_by_name_and_never_panics() {
    let (large, small) = (Shape::apart(3).graph(), Arc::new(Shape::apart(1).graph()));
    let foreign = large.flow_id("f2").expect("known");
    let request = ResolvedRequest::refresh_all();
    for mode in [Mode::Triggered, Mode::Continuous] {
        let small = Arc::new(Shape { mode, ..Shape::apart(1) }.graph());
        let mut update = Scheduler::start(small, &request, &Completions::none(), Settings::default());
        let finished = Input::Finished { flow: foreign, outcome: Outcome::Succeeded };
        let not_persisted = Input::NotPersisted { flow: foreign, retryable: true };
        let others = [Input::Persisted { flow: foreign }, not_persisted, Input::Progress { flow: foreign }];
        for input in others.into_iter().chain([finished]) {
            let refused = update.handle(Timestamp(0), input);
            assert_eq!(refused, Err(ProtocolError::UnknownFlow { flow: foreign }));
        }
        assert_eq!((update.state(foreign), update.frees_dependents(foreign)), (None, false));
    }
    assert!(small.predecessors(foreign).is_empty() && small.successors(foreign).is_empty());
    assert_eq!(small.flow(foreign), None);
}
