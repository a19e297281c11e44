//! How are all states visited?

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::time::Duration;

use super::watch::{Cleared, Seen, Set};
use super::*;

/// A graph, how many flows may run at once, and what its updates ask for: each crash is followed by any of it.
pub(super) struct Pipeline {
    graph: Arc<Graph>,
    settings: Settings,
    requests: Vec<ResolvedRequest>,
}

impl Pipeline {
    pub(super) fn new(graph: impl Into<Arc<Graph>>, permits: usize) -> Self {
        let settings = Settings::default()
            .with_permits(NonZeroUsize::new(permits).expect("positive"))
            .with_max_flow_retry_attempts(1)
            .with_backoff(Duration::from_millis(1), Duration::from_millis(1));
        Self { graph: graph.into(), settings, requests: vec![ResolvedRequest::refresh_all()] }
    }

    /// Updates with that request, besides plain ones.
    pub(super) fn asked(mut self, request: ResolvedRequest) -> Self {
        if !self.requests.contains(&request) {
            self.requests.push(request);
        }
        self
    }

    fn flows(&self, wanted: impl Fn(&Flow) -> bool) -> Set {
        Set::of(self.graph.flows().filter(|(_, flow)| wanted(flow)).map(|(id, _)| id))
    }

    /// An update that begins with that history.
    fn start(&self, complete: Set, request: &ResolvedRequest) -> (Scheduler, Seen) {
        let names = self.graph.flows().filter(|(id, _)| complete.contains(*id));
        let history: Completions = names.map(|(_, flow)| flow.name()).collect();
        let seen = Seen {
            complete,
            clears: request.needs_clearing(),
            to_clear: self.flows(|flow| request.clears(flow)),
            excluded: self.flows(|flow| !request.selects(flow.target())),
            ..Seen::default()
        };
        (Scheduler::start(Arc::clone(&self.graph), request, &history, self.settings.clone()), seen)
    }
}

/// Counts what it sees.
#[derive(Debug, Default)]
pub(super) struct Explorer {
    pub(super) graphs: usize,
    /// Graphs with a number of permits and a request.
    pipelines: usize,
    states: usize,
    ends: usize,
    starts: usize,
    refused: usize,
}

impl Explorer {
    /// Visits every state of every update, from an empty history or from every one.
    pub(super) fn explore(&mut self, pipeline: &Pipeline, every_history: bool) {
        self.pipelines += 1;
        let once = pipeline.flows(Flow::is_once);
        let mut histories = BTreeSet::new();
        let mut open = Vec::new();
        for complete in once.parts().take(if every_history { usize::MAX } else { 1 }) {
            self.begin(pipeline, complete, &mut histories, &mut open);
        }
        let mut known: BTreeSet<u128> = BTreeSet::new();
        while let Some((update, seen)) = open.pop() {
            if !known.insert(hash(&update, seen)) {
                continue;
            }
            self.states += 1;
            seen.check(&update, pipeline.settings.permits());
            self.step_action(&update, seen, &mut open);
            self.step_inputs(&update, seen, &mut open);
            for complete in durable(seen) {
                self.begin(pipeline, complete, &mut histories, &mut open);
            }
        }
    }

    /// Updates of each request with that history, unless they have been begun before.
    fn begin(
        &mut self,
        pipeline: &Pipeline,
        complete: Set,
        histories: &mut BTreeSet<Set>,
        open: &mut Vec<(Scheduler, Seen)>,
    ) {
        if histories.insert(complete) {
            for request in &pipeline.requests {
                self.starts += 1;
                let (update, seen) = pipeline.start(complete, request);
                run_smoothly(update.clone(), seen);
                open.push((update, seen));
            }
        }
    }

    /// The driver takes one action.
    fn step_action(&mut self, update: &Scheduler, seen: Seen, open: &mut Vec<(Scheduler, Seen)>) {
        let (mut update, mut seen) = (update.clone(), seen);
        let Some(action) = update.next_action() else {
            let waits =
                !seen.running.is_empty() || !seen.persisting.is_empty() || seen.cleared == Cleared::Asked;
            assert!(waits || update.next_deadline().is_some() || update.is_done(), "stuck: {update:?}");
            return;
        };
        self.ends += usize::from(matches!(action, Action::Done { .. }));
        seen.obey(action, &update);
        open.push((update, seen));
    }

