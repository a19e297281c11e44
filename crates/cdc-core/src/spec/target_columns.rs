//! Which columns does the target have that the source lacks? They stay, and no event of the flow authors them.

use std::sync::Arc;

use arrow_schema::{FieldRef, Schema};

use super::{CdcSpec, StoredAs, resolve, schema_of};
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
    /// # Errors
    /// [`CdcError::TargetColumnType`] for a column of another type than the target's; [`CdcError::AbsentColumns`] for
    /// absent columns of an SCD2 target.
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
        if self.stored_as == StoredAs::Scd2 {
            return Err(CdcError::AbsentColumns {
                stored_as: self.stored_as,
                columns: absent.iter().map(|field| field.name().clone()).collect(),
            });
        }
        let kept = schema_of(self.kept.fields().iter().cloned().chain(absent));
        Ok(Self {
            payload_by_name: resolve::payload_by_name(&kept, &self.keys),
            target: resolve::target_schema(self.stored_as, &kept, &self.sequence_column, &self.sequence_type),
            side: resolve::side_schema(&kept, &self.sequence_type, true),
            kept,
            ..self.clone()
        })
    }

    /// Names of the target's columns that the source lacks, see [`CdcSpec::with_target_columns`].
    pub fn absent_names(&self) -> Vec<&str> {
        self.kept.fields().iter().skip(self.present).map(|field| field.name().as_str()).collect()
    }

    pub(crate) fn has_absent(&self) -> bool {
        self.present < self.kept.fields().len()
    }
}
