//! How is an update started, and how does it end?

use std::sync::{Arc, atomic::Ordering};

use strandline_runtime::{Mode, UpdateRequest};

use crate::{
    args::{PipelineArgs, SelectionArgs},
    failure::{FLOW_FAILED, Failure, STOPPED},
    load::{self, Purpose},
    show,
    signals::Signals,
    to_json,
};

/// The setting that `--trigger-interval` gives.
const TRIGGER_INTERVAL: &str = "pipelines.trigger.interval";

/// How an update runs, and how its end is told.
pub(crate) struct How {
    pub(crate) continuous: bool,
    pub(crate) trigger_interval: Option<String>,
    pub(crate) json: bool,
}

/// Runs an update until it ends, or until a signal stops it.
pub(crate) async fn run(pipeline: &PipelineArgs, selection: SelectionArgs, how: How) -> Result<(), Failure> {
    let settings = how.trigger_interval.map(|interval| (TRIGGER_INTERVAL.to_owned(), interval));
    let loaded = load::pipeline(pipeline, Purpose::Run, settings).await?;
    let is_continuous = how.continuous || loaded.continuous;
    let mode = if is_continuous { Mode::Continuous } else { Mode::Triggered };
    let project = loaded.project.in_mode(mode).interactive(show::is_watched() && !is_continuous);
    let project = project.observed_by(Arc::new(show::Progress::new()));
    let signals = Signals::watch(project.stop_flag())?;
    let report = project.run_request(&request(selection)).await?;
    show::say(&if how.json { to_json(&report)? } else { show::report(&report) });
    let signal = signals.received.load(Ordering::Relaxed);
    match signal {
        _ if report.is_success() => Ok(()),
        0 => Err(Failure::code(FLOW_FAILED)),
        // To be stopped is how a continuous update ends.
        _ if is_continuous && report.is_stopped() => Ok(()),
        signal => Err(Failure::code(if report.is_stopped() { STOPPED + signal } else { FLOW_FAILED })),
    }
}

/// Finds out what an update would do.
pub(crate) async fn dry_run(
    pipeline: &PipelineArgs,
    selection: SelectionArgs,
    json: bool,
) -> Result<(), Failure> {
    let loaded = load::pipeline(pipeline, Purpose::Look, None).await?;
    let mode = if loaded.continuous { Mode::Continuous } else { Mode::Triggered };
    let dry = loaded.project.in_mode(mode).dry_run_request(&request(selection)).await?;
    show::say(&if json { to_json(&dry)? } else { show::dry_run(&dry) });
    Ok(())
}

fn request(selection: SelectionArgs) -> UpdateRequest {
    let SelectionArgs { refresh, full_refresh, full_refresh_all, reset_checkpoint } = selection;
    let all = if full_refresh_all { UpdateRequest::full_refresh_all() } else { UpdateRequest::refresh_all() };
    all.with_refresh(refresh).with_full_refresh(full_refresh).with_checkpoint_reset(reset_checkpoint)
}
