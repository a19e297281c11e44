//! Which columns does the target have that the source lacks? They stay, and no event of the flow authors them.

use std::sync::Arc;

use arrow_schema::{FieldRef, Schema};

use super::{CdcSpec, resolve, schema_of, side_columns::side_schema};
use crate::{error::CdcError, names};

impl CdcSpec {
    /// The same flow into a target that exists already.
    ///
    /// Columns of the target that the source lacks are *absent*: they follow the kept columns of the source, in the
    /// target's order, and no event authors them. An updated row keeps their values, a new row has NULL there. Absence
    /// is a matter of the source's schema alone: a NULL in a column that the source has is a value.
    ///
    /// A spec under which nothing is absent comes back as it is.
    ///
    /// With default tracking, absent columns are tracked too: the history of a target depends on all it shows.
    ///
    /// # Errors
    /// [`CdcError::TargetColumnType`] for a column of another type than the target's.
    pub fn with_target_columns(&self, target: &Schema) -> Result<Self, CdcError> {
        let mut absent: Vec<FieldRef> = Vec::new();
        for stored in target.fields().iter().filter(|field| !names::is_reserved(field.name())) {
            match self.kept.field_with_name(stored.name()) {
                Ok(kept) if kept.data_type() == stored.data_type() => {}
                Ok(kept) => {
                    return Err(CdcError::TargetColumnType {
                        column: stored.name().clone(),
                        found: kept.data_type().clone(),
                        expected: stored.data_type().clone(),
                    });
                }
                Err(_) => absent.push(Arc::new(stored.as_ref().clone().with_nullable(true))),
            }
        }
        if absent.is_empty() {
            return Ok(self.clone());
        }
        let kept = schema_of(self.kept.fields().iter().cloned().chain(absent));
        let mut spec = Self {
            payload_by_name: resolve::payload_by_name(&kept, &self.keys),
            tracked: self.tracked.clone(),
            kept,
            ..self.clone()
        };
        if self.tracks_all {
            spec.tracked.extend(self.kept.fields().len()..spec.kept.fields().len());
        }
        spec.target = resolve::target_schema(&spec);
        spec.side = side_schema(&spec);
        Ok(spec)
    }

    /// Names of the target's columns that the source lacks, see [`CdcSpec::with_target_columns`].
    pub fn absent_names(&self) -> Vec<&str> {
        self.kept.fields().iter().skip(self.present).map(|field| field.name().as_str()).collect()
    }

    pub(crate) fn has_absent(&self) -> bool {
        self.present < self.kept.fields().len()
    }
}
