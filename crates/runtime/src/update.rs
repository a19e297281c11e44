//! How does an update of a pipeline run? The driver: it obeys the scheduler of `strandline-flow-graph`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use object_store::ObjectStore;
use strandline_flow_graph::{
    Action, Completions, FlowId, FlowState, Graph, Input, Outcome, ResolvedRequest, Scheduler, Settings,
    Timestamp,
};
use strandline_pipeline_sql::{DatasetDefinition, FlowDefinition, PipelineDefinition};
use strandline_table_formats::contract::TableFormat;
use tokio::task::JoinSet;

use crate::{
    analysis::{Analysis, FlowAnalysis},
    clock::Clock,
    error::{Error, ErrorKind, Result},
    flow_run::{self, FlowRun},
    properties::RETRIES,
    report::{FlowReport, FlowStatus, Observer, UpdateReport},
    retention,
};

/// What every flow of an update needs.
pub(crate) struct Context {
    pub(crate) definition: PipelineDefinition,
    pub(crate) pipeline: String,
    pub(crate) format: Arc<dyn TableFormat>,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) epoch: u64,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Context {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
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
}

/// One update, from its first flow to its last.
pub(crate) struct Update {
    context: Arc<Context>,
    graph: Graph,
    analysis: BTreeMap<String, Arc<FlowAnalysis>>,
    /// Flows that could not be analysed; they fail when they would start.
    broken: BTreeMap<String, Error>,
    reports: BTreeMap<String, FlowReport>,
    running: JoinSet<(FlowId, FlowReport, Result<()>)>,
}

impl Update {
    pub(crate) fn new(context: Arc<Context>, graph: Graph, analysis: Analysis) -> Self {
        let mut understood = BTreeMap::new();
        let mut broken = BTreeMap::new();
        for (name, result) in analysis.flows {
            match result {
                Ok(analysis) => drop(understood.insert(name, Arc::new(analysis))),
                Err(error) => drop(broken.insert(name, error)),
            }
        }
        Self {
            context,
            graph,
            analysis: understood,
            broken,
            reports: BTreeMap::new(),
            running: JoinSet::new(),
        }
    }

    /// Runs the update to its end.
    pub(crate) async fn run(mut self) -> Result<UpdateReport> {
        let started = self.context.clock.now();
        let mut completions = Vec::new();
        for flow in self.context.definition.flows.iter().filter(|flow| flow.once) {
            if flow_run::completed_at(&self.context, &flow.name).await?.is_some() {
                completions.push(flow.name.clone());
            }
        }
        let completions: Completions = completions.into_iter().collect();
        let settings = settings(&self.context.definition)?;
        let mut scheduler =
            Scheduler::start(self.graph.clone(), &ResolvedRequest::refresh_all(), &completions, settings);
        self.obey(&mut scheduler).await?;
        self.collect_tombstones(&scheduler).await;
        let flows = self.closing_reports(&scheduler);
        let elapsed = self.context.clock.now().saturating_sub(started);
        Ok(UpdateReport { flows, elapsed })
    }

    async fn obey(&mut self, scheduler: &mut Scheduler) -> Result<()> {
        let mut cancelled = false;
        loop {
            while let Some(action) = scheduler.next_action() {
                match action {
                    Action::Launch { flow, .. } => self.launch(scheduler, flow)?,
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
                    Action::Done { .. } => return Ok(()),
                    _ => {
                        return Err(Error::new(
                            ErrorKind::Internal,
                            "the scheduler asks for something unknown",
                        ));
                    }
                }
            }
            if self.context.is_stopped() && !cancelled {
                cancelled = true;
                tell(scheduler, self.context.now(), Input::Cancel)?;
                continue;
            }
            let input = self.wait(scheduler).await?;
            if self.context.is_stopped() && !cancelled {
                // A flow may have seen the stop before the scheduler was told of it.
                cancelled = true;
                tell(scheduler, self.context.now(), Input::Cancel)?;
            }
            tell(scheduler, self.context.now(), input)?;
        }
    }

