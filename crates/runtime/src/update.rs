//! How does an update of a pipeline run? The driver: it obeys the scheduler of `strandline-flow-graph`.

mod announce;

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use object_store::ObjectStore;
use strandline_flow_graph::{
    Action, Completions, FlowId, FlowState, Graph, Input, Outcome, ResolvedRequest, Scheduler, Timestamp,
    UpdateOutcome,
};
use strandline_pipeline_sql::{FlowDefinition, PipelineDefinition};
use strandline_table_formats::contract::TableFormat;
use tokio::{
    sync::{
        Semaphore, SemaphorePermit,
        mpsc::{UnboundedReceiver, UnboundedSender},
    },
    task::JoinSet,
};
use tracing::{Instrument, info_span};

use crate::{
    analysis::{self, Analysis, FlowAnalysis, Place, SnapshotProviders},
    clock::Clock,
    error::{Error, ErrorKind, Result},
    events::EventLog,
    flow_run::{self, Ended, FlowRun},
    refresh::{self, Analyses, OpenRefresh},
    report::{FlowReport, FlowStatus, Observer, UpdateReport},
    retention,
    settings::Settings,
    sinks::Registered,
};

/// What every flow of an update needs.
pub(crate) struct Context {
    pub(crate) definition: PipelineDefinition,
    pub(crate) pipeline: String,
    pub(crate) format: Arc<dyn TableFormat>,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Hears of what happens, and passes it on to who watches the update.
    pub(crate) log: Arc<EventLog>,
    pub(crate) epoch: u64,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Flows go on until the update is stopped.
    pub(crate) continuous: bool,
    /// How long a flow of a continuous pipeline waits before it looks for more.
    pub(crate) trigger_interval: Duration,
    /// Where flows without a checkpoint begin, by their names.
    pub(crate) imported: BTreeMap<String, serde_json::Value>,
    /// Whether this update recorded what it clears, so that it is not to be cleared once more.
    pub(crate) planned_refresh: AtomicBool,
    /// Limits how many batches are taken at once where flows hold no permit of the scheduler: in continuous mode.
    pub(crate) batches: Semaphore,
    /// Where flows of a continuous pipeline tell that they have taken in all that there was.
    pub(crate) progress: UnboundedSender<String>,
    pub(crate) snapshots: SnapshotProviders,
    /// Code that takes the rows of sinks.
    pub(crate) sinks: Registered,
}

/// The longest time for which a stop goes unnoticed.
const GLANCE: Duration = Duration::from_millis(50);

impl Context {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits, but no longer than until the update is stopped.
    pub(crate) async fn pause(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() && !self.is_stopped() {
            let step = left.min(GLANCE);
            tokio::time::sleep(step).await;
            left = left.saturating_sub(step);
        }
    }

    /// Tells that a flow has taken in all that there was.
    pub(crate) fn caught_up(&self, flow: &str) {
        // Nobody listens any more once the update is over.
        drop(self.progress.send(flow.to_owned()));
    }

    /// The permit to take a batch.
    pub(crate) async fn batch_permit(&self) -> Option<SemaphorePermit<'_>> {
        if self.continuous { self.batches.acquire().await.ok() } else { None }
    }

    /// The lock by which flows of one target take turns.
    pub(crate) fn turn(&self, target: &str) -> Arc<tokio::sync::Mutex<()>> {
        match self.turns.lock() {
            Ok(mut turns) => Arc::clone(turns.entry(target.to_owned()).or_default()),
            // A flow that panicked holds nothing that the others need.
            Err(poisoned) => Arc::clone(poisoned.into_inner().entry(target.to_owned()).or_default()),
        }
    }

    fn flow(&self, name: &str) -> Option<&FlowDefinition> {
        self.definition.flows.iter().find(|flow| flow.name == name)
    }

    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.clock.now().as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) async fn analyse(&self, graph: &Graph) -> Analysis {
        let place = Place {
            store: &self.store,
            format: self.format.as_ref(),
            snapshots: &self.snapshots,
            sinks: &self.sinks,
        };
        analysis::analyse(&self.definition, graph, place).await
    }
}

/// One attempt of an update, from its first flow to its last.
pub(crate) struct Update<'a> {
    context: Arc<Context>,
    graph: Graph,
    analysis: Analyses,
    /// Flows that could not be analysed; they fail when they would start.
    broken: BTreeMap<String, Error>,
    reports: BTreeMap<String, FlowReport>,
    /// What was told to those who watch.
    told: announce::Told,
    /// What earlier attempts of the update did, by flow.
    earlier: BTreeMap<String, FlowReport>,
    running: JoinSet<(FlowId, FlowReport, Result<Ended>)>,
    progress: &'a mut UnboundedReceiver<String>,
}

