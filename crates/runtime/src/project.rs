//! A pipeline with the place where it keeps its tables: what can be done with it?
//!
//! [`Project::run`], [`Project::dry_run`], [`status`](crate::status()) and [`query`] are all that a user of a pipeline does.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path as FsPath, PathBuf},
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde::Serialize;
use serde_json::Value;
use strandline_flow_graph::{Flow, Graph, Mode, ResolvedRequest, UpdateOutcome, UpdateRequest};
use strandline_pipeline_sql::{DatasetDefinition, FlowDefinition, FlowQuery, InputKind, PipelineDefinition};
use strandline_table_formats::contract::TableFormat;
use tokio::sync::{Semaphore, mpsc};
use tracing::{Instrument, info_span};

use crate::{
    analysis::{self, Analysis, FlowAnalysis, Place, SnapshotProviders, Work},
    clock::{Clock, SystemClock},
    error::{Error, ErrorKind, Result},
    events::{self, EventLog},
    query::ask,
    recorded,
    report::{NoObserver, Observer, UpdateReport},
    settings::{self, Settings},
    sinks::{self, BatchSink, Registered, SinkPlan},
    snapshots::SnapshotProvider,
    state::Lease,
    storage::Storage,
    update::{Attempt, Context, Update},
};

/// A pipeline and its storage.
#[derive(Clone)]
pub struct Project {
    name: String,
    definition: PipelineDefinition,
    storage: Storage,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    stop: Arc<AtomicBool>,
    mode: Mode,
    interactive: bool,
    snapshots: SnapshotProviders,
    sinks: Registered,
    pub(crate) imported: BTreeMap<String, Value>,
}

impl fmt::Debug for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Project")
            .field("name", &self.name)
            .field("storage", &self.storage)
            .finish_non_exhaustive()
    }
}

/// What a pipeline would do, found out without writing anything.
#[derive(Debug, Clone, Serialize)]
pub struct DryRun {
    /// The graph, a line a flow.
    pub graph: String,
    /// Flows in the order in which they would start.
    pub flows: Vec<FlowOutline>,
}

/// A flow, as a dry run understood it.
#[derive(Debug, Clone, Serialize)]
pub struct FlowOutline {
    /// The flow.
    pub flow: String,
    /// Its target.
    pub target: String,
    /// What it does: `append`, `sink`, `materialized view`, or the shape of its target.
    pub kind: String,
    /// Keys of a CDC flow.
    pub keys: Vec<String>,
    /// What becomes of it in the update.
    pub asked: Asked,
    /// Columns that it gives its target, each with its type.
    pub columns: Vec<(String, String)>,
}

/// What an update is asked to do with a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// To go on where it stopped.
    Refresh,
    /// To fill its table anew, which is emptied before.
    FullRefresh,
    /// To read its source anew; its table keeps its rows.
    ResetCheckpoint,
    /// Nothing: the update is for other targets.
    Exclude,
}

impl Asked {
    fn of(flow: &Flow, request: &ResolvedRequest) -> Self {
        match flow.target() {
            target if request.empties(target) => Self::FullRefresh,
            _ if request.resets(flow) => Self::ResetCheckpoint,
            target if request.selects(target) => Self::Refresh,
            _ => Self::Exclude,
        }
    }
}

impl Project {
    /// A pipeline named `name`. Relative paths of `read_files` start from `folders[n]` for text of source file `n`.
    pub fn new(name: &str, definition: PipelineDefinition, folders: &[PathBuf], storage: Storage) -> Self {
        let mut definition = definition;
        for query in queries(&mut definition) {
            resolve_paths(query, folders);
        }
        resolve_sinks(&mut definition, folders);
        Self {
            name: name.to_owned(),
            definition,
            storage,
            clock: Arc::new(SystemClock),
            observer: Arc::new(NoObserver),
            stop: Arc::default(),
            mode: Mode::Triggered,
            interactive: false,
            snapshots: SnapshotProviders::new(),
            sinks: Registered::default(),
            imported: BTreeMap::new(),
        }
    }

    /// Sets whether flows end when they have taken what is there, or go on until the update is stopped.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Sets whether somebody waits for the update: then a failed one is not tried again as a whole, unless the pipeline's
    /// settings say how often.
    #[must_use]
    pub fn interactive(self, interactive: bool) -> Self {
        Self { interactive, ..self }
    }

