//! The binary: the only place that knows terminals.

mod args;
mod failure;
mod graph;
mod init;
mod load;
mod place;
mod rows;
mod run;
mod show;
mod signals;

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::Parser as _;
use strandline_runtime::{
    HandoffReport,
    clock::{Clock, SystemClock},
    maintenance::{self, MaintenanceRequest},
};

use crate::{
    args::{Args, Command, PipelineArgs},
    failure::{Failure, OVERLAP},
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
        Command::Init { folder } => init::init(&folder),
        Command::Run { pipeline, selection, continuous, trigger_interval, json } => {
            let how = run::How { continuous, trigger_interval, json };
            run::run(&pipeline, selection, how).await
        }
        Command::DryRun { pipeline, selection, json } => run::dry_run(&pipeline, selection, json).await,
        Command::Graph(args) => graph::graph(&args).await,
        Command::Handoff { pipeline, target, json } => handoff(&pipeline, target.as_deref(), json).await,
        Command::Query { sql, storage, output } => {
            let (schema, batches) = strandline_runtime::query(&load::existing(&storage).await?, &sql).await?;
            rows::print(&schema, &batches, output)
        }
        Command::Maintain { tables, storage, retain, force, dry_run, json } => {
            let retain = Duration::from_secs_f64(retain * 24.0 * 3600.0);
            let request = MaintenanceRequest { tables, retain, force, dry_run };
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let done = maintenance::maintain(&load::existing(&storage).await?, &request, &clock).await?;
            show::say(&if json { to_json(&done)? } else { show::maintenance(&done) });
            Ok(())
        }
        Command::Status { storage, json } => {
            let status = strandline_runtime::status(&load::existing(&storage).await?).await?;
            show::say(&if json { to_json(&status)? } else { show::status(&status) });
            Ok(())
        }
    }
}

async fn handoff(pipeline: &PipelineArgs, target: Option<&str>, json: bool) -> Result<(), Failure> {
    let reports = load::project(pipeline, Purpose::Look).await?.handoff(target).await?;
    show::say(&if json { to_json(&reports)? } else { show::handoff(&reports) });
    let clean = reports.iter().all(HandoffReport::is_clean);
    if clean { Ok(()) } else { Err(Failure::code(OVERLAP)) }
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map_err(|e| Failure::wrong(format!("error: the report can't be printed: {e}")))
}
