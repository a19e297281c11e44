//! What an update clears before its first flow starts.

use super::*;

/// The seeds b24 and b25 of `events`, its live flow after them, and a reader.
fn events() -> Arc<Graph> {
    let flow = |name: &str, query| Flow::new("events", FlowKind::Append, query).named(name);
    let graph = GraphBuilder::new()
        .dataset(Dataset::streaming_table("events"))
        .dataset(Dataset::streaming_table("daily"))
        .flow(flow("b24", QueryMode::Batch).once())
        .flow(flow("b25", QueryMode::Batch).once().depends_on(["b24"]))
        .flow(flow("live", QueryMode::Streaming).depends_on(["b25"]))
        .flow(Flow::new("daily", FlowKind::Append, QueryMode::Streaming).reads(["events"]));
    Arc::new(graph.build().expect("a valid graph"))
}

fn begin(request: &UpdateRequest) -> Scheduler {
    let graph = events();
    let request = request.check(&graph).expect("a valid request");
    Scheduler::start(graph, &request, &["b24", "b25"].into_iter().collect(), settings(9))
}

fn tell(update: &mut Scheduler, input: Input) -> Vec<String> {
    update.handle(Timestamp(0), input).expect("fits");
    update.drain()
}

const FULL: fn() -> UpdateRequest = || UpdateRequest::default().with_full_refresh(["events"]);

#[test]
fn r07_a_full_refresh_clears_first_and_then_runs_every_flow_in_order() {
    let mut update = begin(&FULL());
    assert_eq!(update.words(), ["QUEUED", "QUEUED", "QUEUED", "EXCLUDED"]);
    let clearing = update.clearing().expect("something is cleared").clone();
    assert_eq!(clearing.targets, ["events"]);
    assert_eq!((clearing.flows, clearing.resets), (vec![FlowId(0), FlowId(1), FlowId(2)], vec![]));
    assert_eq!(update.drain(), ["clear"], "asked for once, and nothing beside it");
    assert_eq!(tell(&mut update, Input::Wake), [""; 0]);
    assert_eq!(tell(&mut update, Input::Cleared), ["launch b24 1"]);
    assert_eq!(update.succeed("b24"), ["persist b24"]);
    assert_eq!(update.persisted("b24"), ["launch b25 1"]);
    update.succeed("b25");
    assert_eq!(update.persisted("b25"), ["launch live 1"]);
    assert_eq!(update.succeed("live"), ["done COMPLETED"]);
}

#[test]
fn r09_a_reset_of_the_live_flow_leaves_its_once_predecessors_complete() {
    let mut update = begin(&UpdateRequest::default().with_checkpoint_reset(["live"]));
    let clearing = update.clearing().expect("something is cleared").clone();
    assert_eq!((clearing.targets.len(), clearing.flows.len(), clearing.resets), (0, 0, vec![FlowId(2)]));
    assert_eq!(update.drain(), ["clear"]);
    assert_eq!(tell(&mut update, Input::Cleared), ["launch live 1"]);
    assert_eq!(update.words(), ["IDLE", "IDLE", "RUNNING", "QUEUED"]);
    assert_eq!(update.succeed("live"), ["launch daily 1"]);
}

#[test]
fn a18_r09_a_once_flow_that_is_reset_runs_again_and_its_predecessors_stay_complete() {
    let mut update = begin(&UpdateRequest::default().with_checkpoint_reset(["b25"]));
    update.drain();
    assert_eq!(tell(&mut update, Input::Cleared), ["launch b25 1"]);
    assert_eq!(update.words(), ["IDLE", "RUNNING", "QUEUED", "QUEUED"]);
}

#[test]
fn r08_a_plain_refresh_clears_nothing() {
    let mut update = begin(&UpdateRequest::refresh_all());
    assert_eq!(update.clearing(), None);
    assert_eq!(update.drain(), ["launch live 1"]);
}

#[test]
fn r07_what_is_not_cleared_fails_the_update_before_any_flow_starts() {
    for retryable in [true, false] {
        let mut update = begin(&FULL());
        update.drain();
        assert_eq!(tell(&mut update, Input::NotCleared { retryable }), ["done FAILED"]);
        assert_eq!(update.progress.states[..3], [FlowState::NotCleared; 3]);
        assert_eq!(update.words(), ["STOPPED", "STOPPED", "STOPPED", "EXCLUDED"]);
        assert_eq!(update.failed_retryably(), retryable);
        assert_eq!(update.request_to_retry(), FULL().check(&events()).unwrap(), "it is asked for again");
    }
}

#[test]
fn r15_another_attempt_of_the_update_clears_nothing_that_is_cleared() {
    let mut update = begin(&FULL());
    update.drain();
    tell(&mut update, Input::Cleared);
    update.fail(0, "b24", false);
    let again = update.request_to_retry();
    assert!(!again.needs_clearing() && again.selects("events") && !again.selects("daily"));
}

#[test]
fn a_cancellation_before_the_clearing_gives_it_up() {
    let mut update = begin(&FULL());
    assert_eq!(tell(&mut update, Input::Cancel), ["done CANCELED"]);
}

#[test]
fn a_cancellation_while_clearing_waits_for_the_answer_and_then_stops() {
    for answer in [Input::Cleared, Input::NotCleared { retryable: true }] {
        let mut update = begin(&FULL());
        update.drain();
        assert_eq!(tell(&mut update, Input::Cancel), [""; 0]);
        assert_eq!(update.words(), ["STOPPED", "STOPPED", "STOPPED", "EXCLUDED"]);
        assert_eq!(tell(&mut update, answer), ["done CANCELED"]);
        assert!(!update.failed_retryably(), "nobody wants another attempt");
    }
}

#[test]
fn a_clearing_is_answered_once_and_only_when_it_was_asked_for() {
    let mut update = begin(&FULL());
    let answers = [Input::Cleared, Input::NotCleared { retryable: false }];
    let refuse = |update: &mut Scheduler| {
        for answer in answers {
            let before = update.progress.clone();
            assert_eq!(update.handle(Timestamp(9), answer), Err(ProtocolError::NotClearing));
            assert_eq!(update.progress, before);
        }
    };
    refuse(&mut update);
    update.drain();
    tell(&mut update, Input::Cleared);
    refuse(&mut update);
    refuse(&mut begin(&UpdateRequest::refresh_all()));
}

#[test]
fn r15_the_update_is_worth_another_attempt_where_a_flow_used_up_its_retries() {
    let none = settings(9).with_max_flow_retry_attempts(0);
    let outcomes = [(true, false), (false, true), (false, false), (true, true)];
    for (first, second) in outcomes {
        let all = ResolvedRequest::refresh_all();
        let mut update =
            Scheduler::start(graph(&[("a", ""), ("b", "")]), &all, &Completions::none(), none.clone());
        update.drain();
        update.fail(0, "a", first);
        assert_eq!(update.fail(0, "b", second), ["done FAILED"]);
        assert_eq!(update.failed_retryably(), first || second);
    }
}

#[test]
fn r15_a_completion_that_another_attempt_may_write_down_is_worth_one() {
    let mut update = start(&[("seed!", "")], &[], 1);
    update.drain();
    update.succeed("seed");
    let flow = update.id("seed");
    update.handle(Timestamp(0), Input::NotPersisted { flow, retryable: true }).unwrap();
    assert!(update.failed_retryably());
}