    /// Takes the images of `flow`, which is `FROM SNAPSHOT CALLBACK`, from `provider`.
    #[must_use]
    pub fn with_snapshots(mut self, flow: &str, provider: Arc<dyn SnapshotProvider>) -> Self {
        self.snapshots.insert(flow.to_owned(), provider);
        self
    }

    /// Gives the batches of the flows into the sink `name`, which the pipeline declares USING foreachBatch, to `sink`.
    #[must_use]
    pub fn with_sink(mut self, name: &str, sink: Arc<dyn BatchSink>) -> Self {
        self.sinks.insert(name, sink);
        self
    }

    /// Watches updates.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer, ..self }
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// A flag that ends an update between two batches once it is set.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// The pipeline's definition, with paths resolved.
    pub fn definition(&self) -> &PipelineDefinition {
        &self.definition
    }

    /// Where it keeps its tables.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    pub(crate) async fn analyse(&self) -> Result<(Graph, Analysis), Vec<Error>> {
        let graph = self.definition.graph_for(self.mode).map_err(|errors| {
            errors.into_iter().map(|e| Error::new(ErrorKind::Definition, e.to_string())).collect::<Vec<_>>()
        })?;
        sinks::check_registered(&self.definition, &self.sinks).map_err(|error| vec![error])?;
        let place = Place {
            store: &self.storage.store,
            format: self.storage.format.as_ref(),
            snapshots: &self.snapshots,
            sinks: &self.sinks,
        };
        let analysis = analysis::analyse(&self.definition, &graph, place).await;
        Ok((graph, analysis))
    }

    /// Validates everything and writes nothing.
    ///
    /// # Errors
    /// All errors that can be found.
    pub async fn dry_run(&self) -> Result<DryRun, Vec<Error>> {
        self.dry_run_request(&UpdateRequest::refresh_all()).await
    }

    /// As [`Project::dry_run`], of an update of what `request` selects.
    ///
    /// # Errors
    /// All errors that can be found.
    pub async fn dry_run_request(&self, request: &UpdateRequest) -> Result<DryRun, Vec<Error>> {
        let mut errors: Vec<_> = self.settings().err().into_iter().collect();
        let (graph, analysis) = self.analyse().await?;
        let request = checked(request, &graph, &mut errors);
        let mut flows = Vec::new();
        let mut analysed = analysis.flows;
        for &id in graph.topological_order() {
            let Some(flow) = graph.flow(id) else { continue };
            let name = flow.name().to_owned();
            match analysed.remove(&name) {
                Some(Ok(understood)) => {
                    if let Err(error) = check_target(self.storage.format.as_ref(), &understood) {
                        errors.push(error.with("flow", &name));
                    }
                    flows.push(FlowOutline {
                        target: flow.target().to_owned(),
                        flow: name,
                        asked: Asked::of(flow, &request),
                        kind: match &understood.work {
                            Work::Append => "append".to_owned(),
                            Work::Sink(_) => "sink".to_owned(),
                            Work::View(_) => "materialized view".to_owned(),
                            Work::Cdc(cdc) => cdc.spec.stored_as().to_string(),
                        },
                        keys: match &understood.work {
                            Work::Append | Work::Sink(_) | Work::View(_) => Vec::new(),
                            Work::Cdc(cdc) => cdc.spec.key_names().into_iter().map(str::to_owned).collect(),
                        },
                        columns: columns(&understood.target),
                    });
                }
                Some(Err(error)) => errors.push(error),
                None => {}
            }
        }
        if errors.is_empty() { Ok(DryRun { graph: graph.to_string(), flows }) } else { Err(errors) }
    }

    fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::new(&self.definition, self.mode)?;
        if self.interactive && !self.definition.settings.contains_key(settings::UPDATE_RETRIES) {
            settings.attempts = settings.attempts.with_retries(Some(0));
        }
        Ok(settings)
    }

    /// Runs one update of everything: in triggered mode every flow takes what is there, and ends.
    ///
    /// # Errors
    /// As [`Project::run_request`].
    pub async fn run(&self) -> Result<UpdateReport, Vec<Error>> {
        self.run_request(&UpdateRequest::refresh_all()).await
    }

    /// Runs one update of what `request` selects. What is to be refreshed fully, or reset, is cleared first.
    ///
    /// A flow that fails is tried again where that may help, and then the update as a whole. What failed in the end is
    /// told in the report; flows that need it are skipped, others go on.
    ///
    /// # Errors
    /// Errors of the definition and of the request, all that can be found, before anything runs; `Busy` when another
    /// process runs the pipeline; else the state store's.
    pub async fn run_request(&self, request: &UpdateRequest) -> Result<UpdateReport, Vec<Error>> {
        let settings = self.settings().map_err(|error| vec![error])?;
        let asked = events::asked(request);
        self.storage.check_reachable().await.map_err(|error| vec![error])?;
        let (graph, analysis) = self.analyse().await?;
        let (mut errors, analysis) = split_definition_errors(analysis);
        let request = checked(request, &graph, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let run = Run { graph, request, asked, settings };
        self.run_analysed(run, analysis).await.map_err(|error| vec![error])
    }

    async fn run_analysed(&self, run: Run, analysis: Analysis) -> Result<UpdateReport> {
        self.storage.check_guarantees().await?;
        let clock = Arc::clone(&self.clock);
        let mut lease = Lease::acquire(&self.storage, clock, run.settings.lease_duration).await?;
        let ended = self.run_leased(run, analysis, &mut lease).await;
        lease.release().await;
        ended
    }

    async fn run_leased(&self, run: Run, analysis: Analysis, lease: &mut Lease) -> Result<UpdateReport> {
        let Run { graph, request, asked, settings } = run;
        let store = Arc::clone(&self.storage.store);
        let log = Arc::new(EventLog::new(
            Arc::clone(&store),
            Arc::clone(&self.clock),
            (&self.name, lease.epoch),
            &self.definition,
            Arc::clone(&self.observer),
        ));
        log.begin(&self.definition, asked, self.mode).await?;
        let (progress, mut told) = mpsc::unbounded_channel();
        let context = Arc::new(Context {
            definition: self.definition.clone(),
            pipeline: recorded::pipeline_name(&store, &self.name, self.storage.format.name()).await?,
            format: Arc::clone(&self.storage.format),
            store,
            clock: Arc::clone(&self.clock),
            log: Arc::clone(&log),
            epoch: lease.epoch,
            stop: Arc::clone(&self.stop),
            turns: Mutex::default(),
            snapshots: self.snapshots.clone(),
            continuous: self.mode == Mode::Continuous,
            trigger_interval: settings.trigger_interval,
            planned_refresh: AtomicBool::new(false),
            batches: Semaphore::new(settings.scheduler.permits()),
            progress,
            sinks: self.sinks.clone(),
            imported: self.imported.clone(),
        });
        let span = info_span!("update", pipeline = %self.name, id = lease.epoch);
        let attempts = attempts(&context, (graph, request), settings, analysis, &mut told);
        // Without the lease nothing may go on: flows are dropped where they are, as if the process had been killed.
        let ended = tokio::select! {
            biased;
            lost = lease.lost() => Err(lost),
            ended = attempts.instrument(span) => ended,
        };
        match ended {
            Ok(report) => {
                log.end(&report).await?;
                Ok(report)
            }
            Err(error) => {
                log.broke_off(&error).await;
                Err(error)
            }
        }
    }
}

