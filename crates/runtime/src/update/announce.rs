//! When is it told how a flow ended? As soon as it is certain: a failed attempt may be followed by another one.

use std::collections::BTreeSet;

use strandline_flow_graph::{Flow, FlowId, FlowState, Scheduler};

use super::Update;
use crate::report::{FlowReport, FlowStatus, Observer};

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Told {
    ended: BTreeSet<FlowId>,
    retried: BTreeSet<(FlowId, u32)>,
}

impl Update<'_> {
    /// Tells that the update runs, unless something is to be cleared before, and which flows wait for their turn.
    pub(super) fn announce_queued(&self, scheduler: &Scheduler) {
        if scheduler.clearing().is_none() {
            self.context.log.state("RUNNING");
        }
        for (id, flow) in self.graph.flows() {
            if scheduler.state(id) == Some(FlowState::Queued) {
                self.context.log.entered(flow.name(), FlowStatus::Queued);
            }
        }
    }

    /// Tells of flows that ended, and of attempts that failed, since the last call.
    pub(super) fn announce(&mut self, scheduler: &Scheduler) {
        for (id, flow) in self.graph.flows() {
            match scheduler.state(id) {
                Some(FlowState::Waiting { attempt, .. }) if self.told.retried.insert((id, attempt)) => {
                    if let Some(report) = self.reports.get(flow.name()) {
                        self.context.log.retries(report);
                    }
                }
                Some(state) if state.is_final() && self.told.ended.insert(id) => {
                    let mut report = self.closing_report(flow, state);
                    if let Some(earlier) = self.earlier.get(flow.name()) {
                        report.add_attempt(earlier);
                    }
                    self.context.log.ended(&report);
                }
                _ => {}
            }
        }
    }

    /// What each flow did, in the order of the pipeline's text.
    pub(super) fn closing_reports(&mut self, scheduler: &Scheduler) -> Vec<FlowReport> {
        self.announce(scheduler);
        let state = |id| scheduler.state(id).unwrap_or(FlowState::Stopped);
        self.graph.flows().map(|(id, flow)| self.closing_report(flow, state(id))).collect()
    }

    fn closing_report(&self, flow: &Flow, state: FlowState) -> FlowReport {
        let known = self.reports.get(flow.name()).cloned();
        let mut report =
            known.unwrap_or_else(|| FlowReport::new(flow.name(), flow.target(), FlowStatus::Stopped));
        match state {
            FlowState::Skipped { failed } => {
                report.status = FlowStatus::Skipped;
                report.reason = Some(format!("flow {} did not succeed", self.name(failed)));
            }
            FlowState::Idle => report.status = FlowStatus::Idle,
            FlowState::Excluded => report.status = FlowStatus::Excluded,
            FlowState::Stopped => report.status = FlowStatus::Stopped,
            FlowState::NotCleared => report.status = FlowStatus::Failed,
            _ => {}
        }
        report
    }
}