    /// Everything that can be reported, fitting or not.
    fn step_inputs(&mut self, update: &Scheduler, seen: Seen, open: &mut Vec<(Scheduler, Seen)>) {
        let mut scratch = update.clone();
        for (input, now) in inputs(update) {
            let mut seen = seen;
            if seen.take(input, update) {
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

    /// Prints what was explored; the page for users says the same.
    pub(super) fn tell(&self, what: &str) {
        let Self { graphs, pipelines, states, ends, starts, refused } = self;
        println!(
            "{what}: {graphs} graphs, {pipelines} with permits and requests, {states} states, {starts} starts, {ends} ends, \
             {refused} refused inputs"
        );
        assert!(*ends > 0 && *refused > 0 && starts >= pipelines);
        if !cfg!(slow) {
            let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/semantics/flows.md");
            let page = std::fs::read_to_string(page).expect("the page is there");
            let cells = format!("| {graphs} | {} |", grouped(*states));
            assert!(
                page.lines().any(|line| line.ends_with(&cells)),
                "docs/semantics/flows.md lacks: {cells}"
            );
        }
    }
}

/// A number as people write it: 1,234,567.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b","[..])).into_owned()
}

fn inputs(update: &Scheduler) -> Vec<(Input, Timestamp)> {
    let now = update.progress.now;
    let mut inputs = vec![(Input::Cancel, now), (Input::Wake, update.next_deadline().unwrap_or(now))];
    inputs.extend([Input::Cleared, Input::NotCleared { retryable: false }].map(|input| (input, now)));
    for (flow, _) in update.graph().flows() {
        let failed = |retryable| Outcome::Failed { retryable };
        let ends = [Outcome::Succeeded, failed(true), failed(false), Outcome::Stopped];
        let finished = ends.map(|outcome| Input::Finished { flow, outcome });
        let others = [
            Input::Progress { flow },
            Input::Persisted { flow },
            Input::NotPersisted { flow, retryable: false },
        ];
        inputs.extend(finished.into_iter().chain(others).map(|input| (input, now)));
    }
    inputs
}

/// The completions that the next update may find after a crash: of what was under way, any part may have been written
/// down. What is to be cleared is recorded first and finished before anything else, so it is cleared as a whole.
fn durable(seen: Seen) -> Vec<Set> {
    let written = seen.persisting.parts().map(|part| Set(seen.complete.0 | part.0));
    let under_way = matches!(seen.cleared, Cleared::Asked | Cleared::Failed);
    written.flat_map(|set| [Some(set), under_way.then(|| set.without(seen.to_clear))]).flatten().collect()
}

/// What makes two states differ: time is taken relative to now.
fn hash(update: &Scheduler, seen: Seen) -> u128 {
    let mut progress = update.progress.clone();
    let now = std::mem::take(&mut progress.now);
    let relative = |due: Timestamp| Timestamp(due.0.saturating_sub(now.0));
    progress.sleeping = progress.sleeping.into_iter().map(|(due, flow)| (relative(due), flow)).collect();
    for state in &mut progress.states {
        if let FlowState::Waiting { due, .. } = state {
            *due = relative(*due);
        }
    }
    // Which update it is shows in what it clears and leaves out.
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, &progress, seen).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// Whatever has happened before: an update in which all goes well starts every flow that it may, and ends with every
/// one of them complete, or caught up. So a crash makes no difference to where a pipeline ends.
fn run_smoothly(mut update: Scheduler, mut seen: Seen) {
    loop {
        while let Some(action) = update.next_action() {
            seen.obey(action, &update);
        }
        let first = |set: Set| update.graph().flows().map(|(flow, _)| flow).find(|flow| set.contains(*flow));
        let input = if seen.cleared == Cleared::Asked {
            Input::Cleared
        } else if let Some(flow) = first(seen.persisting) {
            Input::Persisted { flow }
        } else if let Some(flow) = first(seen.running.without(seen.live)) {
            if update.is_once(flow) || update.graph().mode() == Mode::Triggered {
                Input::Finished { flow, outcome: Outcome::Succeeded }
            } else {
                Input::Progress { flow }
            }
        } else {
            break;
        };
        assert!(seen.take(input, &update));
        update.handle(Timestamp(0), input).expect("it fits");
    }
    for (flow, _) in update.graph().flows() {
        let well = seen.complete.contains(flow) || seen.succeeded.contains(flow) || seen.live.contains(flow);
        assert!(well || seen.excluded.contains(flow) || !seen.is_free(flow, update.graph()), "{update:?}");
        assert!(well || !seen.excluded.is_empty(), "only what is left out holds a flow back");
    }
    assert_eq!(update.is_done(), seen.live.is_empty());
}