/// Tries the update until it succeeds, or another attempt would not help.
async fn attempts(
    context: &Arc<Context>,
    (graph, mut request): (Graph, ResolvedRequest),
    mut settings: Settings,
    mut analysis: Analysis,
    told: &mut mpsc::UnboundedReceiver<String>,
) -> Result<UpdateReport> {
    let mut earlier: Option<UpdateReport> = None;
    loop {
        // What flows of an earlier attempt told is not of this one.
        while told.try_recv().is_ok() {}
        let update = Update::new(Arc::clone(context), graph.clone(), analysis, told).after(earlier.as_ref());
        let (outcome, retryable, ended) = match update.run(&request, &settings).await {
            Ok(Attempt { report, outcome, retryable, retry }) => {
                let report = match &earlier {
                    Some(earlier) => report.after(earlier),
                    None => report,
                };
                request = retry;
                (outcome, retryable, Ok(report))
            }
            Err(error) => (UpdateOutcome::Failed, error.is_retryable(), Err(error)),
        };
        let Some(wait) = settings.attempts.after(outcome, retryable) else { return ended };
        context.log.state("WAITING_FOR_RETRY");
        context.log.flush_now().await;
        context.pause(wait).await;
        if context.is_stopped() {
            return ended;
        }
        earlier = ended.ok().or(earlier);
        analysis = context.analyse(&graph).await;
    }
}

