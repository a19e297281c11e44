//! Flows that go on until they are stopped.

use super::*;

fn begin(flows: &[(&str, &str)], permits: usize) -> Scheduler {
    let (graph, all) = (graph_in(Mode::Continuous, flows), ResolvedRequest::refresh_all());
    Scheduler::start(graph, &all, &Completions::none(), settings(permits))
}

fn progress(update: &mut Scheduler, name: &str) -> Vec<String> {
    let flow = update.id(name);
    update.handle(Timestamp(0), Input::Progress { flow }).expect("fits");
    update.drain()
}

#[test]
fn r01_flows_go_on_until_they_are_cancelled() {
    let mut update = begin(&[("a", ""), ("b", "")], 9);
    assert_eq!(update.drain(), ["launch a 1", "launch b 1"]);
    assert!(progress(&mut update, "a").is_empty() && progress(&mut update, "a").is_empty());
    assert_eq!(update.words(), ["RUNNING", "RUNNING"]);
    update.handle(Timestamp(0), Input::Cancel).unwrap();
    assert_eq!(update.drain(), ["abort a", "abort b"]);
    assert!(progress(&mut update, "b").is_empty(), "it may have been on its way");
    update.end(0, "a", Outcome::Stopped);
    assert_eq!(update.end(0, "b", Outcome::Stopped), ["done CANCELED"]);
}

#[test]
fn g26_r01_a_reader_runs_beside_a_writer_that_has_caught_up() {
    let mut update = begin(&[("raw", ""), ("daily", "<raw")], 9);
    assert_eq!(update.drain(), ["launch raw 1"]);
    assert_eq!(progress(&mut update, "raw"), ["launch daily 1"]);
    assert!(update.frees_dependents(FlowId(0)) && !update.frees_dependents(FlowId(1)));
    assert!(update.succeed("raw").is_empty(), "its source has ended; nobody is freed twice");
    assert_eq!(update.words(), ["COMPLETED", "RUNNING"]);
}

#[test]
fn g26_a_reader_waits_for_all_its_writers() {
    let mut update = begin(&[("left", ""), ("right", ""), ("both", "<left,<right")], 9);
    update.drain();
    assert!(progress(&mut update, "left").is_empty() && progress(&mut update, "left").is_empty());
    assert_eq!(progress(&mut update, "right"), ["launch both 1"]);
}

#[test]
fn r12_order_edges_wait_for_durable_completion_of_once_flows() {
    let mut update = begin(&[("seed!", ""), ("live", "seed")], 9);
    assert_eq!(update.drain(), ["launch seed 1"]);
    assert_eq!(update.succeed("seed"), ["persist seed"]);
    assert_eq!(update.persisted("seed"), ["launch live 1"]);
    assert_eq!(update.words(), ["COMPLETED", "RUNNING"]);
}

#[test]
fn r12_a_flow_that_has_caught_up_gives_its_permit_to_the_next() {
    let mut update = begin(&[("a", ""), ("b", ""), ("c", "")], 1);
    assert_eq!(update.drain(), ["launch a 1"]);
    assert_eq!(progress(&mut update, "a"), ["launch b 1"]);
    assert_eq!(progress(&mut update, "b"), ["launch c 1"]);
}

#[test]
fn r15_a_flow_is_retried_without_limit_and_counts_anew_once_it_has_caught_up() {
    let mut update = begin(&[("raw", ""), ("daily", "<raw")], 1);
    update.drain();
    let mut now = 0;
    for (attempt, wait) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 100), (6, 100)] {
        assert!(update.fail(now, "raw", true).is_empty(), "attempt {attempt}");
        assert_eq!(update.next_deadline(), Some(Timestamp(now + wait)));
        now += wait;
        update.handle(Timestamp(now), Input::Wake).unwrap();
        assert_eq!(update.drain(), [format!("launch raw {}", attempt + 1)]);
    }
    assert_eq!(progress(&mut update, "raw"), ["launch daily 1"]);
    update.fail(now, "raw", true);
    assert_eq!(update.next_deadline(), Some(Timestamp(now + 10)), "as after a first attempt");
    assert!(update.frees_dependents(FlowId(0)), "its reader does not notice");
    assert_eq!(update.words(), ["WAITING", "RUNNING"]);
}

#[test]
fn r13_after_a_failure_for_good_started_readers_go_on_and_others_are_skipped() {
    let mut update = begin(&[("raw", ""), ("slow", ""), ("one", "<raw"), ("two", "<raw,<slow")], 9);
    update.drain();
    assert_eq!(progress(&mut update, "raw"), ["launch one 1"]);
    assert!(update.fail(0, "raw", false).is_empty());
    assert_eq!(update.words(), ["FAILED", "RUNNING", "RUNNING", "SKIPPED"]);
    assert!(progress(&mut update, "slow").is_empty(), "a skipped flow is not freed");
}

#[test]
fn r13_a_reader_that_waits_for_its_permit_is_skipped_with_its_writer() {
    let mut update = begin(&[("raw", ""), ("other", ""), ("daily", "<raw")], 1);
    assert_eq!(update.drain(), ["launch raw 1"]);
    assert_eq!(progress(&mut update, "raw"), ["launch other 1"]);
    update.fail(0, "raw", false);
    assert_eq!(update.words(), ["FAILED", "RUNNING", "SKIPPED"]);
    assert!(progress(&mut update, "other").is_empty());
}

#[test]
fn progress_of_a_flow_that_ends_by_itself_is_refused() {
    let refuse = |update: &mut Scheduler, name: &str, kind: fn(&ProtocolError) -> bool| {
        let (flow, before) = (update.id(name), update.progress.clone());
        let error = update.handle(Timestamp(5), Input::Progress { flow }).expect_err("refused");
        assert!(kind(&error), "{error}");
        assert_eq!(update.progress, before);
    };
    let ends: fn(&ProtocolError) -> bool = |e| matches!(e, ProtocolError::NotContinuous { .. });
    let mut triggered = start(&[("a", "")], &[], 1);
    triggered.drain();
    refuse(&mut triggered, "a", ends);
    let mut update = begin(&[("seed!", ""), ("a", ""), ("b", "")], 2);
    update.drain();
    refuse(&mut update, "seed", ends);
    let idle: fn(&ProtocolError) -> bool = |e| matches!(e, ProtocolError::NotRunning { .. });
    refuse(&mut update, "b", idle);
    let foreign = Input::Progress { flow: FlowId(99) };
    assert!(matches!(update.handle(Timestamp(0), foreign), Err(ProtocolError::UnknownFlow { .. })));
}
