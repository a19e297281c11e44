//! A commit's stamp, in the table's properties and in the summary of its snapshot.
//!
//! Summaries are forgotten with their snapshots, properties stay: both are set by the same commit, and both have all that
//! is known at that version, so that an older one needs nobody else's.

use std::collections::BTreeMap;

use iceberg::spec::TableMetadata;
use serde::{Deserialize, Serialize};

use super::chain;
use crate::{
    contract::{CommitStamp, Result, StateVersion, WriterId},
    error::{Error, ErrorKind},
};

/// Property, and line of a summary, with what all batches so far said about themselves.
pub(super) const MARKS: &str = "strandline.marks";
/// Line of a summary with what this commit says about itself.
pub(super) const STAMP: &str = "strandline.stamp";

/// Batches, state and epoch at a version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) batches: BTreeMap<WriterId, u64>,
    pub(super) state: StateVersion,
    pub(super) epoch: u64,
}

#[derive(Serialize, Deserialize)]
struct Written {
    state: u64,
    epoch: u64,
    batches: Vec<Batch>,
}

#[expect(clippy::struct_field_names, reason = "a writer's batch is its number")]
#[derive(Serialize, Deserialize)]
struct Batch {
    pipeline: String,
    flow: String,
    incarnation: u64,
    batch: u64,
}

impl Batch {
    fn of(writer: &WriterId, batch: u64) -> Self {
        Self {
            pipeline: writer.pipeline.clone(),
            flow: writer.flow.clone(),
            incarnation: writer.incarnation,
            batch,
        }
    }
}

impl Marks {
    /// The marks at a version: those of its snapshot or of the nearest one before it that has some.
    pub(super) fn at(metadata: &TableMetadata, snapshot: Option<i64>) -> Result<Self> {
        let newest = metadata.current_snapshot_id();
        let property = metadata.properties().get(MARKS);
        if snapshot == newest
            && let Some(property) = property
        {
            return Self::from_text(property);
        }
        let in_summary = |id| {
            chain::of(metadata, id)
                .find_map(|snapshot| snapshot.summary().additional_properties.get(MARKS).cloned())
        };
        match (in_summary(snapshot), property) {
            (Some(text), _) => Self::from_text(&text),
            // Nobody stamped a snapshot that is still known: the property is older than all of them.
            (None, Some(property)) if snapshot.is_some() && in_summary(newest).is_none() => {
                Self::from_text(property)
            }
            (None, _) => Ok(Self::default()),
        }
    }

    /// The marks after a stamped commit.
    pub(super) fn after(mut self, stamp: &CommitStamp) -> Self {
        self.batches.insert(stamp.writer.clone(), stamp.batch);
        Self { state: stamp.state, epoch: self.epoch.max(stamp.epoch), ..self }
    }

    /// As they are written.
    pub(super) fn to_text(&self) -> Result<String> {
        let batches = self.batches.iter().map(|(writer, batch)| Batch::of(writer, *batch)).collect();
        text(&Written { state: self.state.0, epoch: self.epoch, batches })
    }

    fn from_text(text: &str) -> Result<Self> {
        let written: Written = serde_json::from_str(text).map_err(|e| {
            let message = format!("`{MARKS}`, which says what was committed, can't be read");
            Error::new(ErrorKind::Corrupt, message).because(e)
        })?;
        let one = |batch: Batch| {
            let (pipeline, flow) = (batch.pipeline, batch.flow);
            (WriterId { pipeline, flow, incarnation: batch.incarnation }, batch.batch)
        };
        let batches = written.batches.into_iter().map(one).collect();
        Ok(Self { batches, state: StateVersion(written.state), epoch: written.epoch })
    }
}

/// A stamp for human readers of the table's history.
pub(super) fn stamp_text(stamp: &CommitStamp) -> Result<String> {
    let batches = vec![Batch::of(&stamp.writer, stamp.batch)];
    text(&Written { state: stamp.state.0, epoch: stamp.epoch, batches })
}

fn text(written: &Written) -> Result<String> {
    serde_json::to_string(written)
        .map_err(|e| Error::new(ErrorKind::Internal, "a stamp can't be written").because(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_and_epochs_never_fall() {
        let writer = |flow: &str| WriterId { pipeline: "p \"q\"".into(), flow: flow.into(), incarnation: 7 };
        let stamp = |flow, batch, epoch| CommitStamp {
            writer: writer(flow),
            batch,
            state: StateVersion(batch + 100),
            epoch,
        };
        let marks = Marks::default().after(&stamp("a/b", 3, 9)).after(&stamp("c", 4, 2));
        assert_eq!((marks.epoch, marks.state, marks.batches.len()), (9, StateVersion(104), 2));
        assert_eq!(Marks::from_text(&marks.to_text().unwrap()).unwrap(), marks);
        for text in ["", "{}", "[1]", "{\"state\":-1,\"epoch\":0,\"batches\":[]}"] {
            assert_eq!(Marks::from_text(text).unwrap_err().kind(), ErrorKind::Corrupt, "{text}");
        }
    }
}
