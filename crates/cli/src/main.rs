//! The binary: the only place that knows terminals.

mod args;
mod failure;
mod load;
mod rows;
mod show;

use std::{process::ExitCode, sync::Arc};

use clap::Parser as _;
use strandline_runtime::HandoffReport;

use crate::{
    args::{Args, Command, PipelineArgs, StorageArgs},
    failure::{FLOW_FAILED, Failure, OVERLAP},
    load::Purpose,
};

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(Failure::wrong(format!("error: no threads: {error}")))),
    };
    end(runtime.block_on(obey(args.command)))
}

fn end(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.text.is_empty() {
                show::say_err(failure.text.trim_end());
            }
            ExitCode::from(failure.code)
        }
    }
}

async fn obey(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run { pipeline, json } => run(&pipeline, json).await,
        Command::DryRun { pipeline, json } => dry_run(&pipeline, json).await,
        Command::Handoff { pipeline, target, json } => handoff(&pipeline, target.as_deref(), json).await,
        Command::Query { sql, storage, output } => {
            let (schema, batches) = strandline_runtime::query(&open(&storage)?, &sql).await?;
            rows::print(&schema, &batches, output)
        }
        Command::Status { storage, json } => {
            let status = strandline_runtime::status(&open(&storage)?).await?;
            show::say(&if json { to_json(&status)? } else { show::status(&status) });
            Ok(())
        }
    }
}

/// Opens a storage that must exist: asking a question must not make a folder.
fn open(storage: &StorageArgs) -> Result<strandline_runtime::Storage, Failure> {
    if !storage.storage.is_dir() {
        return Err(Failure::wrong(format!(
            "error: there is no storage folder {}\n  help: `strandline run` makes it",
            storage.storage.display()
        )));
    }
    load::storage(&storage.storage, storage.format)
}

async fn run(pipeline: &PipelineArgs, json: bool) -> Result<(), Failure> {
    let project = load::project(pipeline, Purpose::Run)?.observed_by(Arc::new(show::Progress::new()));
    let report = project.run().await?;
    show::say(&if json { to_json(&report)? } else { show::report(&report) });
    if report.is_success() { Ok(()) } else { Err(Failure { text: String::new(), code: FLOW_FAILED }) }
}

async fn dry_run(pipeline: &PipelineArgs, json: bool) -> Result<(), Failure> {
    let dry = load::project(pipeline, Purpose::Look)?.dry_run().await?;
    show::say(&if json { to_json(&dry)? } else { show::dry_run(&dry) });
    Ok(())
}

async fn handoff(pipeline: &PipelineArgs, target: Option<&str>, json: bool) -> Result<(), Failure> {
    let reports = load::project(pipeline, Purpose::Look)?.handoff(target).await?;
    show::say(&if json { to_json(&reports)? } else { show::handoff(&reports) });
    let clean = reports.iter().all(HandoffReport::is_clean);
    if clean { Ok(()) } else { Err(Failure { text: String::new(), code: OVERLAP }) }
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map_err(|e| Failure::wrong(format!("error: the report can't be printed: {e}")))
}