/// How an attempt of an update ended.
pub(crate) struct Attempt {
    pub(crate) report: UpdateReport,
    pub(crate) outcome: UpdateOutcome,
    /// Whether another attempt may help, and what it would be.
    pub(crate) retryable: bool,
    pub(crate) retry: ResolvedRequest,
}

impl<'a> Update<'a> {
    pub(crate) fn new(
        context: Arc<Context>,
        graph: Graph,
        analysis: Analysis,
        progress: &'a mut UnboundedReceiver<String>,
    ) -> Self {
        let mut update = Self {
            context,
            graph,
            analysis: BTreeMap::new(),
            broken: BTreeMap::new(),
            reports: BTreeMap::new(),
            told: announce::Told::default(),
            earlier: BTreeMap::new(),
            running: JoinSet::new(),
            progress,
        };
        update.understand(analysis);
        update
    }

    /// Adds to what those who watch are told what earlier attempts of the update did.
    pub(crate) fn after(mut self, earlier: Option<&UpdateReport>) -> Self {
        let flows = earlier.into_iter().flat_map(|earlier| &earlier.flows);
        self.earlier = flows.map(|report| (report.flow.clone(), report.clone())).collect();
        self
    }

    fn understand(&mut self, analysis: Analysis) {
        self.analysis.clear();
        self.broken.clear();
        for (name, result) in analysis.flows {
            match result {
                Ok(analysis) => drop(self.analysis.insert(name, Arc::new(analysis))),
                Err(error) => drop(self.broken.insert(name, error)),
            }
        }
    }

    /// Runs the update to its end.
    pub(crate) async fn run(mut self, request: &ResolvedRequest, settings: &Settings) -> Result<Attempt> {
        let started = self.context.clock.now();
        let mut request = request.clone();
        if let Some(refresh) = OpenRefresh::left_over(&self.context).await? {
            self.finish(&refresh).await?;
            if self.context.planned_refresh.load(Ordering::Relaxed) {
                // It is what this update asks for, which an earlier attempt began.
                request = request.without_clearing();
            }
        }
        let mut completions = Vec::new();
        for flow in self.context.definition.flows.iter().filter(|flow| flow.once) {
            if flow_run::completed_at(&self.context, &flow.name).await?.is_some() {
                completions.push(flow.name.clone());
            }
        }
        let completions: Completions = completions.into_iter().collect();
        let mut scheduler =
            Scheduler::start(self.graph.clone(), &request, &completions, settings.scheduler.clone());
        self.announce_queued(&scheduler);
        let outcome = self.obey(&mut scheduler).await?;
        self.collect_tombstones(&scheduler).await;
        let flows = self.closing_reports(&scheduler);
        let elapsed = self.context.clock.now().saturating_sub(started);
        Ok(Attempt {
            report: UpdateReport { flows, elapsed },
            outcome,
            retryable: scheduler.failed_retryably(),
            retry: scheduler.request_to_retry(),
        })
    }

    /// Clears what the update asks for, if all of it can be filled again.
    async fn clear(&mut self, scheduler: &Scheduler) -> Result<()> {
        let Some(clearing) = scheduler.clearing() else { return Ok(()) };
        refresh::check_sources(&self.context, &self.graph, clearing, &self.analysis).await?;
        let refresh = OpenRefresh::plan(&self.context, &self.graph, clearing).await?;
        self.context.planned_refresh.store(true, Ordering::Relaxed);
        self.finish(&refresh).await?;
        for flow in clearing.flows.iter().filter_map(|id| self.graph.flow(*id)) {
            if flow.is_once() {
                let mut report = FlowReport::new(flow.name(), flow.target(), FlowStatus::Stopped);
                report.notice = Some("runs again: its table is refreshed fully".to_owned());
                self.reports.insert(flow.name().to_owned(), report);
            }
        }
        Ok(())
    }

    async fn finish(&mut self, refresh: &OpenRefresh) -> Result<()> {
        refresh.begin_flows(&self.context).await?;
        // What was inferred of the sources is forgotten by now.
        let analysis = self.context.analyse(&self.graph).await;
        self.understand(analysis);
        refresh.empty_tables(&self.context, &self.analysis).await
    }

