//! Which flows mean nothing, and which batches do not fit what a flow means?

use super::{Batch, BatchKind, Physical, Scenario, Selection, StoredAs, Type};

impl Scenario {
    /// Whether the options make sense together.
    ///
    /// # Errors
    /// The condition by which the flow is refused, with its name first.
    pub fn check_definition(&self) -> Result<(), String> {
        let bitemporal = self.stored_as == StoredAs::Bitemporal;
        let scd2 = self.stored_as == StoredAs::Scd2;
        let partial = self.ignore_null_updates.is_some();
        let masked = self.columns_to_update.is_some();
        let snapshots = self.batches().any(|batch| matches!(batch.kind, BatchKind::Snapshot(_)));
        let changes = self.batches().any(|batch| batch.kind == BatchKind::Changes);
        let names_key = |selection: &Selection| match selection {
            Selection::Only(names) => names.iter().any(|name| self.keys.contains(name)),
            Selection::All | Selection::Except(_) => false,
        };
        let rules = [
            (self.keys.is_empty(), "AUTOCDC_EMPTY_KEYS: keys are what identifies a row"),
            (
                masked && (partial || bitemporal),
                "AUTOCDC_COLUMNS_TO_UPDATE_CONFLICT: COLUMNS TO UPDATE stands alone",
            ),
            (
                self.ignore_null_updates.as_ref().is_some_and(names_key),
                "IGNORE NULL UPDATES ON names key: a key is always provided",
            ),
            (
                self.truncate_when.is_some() && self.stored_as != StoredAs::Scd1,
                "AUTOCDC_TRUNCATE_REQUIRES_SCD1: history cannot be truncated",
            ),
            (
                self.retract_when.is_some() && !bitemporal,
                "AUTOCDC_RETRACT_REQUIRES_BITEMPORAL: only beliefs can be taken back",
            ),
            (
                self.track_history != Selection::All && !scd2,
                "AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2: there are no versions to open",
            ),
            (
                snapshots && changes && (partial || masked),
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_IGNORE_NULL_UNSUPPORTED: a snapshot is whole",
            ),
        ];
        rules.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, message)| Err(message.to_owned()))
    }

    /// Whether the source's types of a batch fit: the keys and sequences exactly, the others without loss.
    ///
    /// # Errors
    /// The condition by which the batch is refused, with its name first.
    pub fn check_types(&self, batch: &Batch) -> Result<(), String> {
        for (column, (kind, physical)) in &batch.types {
            let wanted = self.type_of(column).unwrap_or(kind);
            let condition = if self.sequence.contains(column) || self.system_sequence.contains(column) {
                "AUTOCDC_INVALID_STATE.SEQUENCING_TYPE_DRIFT"
            } else if self.keys.contains(column) {
                "AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT"
            } else if !fits((kind, *physical), (wanted, self.physical_of(column))) {
                "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE"
            } else {
                continue;
            };
            return Err(format!("{condition}: column `{column}`"));
        }
        Ok(())
    }
}

/// Whether every value of one type is a value of the other, once fields that it lacks are NULL.
fn fits(from: (&Type, Option<Physical>), to: (&Type, Option<Physical>)) -> bool {
    match (from, to) {
        ((Type::Int, Some(Physical::Int32)), (Type::Int, None)) => true,
        ((_, from), (_, to)) if from != to => false,
        ((Type::Struct(from), _), (Type::Struct(to), _)) => from
            .iter()
            .all(|(name, from)| to.iter().any(|(field, to)| field == name && fits((from, None), (to, None)))),
        ((Type::List(from), _), (Type::List(to), _)) => fits((from, None), (to, None)),
        ((from, _), (to, _)) => from == to,
    }
}
