use std::num::NonZeroUsize;
use std::time::Duration;

use super::*;
use crate::{Dataset, FlowKind, GraphBuilder, QueryMode, UpdateRequest};

mod clearing;
mod continuous;

/// Each flow writes the table of its name; `!` marks a `ONCE` flow, and `a,<b` means that it
/// depends on a and reads b.
fn graph(flows: &[(&str, &str)]) -> Graph {
    graph_in(Mode::Triggered, flows)
}

fn graph_in(mode: Mode, flows: &[(&str, &str)]) -> Graph {
    let mut builder = GraphBuilder::new().mode(mode);
    for (name, after) in flows {
        let (name, once) = name.strip_suffix('!').map_or((*name, false), |name| (name, true));
        let query = if once { QueryMode::Batch } else { QueryMode::Streaming };
        let (reads, after): (Vec<_>, Vec<_>) =
            after.split(',').filter(|name| !name.is_empty()).partition(|name| name.starts_with('<'));
        let reads = reads.into_iter().map(|name| name.trim_start_matches('<'));
        let flow = Flow::new(name, FlowKind::Append, query).reads(reads).depends_on(after);
        builder = builder.dataset(Dataset::streaming_table(name)).flow(if once { flow.once() } else { flow });
    }
    builder.build().expect("a valid graph")
}

fn settings(permits: usize) -> Settings {
    Settings::default()
        .with_permits(NonZeroUsize::new(permits).expect("positive"))
        .with_backoff(Duration::from_millis(10), Duration::from_millis(100))
}

fn start(flows: &[(&str, &str)], history: &[&str], permits: usize) -> Scheduler {
    let history = history.iter().copied().collect();
    Scheduler::start(graph(flows), &ResolvedRequest::refresh_all(), &history, settings(permits))
}

impl Scheduler {
    fn id(&self, name: &str) -> FlowId {
        self.graph.flow_id(name).expect("a known flow")
    }

    /// All actions that are due, such as `launch a 1`.
    fn drain(&mut self) -> Vec<String> {
        let graph = Arc::clone(&self.graph);
        let name = |flow| graph.flow(flow).expect("a known flow").name();
        std::iter::from_fn(|| self.next_action())
            .map(|action| match action {
                Action::Clear => "clear".to_owned(),
                Action::Launch { flow, attempt } => format!("launch {} {attempt}", name(flow)),
                Action::Persist { flow } => format!("persist {}", name(flow)),
                Action::Abort { flow } => format!("abort {}", name(flow)),
                Action::Done { outcome } => format!("done {outcome}"),
            })
            .collect()
    }

    fn end(&mut self, at: u64, name: &str, outcome: Outcome) -> Vec<String> {
        let flow = self.id(name);
        self.handle(Timestamp(at), Input::Finished { flow, outcome }).expect("fits");
        self.drain()
    }

    fn succeed(&mut self, name: &str) -> Vec<String> {
        self.end(0, name, Outcome::Succeeded)
    }

    fn fail(&mut self, at: u64, name: &str, retryable: bool) -> Vec<String> {
        self.end(at, name, Outcome::Failed { retryable })
    }

    fn persisted(&mut self, name: &str) -> Vec<String> {
        let flow = self.id(name);
        self.handle(Timestamp(0), Input::Persisted { flow }).expect("fits");
        self.drain()
    }