    async fn obey(&mut self, scheduler: &mut Scheduler) -> Result<UpdateOutcome> {
        let mut cancelled = false;
        let mut waiting = None;
        loop {
            while let Some(action) = scheduler.next_action() {
                match action {
                    Action::Launch { flow, attempt } => {
                        // What kept a flow from being understood may have passed.
                        if attempt > 1 && !self.analysis.contains_key(&self.name(flow)) {
                            let analysis = self.context.analyse(&self.graph).await;
                            self.understand(analysis);
                        }
                        self.launch(scheduler, flow)?;
                    }
                    Action::Persist { flow } => {
                        let name = self.name(flow);
                        let input = match flow_run::complete(&self.context, &name).await {
                            Ok(()) => Input::Persisted { flow },
                            Err(error) => {
                                self.fail(&name, &error);
                                Input::NotPersisted { flow, retryable: error.is_retryable() }
                            }
                        };
                        tell(scheduler, self.context.now(), input)?;
                    }
                    // The flow sees the stop flag between two batches.
                    Action::Abort { .. } => {}
                    Action::Clear => {
                        self.context.log.state("RESETTING");
                        self.context.log.flush_now().await;
                        let input = match self.clear(scheduler).await {
                            Ok(()) => {
                                self.context.log.state("RUNNING");
                                Input::Cleared
                            }
                            Err(error) => {
                                let retryable = error.is_retryable();
                                self.fail_all(&error);
                                Input::NotCleared { retryable }
                            }
                        };
                        tell(scheduler, self.context.now(), input)?;
                    }
                    Action::Done { outcome } => return Ok(outcome),
                    _ => {
                        return Err(Error::new(
                            ErrorKind::Internal,
                            "the scheduler asks for something unknown",
                        ));
                    }
                }
            }
            self.announce(scheduler);
            self.context.log.flush_if_due().await;
            if self.context.is_stopped() && !cancelled {
                cancelled = true;
                tell(scheduler, self.context.now(), Input::Cancel)?;
                continue;
            }
            let input = match waiting.take() {
                Some(input) => input,
                None => self.wait(scheduler).await?,
            };
            if self.context.is_stopped() && !cancelled {
                // A flow saw the stop before the scheduler did, which has to be told first.
                waiting = Some(input);
                continue;
            }
            tell(scheduler, self.context.now(), input)?;
            // Ends are told before what may start since.
            self.announce(scheduler);
        }
    }

    /// What could not be cleared keeps every flow from starting.
    fn fail_all(&mut self, error: &Error) {
        for (_, flow) in self.graph.flows() {
            let mut report = FlowReport::new(flow.name(), flow.target(), FlowStatus::Stopped);
            report.reason = Some(format!("the update could not begin: {}", error.full_text()));
            report.help = error.help_text().map(str::to_owned);
            self.reports.insert(flow.name().to_owned(), report);
        }
    }

    /// Waits until a flow ends or the scheduler wants to be woken.
    async fn wait(&mut self, scheduler: &Scheduler) -> Result<Input> {
        let deadline = scheduler.next_deadline().map(|due| due.0.saturating_sub(self.context.now().0));
        let sleep = Duration::from_millis(deadline.unwrap_or(500).min(500));
        let ended = tokio::select! {
            ended = self.running.join_next(), if !self.running.is_empty() => ended,
            Some(name) = self.progress.recv() => {
                let flow = self.graph.flow_id(&name);
                // It may have ended since.
                let runs = |flow: &FlowId| matches!(scheduler.state(*flow), Some(state) if state.is_running());
                return Ok(flow.filter(runs).map_or(Input::Wake, |flow| Input::Progress { flow }));
            }
            () = tokio::time::sleep(sleep) => return Ok(Input::Wake),
        };
        match ended {
            None => Ok(Input::Wake),
            Some(Ok((flow, report, Err(error)))) if error.kind() == ErrorKind::SchemaEvolved => {
                Ok(self.go_on_with_new_columns(flow, report).await)
            }
            Some(Ok((flow, report, result))) => {
                Ok(Input::Finished { flow, outcome: self.note(report, result) })
            }
            Some(Err(panic)) => {
                Err(Error::new(ErrorKind::Internal, "a flow ended abnormally").because(panic))
            }
        }
    }

    /// A flow met columns that it did not know, and recorded them. It goes on with them at once; so do flows behind it, once
    /// they start.
    async fn go_on_with_new_columns(&mut self, flow: FlowId, mut report: FlowReport) -> Input {
        let analysis = self.context.analyse(&self.graph).await;
        self.understand(analysis);
        if let Some(before) = self.reports.get(&report.flow) {
            report.add_attempt(before);
        }
        let name = report.flow.clone();
        self.reports.insert(name.clone(), report.clone());
        if let Some(analysis) = self.analysis.get(&name).cloned() {
            self.spawn(flow, name, analysis);
            return Input::Wake;
        }
        let error = self.not_analysed(&name);
        self.reports.remove(&name);
        Input::Finished { flow, outcome: self.note(report, Err(error)) }
    }

    fn not_analysed(&mut self, name: &str) -> Error {
        let why = self.broken.remove(name);
        why.unwrap_or_else(|| Error::new(ErrorKind::Internal, "the flow was not analysed"))
    }

