//! Appending: whatever else happened, unless it moved the side state on or changed a type.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{
    commit::{Committer, already_applied, changed_schema, committed},
    feed::Recorder,
    plan,
};
use crate::{
    contract::{BatchStream, CommitOutcome, CommitStamp, Committed, Result},
    metadata::{DataFile, FileChanges, MetadataOutcome, Operation, TableHead},
    schema::{check_keys_kept, retyped, widened},
};

/// So often an append is tried on top of other writers' commits.
const APPEND_TRIES: usize = 64;

impl Committer {
    pub(super) async fn append(
        &self,
        base: &TableHead,
        batches: BatchStream,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        let (schema, add) = self.written(base, &base.schema, batches).await?;
        if retyped(&base.schema, &schema) {
            return self.append_wider(base, &schema, add, stamp).await;
        }
        let mut head = base.clone();
        for _ in 0..APPEND_TRIES {
            // Another writer may have changed the schema meanwhile: ours must fit it still.
            if head.state != base.state {
                // Our stamp names the state of the base: with it the table's would be set back.
                return Ok(CommitOutcome::Conflict { latest: head.version, left_over: files_of(&add) });
            }
            let checked =
                widened(&head.schema, &schema).and_then(|s| Ok((s, already_applied(&head, stamp)?)));
            let after = match checked {
                Ok((after, None)) => after,
                Ok((_, Some(batch))) => {
                    // Not ours, as was looked after the conflict.
                    self.remove_files(&add).await;
                    return Ok(CommitOutcome::AlreadyApplied { batch });
                }
                Err(e) => {
                    self.remove_files(&add).await;
                    return Err(e);
                }
            };
            if retyped(&head.schema, &after) || retyped(&schema, &after) {
                // A column got wider meanwhile, or would have to: that is not done without reading the table.
                return Ok(CommitOutcome::Conflict { latest: head.version, left_over: files_of(&add) });
            }
            let change = FileChanges {
                add: add.clone(),
                remove: Vec::new(),
                schema: changed_schema(&head, &after),
                definition: None,
                operation: Operation::Append,
                ..FileChanges::default()
            };
            match self.files.metadata.commit(&head, change, Some(stamp)).await? {
                MetadataOutcome::Committed(landed) => return Ok(committed(landed.version, &add, 0, &[])),
                MetadataOutcome::Conflict { .. } => {
                    let newest = self.files.metadata.head(None).await?;
                    if let Some(version) = self.landed(&head, &newest, &add, stamp).await? {
                        return Ok(committed(version, &add, 0, &[]));
                    }
                    head = newest;
                }
            }
        }
        Ok(CommitOutcome::Conflict { latest: head.version, left_over: files_of(&add) })
    }

    /// Appends rows some columns of which are wider than the table's: every file is written anew with the wider columns, so
    /// that no reader meets two types in one column.
    async fn append_wider(
        &self,
        base: &TableHead,
        schema: &SchemaRef,
        mut add: Vec<DataFile>,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        let appended: u64 = add.iter().map(|file| file.rows).sum();
        let changed = match Recorder::new(&self.files, base, schema, self.options.files)? {
            Some(recorder) => recorder.appended(&add).await?,
            None => Vec::new(),
        };
        let mut plan = plan::Plan::default();
        plan::add_the_rest(&mut plan.groups, base);
        let mut writer = self.writer(base, schema)?;
        let none = RecordBatch::new_empty(Arc::clone(schema));
        let rewritten = match check_keys_kept(&base.keys, &base.schema, schema) {
            Ok(()) => self.rewrite(&mut writer, base, &plan, &none).await,
            refused => refused,
        };
        match rewritten {
            Ok(()) => add.extend(writer.finish().await?),
            Err(e) => {
                writer.abandon().await;
                self.remove_files(&add).await;
                self.remove_files(&changed).await;
                return Err(e);
            }
        }
        let change = FileChanges {
            add,
            changed,
            remove: base.files.to_vec(),
            schema: Some(Arc::clone(schema)),
            operation: Operation::Merge,
            ..FileChanges::default()
        };
        Ok(match self.land(base, change, stamp, 0).await? {
            CommitOutcome::Committed(landed) => {
                CommitOutcome::Committed(Committed { rows_written: appended, ..landed })
            }
            other @ (CommitOutcome::AlreadyApplied { .. } | CommitOutcome::Conflict { .. }) => other,
        })
    }
}

fn files_of(add: &[DataFile]) -> Vec<String> {
    add.iter().map(|file| file.path.clone()).collect()
}