    fn words(&self) -> Vec<String> {
        self.progress.states.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn an_empty_update_is_done_at_once_and_says_so_once() {
    let mut update = start(&[], &[], 1);
    assert_eq!(update.drain(), ["done COMPLETED"]);
    assert!(update.is_done() && update.drain().is_empty());
}

#[test]
fn r12_independent_flows_run_in_parallel_up_to_the_permits_in_declaration_order() {
    let mut update = start(&[("d", "c"), ("a", ""), ("b", ""), ("c", "")], &[], 2);
    assert_eq!(update.drain(), ["launch a 1", "launch b 1"]);
    assert_eq!(update.succeed("b"), ["launch c 1"]);
    assert_eq!(update.succeed("c"), ["launch d 1"]);
    assert!(update.succeed("a").is_empty());
    assert_eq!(update.succeed("d"), ["done COMPLETED"]);
}

#[test]
fn r12_a_flow_waits_for_all_names_of_its_list() {
    let mut update = start(&[("a", ""), ("b", ""), ("c", "a,b")], &[], 9);
    assert_eq!(update.drain(), ["launch a 1", "launch b 1"]);
    assert!(update.succeed("a").is_empty());
    assert_eq!(update.succeed("b"), ["launch c 1"]);
}

#[test]
fn r13_dependents_of_a_failed_flow_are_skipped_and_others_go_on() {
    let mut update = start(&[("a", ""), ("b", "a"), ("c", "b"), ("x", ""), ("y", "x")], &[], 9);
    update.drain();
    assert!(update.fail(0, "a", false).is_empty());
    let failed = update.id("a");
    for name in ["b", "c"] {
        assert_eq!(update.state(update.id(name)), Some(FlowState::Skipped { failed }));
    }
    assert_eq!(update.succeed("x"), ["launch y 1"]);
    assert_eq!(update.succeed("y"), ["done FAILED"]);
    assert_eq!(update.words(), ["FAILED", "SKIPPED", "SKIPPED", "COMPLETED", "COMPLETED"]);
}

/// The example of 2.12: b24 -> b25 -> live, and b25 fails.
#[test]
fn r14_the_next_update_resumes_at_the_first_incomplete_flow() {
    let flows = [("b24!", ""), ("b25!", "b24"), ("live", "b25")];
    let mut update = start(&flows, &[], 9);
    assert_eq!(update.drain(), ["launch b24 1"]);
    assert_eq!(update.succeed("b24"), ["persist b24"]);
    assert_eq!(update.persisted("b24"), ["launch b25 1"]);
    assert_eq!(update.fail(0, "b25", false), ["done FAILED"]);
    assert_eq!(update.words(), ["COMPLETED", "FAILED", "SKIPPED"]);

    let mut update = start(&flows, &["b24"], 9);
    assert_eq!(update.drain(), ["launch b25 1"]);
    assert_eq!(update.succeed("b25"), ["persist b25"]);
    assert_eq!(update.persisted("b25"), ["launch live 1"]);
    assert_eq!(update.succeed("live"), ["done COMPLETED"]);
    assert_eq!(update.words(), ["IDLE", "COMPLETED", "COMPLETED"]);
}

#[test]
fn r04_a_completed_once_flow_stays_idle_and_only_once_flows_do() {
    let mut update = start(&[("seed!", ""), ("live", "seed")], &["seed", "live", "gone"], 9);
    assert_eq!(update.drain(), ["launch live 1"]);
    assert_eq!(update.words(), ["IDLE", "RUNNING"]);
}

#[test]
fn r06_a_completion_belongs_to_a_name_whatever_else_is_edited() {
    let history = ["seed"];
    for flows in [
        // As it was; beside new flows; with a new predecessor; alone.
        &[("seed!", ""), ("live", "seed")][..],
        &[("older!", ""), ("seed!", ""), ("live", "seed,older")],
        &[("older!", ""), ("seed!", "older"), ("live", "seed")],
        &[("seed!", "")],
    ] {
        let mut update = start(flows, &history, 9);
        let seed = update.id("seed");
        assert!(update.drain().iter().all(|action| !action.contains("seed")));
        assert_eq!(update.state(seed), Some(FlowState::Idle));
    }
    // Under another name it is another flow.
    assert_eq!(start(&[("seed2!", "")], &history, 9).drain(), ["launch seed2 1"]);
}

#[test]
fn r15_a_retryable_error_is_tried_three_times_with_growing_delay() {
    let mut update = start(&[("a", ""), ("b", "a")], &[], 1);
    assert_eq!(update.drain(), ["launch a 1"]);
    assert!(update.fail(100, "a", true).is_empty());
    assert_eq!(update.next_deadline(), Some(Timestamp(110)));
    update.handle(Timestamp(109), Input::Wake).unwrap();
    assert!(update.drain().is_empty());
    update.handle(Timestamp(110), Input::Wake).unwrap();
    assert_eq!((update.next_deadline(), update.drain()), (None, vec!["launch a 2".to_owned()]));
    update.fail(200, "a", true);
    assert_eq!(update.next_deadline(), Some(Timestamp(220)));
    update.handle(Timestamp(220), Input::Wake).unwrap();
    assert_eq!(update.drain(), ["launch a 3"]);
    assert_eq!(update.fail(300, "a", true), ["done FAILED"]);
    assert_eq!(update.words(), ["FAILED", "SKIPPED"]);
}

#[test]
fn r15_an_error_that_is_not_retryable_fails_at_once() {
    let mut update = start(&[("a", "")], &[], 1);
    update.drain();
    assert_eq!(update.fail(0, "a", false), ["done FAILED"]);
}

#[test]
fn a_flow_that_waits_for_its_retry_leaves_its_permit_to_others() {
    let mut update = start(&[("a", ""), ("b", "")], &[], 1);
    update.drain();
    assert_eq!(update.fail(0, "a", true), ["launch b 1"]);
    update.handle(Timestamp(50), Input::Wake).unwrap();
    assert!(update.drain().is_empty(), "b has the permit");
    assert_eq!(update.end(50, "b", Outcome::Succeeded), ["launch a 2"]);
}

#[test]
fn time_does_not_run_backwards() {
    let mut update = start(&[("a", "")], &[], 1);
    update.drain();
    update.handle(Timestamp(1000), Input::Wake).unwrap();
    update.fail(5, "a", true);
    assert_eq!(update.next_deadline(), Some(Timestamp(1010)));
}

#[test]
fn a_completion_that_is_not_durable_is_a_failure() {
    let mut update = start(&[("seed!", ""), ("live", "seed")], &[], 1);
    update.drain();
    update.succeed("seed");
    let flow = update.id("seed");
    update.handle(Timestamp(0), Input::NotPersisted { flow, retryable: false }).unwrap();
    assert_eq!(update.drain(), ["done FAILED"]);
    assert_eq!(update.words(), ["FAILED", "SKIPPED"]);
}

#[test]
fn cancel_aborts_what_runs_stops_what_waits_and_still_persists() {
    let mut update = start(&[("seed!", ""), ("a", ""), ("b", ""), ("c", "a"), ("d", "seed")], &[], 9);
    update.drain();
    update.fail(0, "b", true);
    assert_eq!(update.succeed("seed"), ["persist seed"]);
    update.handle(Timestamp(0), Input::Cancel).unwrap();
    assert_eq!(update.words(), ["RUNNING", "RUNNING", "STOPPED", "STOPPED", "STOPPED"]);
    assert_eq!((update.drain(), update.next_deadline()), (vec!["abort a".to_owned()], None));
    assert!(update.persisted("seed").is_empty());
    assert_eq!(update.end(0, "a", Outcome::Stopped), ["done CANCELED"]);
    assert_eq!(update.words(), ["COMPLETED", "STOPPED", "STOPPED", "STOPPED", "STOPPED"]);
    update.handle(Timestamp(0), Input::Cancel).unwrap();
    assert!(update.drain().is_empty());
}

#[test]
fn r08_flows_of_other_targets_are_excluded_and_hold_nobody_back() {
    let graph = graph(&[("a", ""), ("b", "a"), ("c", "b")]);
    let request = UpdateRequest::refresh(["b"]).check(&graph).unwrap();
    let mut update = Scheduler::start(graph, &request, &Completions::none(), settings(9));
    assert_eq!(update.drain(), ["launch b 1"]);
    assert_eq!(update.succeed("b"), ["done COMPLETED"]);
    assert_eq!(update.words(), ["EXCLUDED", "COMPLETED", "EXCLUDED"]);
}

#[test]
fn a16_an_excluded_incomplete_once_flow_keeps_its_dependents_skipped() {
    let graph = Arc::new(graph(&[("seed!", ""), ("a", "seed"), ("b", "a")]));
    let request = UpdateRequest::refresh(["a", "b"]).check(&graph).unwrap();
    let begin = |history| Scheduler::start(Arc::clone(&graph), &request, &history, settings(9));
    let mut incomplete = begin(Completions::none());
    assert_eq!(incomplete.drain(), ["done FAILED"]);
    assert_eq!(incomplete.words(), ["EXCLUDED", "SKIPPED", "SKIPPED"]);
    assert_eq!(incomplete.state(FlowId(2)), Some(FlowState::Skipped { failed: FlowId(0) }));
    assert_eq!(begin(["seed"].into_iter().collect()).drain(), ["launch a 1"]);
}

#[test]
fn inputs_that_do_not_fit_are_refused_and_change_nothing() {
    let mut update = start(&[("seed!", ""), ("b", "seed")], &[], 9);
    update.drain();
    let (seed, b, foreign) = (FlowId(0), FlowId(1), FlowId(99));
    let refuse = |update: &mut Scheduler, input, kind: fn(&ProtocolError) -> bool| {
        let before = update.progress.clone();
        let error = update.handle(Timestamp(77), input).expect_err("refused");
        assert!(kind(&error), "{error}");
        assert_eq!(update.progress, before);
    };
    let finished = |flow, outcome| Input::Finished { flow, outcome };
    let unknown: fn(&ProtocolError) -> bool = |e| matches!(e, ProtocolError::UnknownFlow { .. });
    refuse(&mut update, finished(foreign, Outcome::Succeeded), unknown);
    refuse(&mut update, Input::Persisted { flow: foreign }, unknown);
    let idle: fn(&ProtocolError) -> bool = |e| matches!(e, ProtocolError::NotRunning { .. });
    refuse(&mut update, finished(b, Outcome::Succeeded), idle);
    let not_told: fn(&ProtocolError) -> bool = |e| matches!(e, ProtocolError::NotAborted { .. });
    refuse(&mut update, finished(seed, Outcome::Stopped), not_told);
    let not_asked: fn(&ProtocolError) -> bool = |e| matches!(e, ProtocolError::NotPersisting { .. });
    refuse(&mut update, Input::Persisted { flow: seed }, not_asked);
    // The action has to be taken before it can be answered.
    update.handle(Timestamp(0), finished(seed, Outcome::Succeeded)).unwrap();
    refuse(&mut update, Input::Persisted { flow: seed }, not_asked);
    refuse(&mut update, finished(seed, Outcome::Succeeded), idle);
    assert_eq!(update.drain(), ["persist seed"]);
    assert_eq!(update.persisted("seed"), ["launch b 1"]);
    update.handle(Timestamp(0), Input::Cancel).unwrap();
    refuse(&mut update, finished(b, Outcome::Stopped), not_told);
}