    /// Notes how a flow ended.
    fn note(&mut self, mut report: FlowReport, result: Result<Ended>) -> Outcome {
        let outcome = match result {
            Ok(Ended::Stopped) => {
                report.status = FlowStatus::Stopped;
                Outcome::Stopped
            }
            Ok(Ended::Done) => Outcome::Succeeded,
            Err(error) => {
                report.status = FlowStatus::Failed;
                report.reason = Some(error.full_text());
                report.help = error.help_text().map(str::to_owned);
                Outcome::Failed { retryable: error.is_retryable() }
            }
        };
        if let Some(before) = self.reports.get(&report.flow) {
            report.add_attempt(before);
        }
        self.reports.insert(report.flow.clone(), report);
        outcome
    }

    fn fail(&mut self, name: &str, error: &Error) {
        if let Some(report) = self.reports.get_mut(name) {
            report.status = FlowStatus::Failed;
            report.reason = Some(error.full_text());
            report.help = error.help_text().map(str::to_owned);
        }
    }

    fn name(&self, flow: FlowId) -> String {
        self.graph.flow(flow).map(|flow| flow.name().to_owned()).unwrap_or_default()
    }

    fn launch(&mut self, scheduler: &mut Scheduler, id: FlowId) -> Result<()> {
        let name = self.name(id);
        self.context.log.started(&name);
        let Some(analysis) = self.analysis.get(&name).cloned() else {
            let report = self.fresh_report(id, &name);
            let error = self.not_analysed(&name);
            let outcome = self.note(report, Err(error));
            return tell(scheduler, self.context.now(), Input::Finished { flow: id, outcome });
        };
        self.spawn(id, name, analysis);
        Ok(())
    }

    /// What earlier attempts of the flow did, in this attempt of the update and before.
    fn so_far(&self, name: &str) -> Option<FlowReport> {
        let (earlier, own) = (self.earlier.get(name), self.reports.get(name));
        let mut sum = own.or(earlier)?.clone();
        if let (Some(earlier), Some(_)) = (earlier, own) {
            sum.add_attempt(earlier);
        }
        Some(sum)
    }

    fn fresh_report(&self, id: FlowId, name: &str) -> FlowReport {
        let target = self.graph.flow(id).map(|flow| flow.target().to_owned()).unwrap_or_default();
        FlowReport::new(name, &target, FlowStatus::Completed)
    }

    fn spawn(&mut self, id: FlowId, name: String, analysis: Arc<FlowAnalysis>) {
        let report = self.fresh_report(id, &name);
        let before = self.so_far(&name);
        let context = Arc::clone(&self.context);
        let span = info_span!("flow", name);
        let run = async move {
            let Some(flow) = context.flow(&name) else {
                return (id, report, Err(Error::new(ErrorKind::Internal, "the flow is not defined")));
            };
            context.log.entered(&name, FlowStatus::Planning);
            let run = async {
                match FlowRun::open(&context, flow, &analysis, before).await {
                    Ok(run) => {
                        context.log.entered(&name, FlowStatus::Running);
                        run.run().await
                    }
                    Err(error) => (report.clone(), Err(error)),
                }
            };
            // Code of users runs in here, too: what it does to one flow is no matter of the others.
            let (report, result) = AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|panic| {
                let why = panic.downcast_ref::<String>().map(String::as_str);
                let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
                let error = Error::new(ErrorKind::Internal, "the flow ended abnormally").with("panic", why);
                (report.clone(), Err(error))
            });
            (id, report, result.map_err(|error| error.with("flow", &name)))
        };
        self.running.spawn(run.instrument(span));
    }

    /// Collects the old tombstones of targets whose properties say so. Failing to is no failure of an update. A target that
    /// some flow of it did not bring up to date keeps them: what that flow has planned may need them.
    async fn collect_tombstones(&mut self, scheduler: &Scheduler) {
        let behind = |(id, _): &(FlowId, _)| {
            !matches!(scheduler.state(*id), Some(FlowState::Completed | FlowState::Idle))
        };
        let mut seen: BTreeSet<&str> =
            self.graph.flows().filter(behind).map(|(_, flow)| flow.target()).collect();
        for flow in &self.context.definition.flows {
            let Some(analysis) = self.analysis.get(&flow.name) else { continue };
            let Some(age) = analysis.properties.tombstones_expire_after else { continue };
            if self.context.is_stopped() || !seen.insert(flow.target.as_str()) {
                continue;
            }
            if let Err(error) = retention::collect(&self.context, flow, analysis, age).await
                && let Some(report) = self.reports.get_mut(&flow.name)
            {
                let error = error.full_text();
                report.notice = Some(format!("old tombstones were not collected: {error}"));
            }
        }
    }
}

fn tell(scheduler: &mut Scheduler, now: Timestamp, input: Input) -> Result<()> {
    scheduler.handle(now, input).map_err(|error| {
        Error::new(ErrorKind::Internal, "the driver and its scheduler disagree").because(error)
    })
}
