//! A commit's stamp as transaction actions.

use std::collections::BTreeMap;

use deltalake_core::kernel::Transaction;

use crate::{
    contract::{CommitStamp, Result, StateVersion, WriterId},
    error::{Error, ErrorKind},
};

const PREFIX: &str = "strandline/";
/// Application whose version is the state version.
pub(super) const STATE: &str = "strandline/state";
/// Application whose version is the epoch.
pub(super) const EPOCH: &str = "strandline/epoch";

/// What the log says about batches, state and epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    pub(super) batches: BTreeMap<WriterId, u64>,
    pub(super) state: StateVersion,
    pub(super) epoch: u64,
}

impl Marks {
    /// Takes a transaction into account; those of others are none of our business.
    pub(super) fn apply(&mut self, app: &str, version: i64) -> Result<()> {
        if !app.starts_with(PREFIX) {
            return Ok(());
        }
        let version = u64::try_from(version)
            .map_err(|_| Error::new(ErrorKind::Corrupt, format!("`{app}` has the version {version}")))?;
        match app {
            STATE => self.state = StateVersion(version),
            EPOCH => self.epoch = self.epoch.max(version),
            app => {
                if let Some(writer) = writer(app) {
                    self.batches.insert(writer, version);
                }
            }
        }
        Ok(())
    }
}

/// The transactions of a stamp; the epoch never falls.
pub(super) fn transactions(stamp: &CommitStamp, epoch: u64) -> Result<Vec<Transaction>> {
    let version = |n: u64| {
        i64::try_from(n)
            .map_err(|_| Error::new(ErrorKind::Invalid, format!("{n} is too great a number for a stamp")))
    };
    Ok(vec![
        Transaction::new(app(&stamp.writer), version(stamp.batch)?),
        Transaction::new(STATE, version(stamp.state.0)?),
        Transaction::new(EPOCH, version(epoch.max(stamp.epoch))?),
    ])
}

/// A stamp for human readers of the log.
pub(super) fn json(stamp: &CommitStamp) -> serde_json::Value {
    serde_json::json!({
        "pipeline": stamp.writer.pipeline,
        "flow": stamp.writer.flow,
        "incarnation": stamp.writer.incarnation,
        "batch": stamp.batch,
        "state": stamp.state.0,
        "epoch": stamp.epoch,
    })
}

/// A writer's application id.
pub(super) fn app(writer: &WriterId) -> String {
    format!("{PREFIX}{}/{}/{}", escaped(&writer.pipeline), escaped(&writer.flow), writer.incarnation)
}

fn writer(app: &str) -> Option<WriterId> {
    let mut parts = app.strip_prefix(PREFIX)?.split('/');
    let (pipeline, flow, incarnation) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Some(WriterId {
        pipeline: unescaped(pipeline),
        flow: unescaped(flow),
        incarnation: incarnation.parse().ok()?,
    })
}

fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

fn unescaped(name: &str) -> String {
    name.replace("%2F", "/").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_survive_their_application_ids() {
        for (pipeline, flow) in [("p", "f"), ("a/b", "c%2Fd"), ("", "%"), ("state", "epoch")] {
            let id = WriterId { pipeline: pipeline.into(), flow: flow.into(), incarnation: 7 };
            assert_eq!(writer(&app(&id)), Some(id));
        }
        assert_eq!(writer(STATE), None);
        assert_eq!(writer("strandline/a/b/c/d"), None);
    }
}