/// The request by names of the graph; what is wrong with it goes to `errors`.
fn checked(request: &UpdateRequest, graph: &Graph, errors: &mut Vec<Error>) -> ResolvedRequest {
    request.check(graph).unwrap_or_else(|refused| {
        errors.extend(refused.into_iter().map(|e| Error::new(ErrorKind::Definition, e.to_string())));
        ResolvedRequest::refresh_all()
    })
}

/// An update that is about to run.
struct Run {
    graph: Graph,
    request: ResolvedRequest,
    /// The request as it was asked, for the event log.
    asked: Value,
    settings: Settings,
}

/// Refuses what the flow's target can't be in this format. Files and code hold what they are given.
fn check_target(format: &dyn TableFormat, flow: &FlowAnalysis) -> Result<()> {
    match &flow.work {
        Work::Sink(SinkPlan::Files(_) | SinkPlan::Code(_)) => Ok(()),
        _ => Ok(format.check_schema(&flow.target)?),
    }
}

/// Errors of the definition stop an update before it starts; other errors are those of one flow.
fn split_definition_errors(analysis: Analysis) -> (Vec<Error>, Analysis) {
    let is_definition =
        |error: &Error| matches!(error.kind(), ErrorKind::Definition | ErrorKind::Unsupported);
    let mut errors = Vec::new();
    let mut flows = BTreeMap::new();
    for (name, result) in analysis.flows {
        match result {
            Err(error) if is_definition(&error) => errors.push(error),
            other => drop(flows.insert(name, other)),
        }
    }
    (errors, Analysis { flows })
}

pub(crate) fn columns(schema: &SchemaRef) -> Vec<(String, String)> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
}

fn queries(definition: &mut PipelineDefinition) -> impl Iterator<Item = &mut FlowQuery> {
    let views = definition.datasets.iter_mut().filter_map(|dataset| match dataset {
        DatasetDefinition::View(view) => Some(&mut view.query),
        _ => None,
    });
    views.chain(definition.flows.iter_mut().flat_map(FlowDefinition::queries_mut))
}

fn resolve_paths(query: &mut FlowQuery, folders: &[PathBuf]) {
    for input in &mut query.inputs {
        let path = match &mut input.kind {
            InputKind::ReadFiles(files) => &mut files.path,
            InputKind::Table(table) => &mut table.path,
            InputKind::ReadKafka(_)
            | InputKind::Dataset(_)
            | InputKind::LastSnapshotVersion
            | InputKind::CurrentSnapshotVersion => continue,
        };
        if FsPath::new(path).is_absolute() || path.contains("://") {
            continue;
        }
        if let Some(folder) = folders.get(input.span.file) {
            *path = folder.join(path.trim_start_matches("./")).to_string_lossy().into_owned();
        }
    }
}

/// Paths of sinks start from the pipeline's file, as those of `read_files` do.
fn resolve_sinks(definition: &mut PipelineDefinition, folders: &[PathBuf]) {
    for dataset in &mut definition.datasets {
        let DatasetDefinition::Sink(sink) = dataset else { continue };
        let Some(folder) = folders.get(sink.span.file) else { continue };
        let paths = sink.options.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case("path"));
        for (_, path) in paths.filter(|(_, path)| !FsPath::new(path).is_absolute() && !path.contains("://")) {
            *path = folder.join(path.trim_start_matches("./")).to_string_lossy().into_owned();
        }
    }
}

/// Runs a SQL query over the tables of a storage, by their names. Names are taken as they are written.
///
/// A history table `t` can be read as of a moment, `as_of(t, business, system)`, and as it is now, `t_current`; see
/// [`AsOf`](crate::AsOf) for what that means.
///
/// # Errors
/// `Definition` for a query that can't be understood.
pub async fn query(storage: &Storage, sql: &str) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    ask::ask(storage, sql).await
}
