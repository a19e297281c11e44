//! `scenarios/flows`: graphs of flows, updates of them, and what each flow and table must then be.
//!
//! A flow reads files of its own, or a table of the pipeline. Rows have one column, `id`.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use object_store::memory::InMemory;
use serde_json::json;
use strandline_runtime::{Error, FlowReport, Mode, Observer, UpdateReport, state::LEASE_DURATION};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, FORMATS, Format};

#[derive(Debug)]
struct Flow {
    name: String,
    target: String,
    once: bool,
    after: Vec<String>,
    reads: Option<String>,
}

impl Flow {
    /// `name -> target [once] [reads table] [after flow, ..]`
    fn parse(text: &str) -> Self {
        let (head, after) = text.split_once(" after ").unwrap_or((text, ""));
        let (head, reads) =
            head.split_once(" reads ").map_or((head, None), |(head, reads)| (head, Some(reads)));
        let (head, once) = head.strip_suffix(" once").map_or((head, false), |head| (head, true));
        let (name, target) = head.split_once(" -> ").expect("name -> target");
        Self {
            name: name.to_owned(),
            target: target.to_owned(),
            once,
            after: list(after),
            reads: reads.map(str::to_owned),
        }
    }

    fn sql(&self) -> String {
        let Self { name, target, once, after, reads } = self;
        let after =
            if after.is_empty() { String::new() } else { format!("DEPENDS ON ({})", after.join(", ")) };
        let files = format!(
            "read_files('in/{name}/*.json', format => 'json', schema => 'id BIGINT', maxFilesPerTrigger => 1)"
        );
        let (once, source) = match (once, reads) {
            (true, _) => ("ONCE", files),
            (false, Some(table)) => ("", format!("STREAM({table})")),
            (false, None) => ("", format!("STREAM {files}")),
        };
        format!("CREATE FLOW {name} {after} AS INSERT INTO {once} {target} BY NAME SELECT * FROM {source};\n")
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// The order in which flows started.
#[derive(Default)]
struct Starts(Mutex<Vec<String>>);

impl Observer for Starts {
    fn started(&self, flow: &str) {
        self.0.lock().unwrap().push(flow.to_owned());
    }

    fn progressed(&self, _: &FlowReport) {}

    fn ended(&self, flow: &FlowReport) {
        self.0.lock().unwrap().push(format!("end of {}", flow.flow));
    }
}

struct Case {
    bench: Bench,
    store: FaultStore<InMemory>,
    flows: Vec<Flow>,
    offers: usize,
    report: Option<Result<UpdateReport, Vec<Error>>>,
    starts: Arc<Starts>,
}

impl Case {
    fn new(format: Format) -> Self {
        let store = FaultStore::new(InMemory::new());
        let bench = Bench::over(format, Arc::new(store.clone()));
        Self { bench, store, flows: Vec::new(), offers: 0, report: None, starts: Arc::default() }
    }

    fn sql(&self) -> String {
        let mut targets: Vec<&str> = self.flows.iter().map(|flow| flow.target.as_str()).collect();
        targets.sort_unstable();
        targets.dedup();
        let tables = targets.iter().map(|target| format!("CREATE STREAMING TABLE {target};\n"));
        let retries = "SET pipelines.maxFlowRetryAttempts = 0;\n".to_owned();
        [retries].into_iter().chain(tables).chain(self.flows.iter().map(Flow::sql)).collect()
    }

    fn offer(&mut self, flow: &str, ids: &str) {
        self.offers += 1;
        let rows: Vec<_> = list(ids).iter().map(|id| json!({ "id": id.parse::<i64>().unwrap() })).collect();
        self.bench.file(&format!("in/{flow}/{:03}.json", self.offers), &rows);
    }

    fn target(&self, flow: &str) -> String {
        self.flows.iter().find(|other| other.name == flow).expect("a flow of the case").target.clone()
    }

    async fn run(&mut self, how: &str, during: &[&str]) {
        for flow in &self.flows {
            fs::create_dir_all(self.bench.path().join(format!("in/{}", flow.name))).unwrap();
        }
        let mut broken = Vec::new();
        for line in during {
            let commit = |flow: &str| format!("tables/{}/_delta_log/00000000000000000001", self.target(flow));
            if let Some(flow) = line.strip_prefix("fails ") {
                self.bench.raw_file(&format!("in/{flow}/000.json"), "{");
                broken.push(self.bench.path().join(format!("in/{flow}/000.json")));
            } else if let Some(flow) = line.strip_prefix("slow ") {
                (0..20)
                    .for_each(|n| self.bench.file(&format!("in/{flow}/{n:03}.json"), &[json!({ "id": n })]));
            } else if let Some(flow) = line.strip_prefix("loses the answer to ") {
                self.store.faults().add(Rule::nth(1, Fault::After).on(commit(flow)));
            } else if let Some(flow) =
                line.strip_prefix("killed ").and_then(|l| l.strip_suffix(" after commit"))
            {
                self.store.faults().add(Rule::nth(1, Fault::After).on(commit(flow)).and_dies());
            } else if let Some(flow) = line.strip_prefix("killed ").and_then(|l| l.strip_suffix(" midway")) {
                self.store.faults().add(Rule::nth(1, Fault::Before).on(commit(flow)).and_dies());
            } else {
                panic!("unknown line: {line}");
            }
        }
        let mut project = self.bench.project(&self.sql());
        self.starts = Arc::default();
        project = project.observed_by(Arc::clone(&self.starts) as Arc<dyn Observer>);
        let other = (how == "beside another process").then(|| self.bench.path().join("storage"));
        if how == "continuous" {
            project = project.in_mode(Mode::Continuous);
        }
        self.report = Some(match other {
            Some(folder) => {
                // The lock is the operating system's, so it holds between two openings of one process too.
                let mut storage = self.bench.storage.clone();
                storage.folder = Some(folder);
                let clock = Arc::new(strandline_runtime::clock::SystemClock);
                let held = strandline_runtime::state::Lease::acquire(&storage, clock, LEASE_DURATION).await;
                let second = self.bench.project_over(&self.sql(), storage).run().await;
                drop(held.unwrap());
                second
            }
            None => project.run().await,
        });
        self.store.faults().revive();
        for file in &broken {
            fs::remove_file(file).unwrap();
        }
    }

    async fn expect(&self, what: &str) {
        if let Some(text) = what.strip_prefix("error ") {
            let errors = self.report.as_ref().unwrap().as_ref().expect_err("nothing may run");
            let told: String = errors.iter().map(Error::full_text).collect();
            assert!(told.contains(text), "{told}");
            assert!(self.starts.0.lock().unwrap().is_empty());
        } else if let Some(rows) = what.strip_prefix("rows ") {
            let (table, ids) = rows.split_once(' ').unwrap();
            let stored = self.bench.storage.format.open(table).await.unwrap();
            let found = match stored {
                None => Vec::new(),
                Some(_) => self.bench.rows(&format!("SELECT id FROM {table} ORDER BY id")).await,
            };
            let found: Vec<String> = found.iter().map(|row| row["id"].to_string()).collect();
            let ids = if ids == "nothing" { Vec::new() } else { list(ids) };
            assert_eq!(found, ids, "{table}");
        } else if let Some(pairs) = what.strip_prefix("order ") {
            let starts = self.starts.0.lock().unwrap();
            let place = |what: &str| starts.iter().position(|start| start == what).expect("it ran");
            for pair in list(pairs) {
                let (first, second) = pair.split_once(" < ").unwrap();
                assert!(place(&format!("end of {first}")) < place(second), "{pair}: {starts:?}");
            }
            let distinct: std::collections::BTreeSet<_> = starts.iter().collect();
            assert_eq!(distinct.len(), starts.len(), "each flow runs once: {starts:?}");
        } else {
            let report = self.report.as_ref().unwrap().as_ref().unwrap_or_else(|errors| panic!("{errors:?}"));
            for pair in list(what) {
                let (flow, status) = pair.split_once(' ').unwrap();
                let report = report.flows.iter().find(|report| report.flow == flow).expect("a flow");
                assert_eq!(report.status.to_string(), status, "{report:#?}");
            }
        }
    }
}

async fn play(text: &str, format: Format) {
    let mut case = Case::new(format);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(lines[0].starts_with("title "));
    let mut rest = lines[1..].iter().peekable();
    while let Some(line) = rest.next() {
        let (word, tail) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "flow" => case.flows.push(Flow::parse(tail)),
            "offer" => {
                let (flow, ids) = tail.split_once(' ').unwrap();
                case.offer(flow, ids);
            }
            "run" => {
                let mut during = Vec::new();
                while let Some(line) = rest.next_if(|line| {
                    ["fails", "slow", "killed", "loses"].iter().any(|word| line.starts_with(word))
                }) {
                    during.push(*line);
                }
                case.run(tail, &during).await;
            }
            "expect" => case.expect(tail).await,
            _ => panic!("unknown line: {line}"),
        }
    }
}

#[tokio::test]
async fn flows_of_every_scenario_end_as_they_must() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/flows");
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 16, "{names:?}");
    for path in names {
        let text = fs::read_to_string(&path).unwrap();
        // Where something happens to a commit, it must go through the store.
        let formats =
            if text.contains("killed") || text.contains("loses") { &FORMATS[1..] } else { &FORMATS };
        for format in formats {
            eprintln!("{} on {format:?}", path.display());
            play(&text, *format).await;
        }
    }
}