    /// Waits until a flow ends or the scheduler wants to be woken.
    async fn wait(&mut self, scheduler: &Scheduler) -> Result<Input> {
        let deadline = scheduler.next_deadline().map(|due| due.0.saturating_sub(self.context.now().0));
        let sleep = std::time::Duration::from_millis(deadline.unwrap_or(500).min(500));
        let ended = tokio::select! {
            ended = self.running.join_next(), if !self.running.is_empty() => ended,
            () = tokio::time::sleep(sleep) => return Ok(Input::Wake),
        };
        match ended {
            None => Ok(Input::Wake),
            Some(Ok((flow, report, result))) => {
                Ok(Input::Finished { flow, outcome: self.note(report, result) })
            }
            Some(Err(panic)) => {
                Err(Error::new(ErrorKind::Internal, "a flow ended abnormally").because(panic))
            }
        }
    }

    /// Notes how a flow ended.
    fn note(&mut self, mut report: FlowReport, result: Result<()>) -> Outcome {
        let outcome = match result {
            Ok(()) if self.context.is_stopped() => {
                report.status = FlowStatus::Stopped;
                Outcome::Stopped
            }
            Ok(()) => Outcome::Succeeded,
            Err(error) => {
                report.status = FlowStatus::Failed;
                report.reason = Some(error.full_text());
                report.help = error.help_text().map(str::to_owned);
                Outcome::Failed { retryable: error.is_retryable() }
            }
        };
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
        self.context.observer.started(&name);
        let target = self.graph.flow(id).map(|flow| flow.target().to_owned()).unwrap_or_default();
        let report = FlowReport::new(&name, &target, FlowStatus::Completed);
        let Some(analysis) = self.analysis.get(&name).cloned() else {
            let error = self
                .broken
                .remove(&name)
                .unwrap_or_else(|| Error::new(ErrorKind::Internal, "the flow was not analysed"));
            // What could not be understood once is not looked at again within the update.
            self.note(report, Err(error));
            let outcome = Outcome::Failed { retryable: false };
            return tell(scheduler, self.context.now(), Input::Finished { flow: id, outcome });
        };
        let context = Arc::clone(&self.context);
        self.running.spawn(async move {
            let Some(flow) = context.flow(&name) else {
                return (id, report, Err(Error::new(ErrorKind::Internal, "the flow is not defined")));
            };
            let mut tables = context.definition.datasets.iter().filter_map(DatasetDefinition::table);
            let table = tables.find(|table| table.name == flow.target);
            let (report, result) = match FlowRun::open(&context, flow, &analysis, table).await {
                Ok(run) => run.run().await,
                Err(error) => (report, Err(error)),
            };
            (id, report, result.map_err(|error| error.with("flow", &name)))
        });
        Ok(())
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

    fn closing_reports(&mut self, scheduler: &Scheduler) -> Vec<FlowReport> {
        let mut reports = Vec::new();
        for (id, flow) in self.graph.flows() {
            let state = scheduler.state(id);
            let mut report = self
                .reports
                .remove(flow.name())
                .unwrap_or_else(|| FlowReport::new(flow.name(), flow.target(), FlowStatus::Stopped));
            match state {
                Some(FlowState::Skipped { failed }) => {
                    report.status = FlowStatus::Skipped;
                    report.reason = Some(format!("flow {} did not succeed", self.name(failed)));
                }
                Some(FlowState::Idle) => report.status = FlowStatus::Idle,
                _ => {}
            }
            self.context.observer.ended(&report);
            reports.push(report);
        }
        reports
    }
}

/// The scheduler's settings, from the pipeline's.
fn settings(definition: &PipelineDefinition) -> Result<Settings> {
    let Some(text) = definition.settings.get(RETRIES) else { return Ok(Settings::default()) };
    let retries = text.trim().parse().map_err(|_| {
        Error::new(ErrorKind::Definition, format!("{RETRIES} must be a whole number")).with("value", text)
    })?;
    Ok(Settings::default().with_max_flow_retry_attempts(retries))
}

fn tell(scheduler: &mut Scheduler, now: Timestamp, input: Input) -> Result<()> {
    scheduler.handle(now, input).map_err(|error| {
        Error::new(ErrorKind::Internal, "the driver and its scheduler disagree").because(error)
    })
}
