//! Which columns does the target have that the source lacks? They stay, and no event of the flow authors them.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema};

use super::{
    CdcSpec, ColumnSelection, StoredAs, resolve, schema_of,
    side_columns::side_schema,
    widen::{missing, wider},
};
use crate::{columnar::leaves::quoted, definition::Fact, error::CdcError, names};

impl CdcSpec {
    /// The same flow into a target that exists already.
    ///
    /// Columns of the target that the source lacks are *absent*: they follow the kept columns of the source, in the
    /// target's order, and no event authors them. An updated row keeps their values, a new row has NULL there. Absence
    /// is a matter of the source's schema alone: a NULL in a column that the source has is a value.
    ///
    /// A spec under which nothing is absent comes back as it is.
    ///
    /// A column that is wider on one side has the wider type from then on: integers and floats of more bits, decimals of
    /// more digits, structs of more fields. Values of the source are brought to it; the target's rows may still have the
    /// narrower one when they come as [`crate::Prior`].
    ///
    /// With default tracking, or all but a list, absent columns are tracked too: the history of a target depends on all it shows.
    ///
    /// # Errors
    /// [`CdcError::TargetColumnType`] for a column that fits the target's of its name on neither side;
    /// [`CdcError::Drift`] for a key or a sequence of another type.
    pub fn with_target_columns(&self, target: &Schema) -> Result<Self, CdcError> {
        let mut kept: Vec<FieldRef> = self.kept.fields().iter().cloned().collect();
        let mut absent_leaves = self.absent_leaves.clone();
        for stored in target.fields() {
            if names::is_reserved(stored.name()) {
                self.check_system_column(stored)?;
                continue;
            }
            if self.stored_as == StoredAs::Scd1 && stored.name() == self.sequence_column_name() {
                check_sequence(stored, Fact::SequenceType, &self.sequence_type)?;
            }
            let stored_as_key = self.key_names().contains(&stored.name().as_str());
            match kept.iter_mut().find(|own| own.name() == stored.name()) {
                None => kept.push(Arc::new(stored.as_ref().clone().with_nullable(true))),
                Some(own) if own.data_type() == stored.data_type() => {}
                Some(own) if stored_as_key => {
                    return Err(drift(Fact::Keys, stored, own));
                }
                Some(own) => {
                    let Some(wide) = wider(stored.data_type(), own.data_type()) else {
                        return Err(CdcError::TargetColumnType {
                            column: stored.name().clone(),
                            found: own.data_type().clone(),
                            expected: stored.data_type().clone(),
                        });
                    };
                    missing(&quoted(own.name()), own.data_type(), &wide, &mut absent_leaves);
                    *own = Arc::new(own.as_ref().clone().with_data_type(wide));
                }
            }
        }
        if kept.iter().eq(self.kept.fields()) {
            return Ok(self.clone());
        }
        absent_leaves.sort();
        absent_leaves.dedup();
        let kept = schema_of(kept);
        let mut spec = Self {
            payload_by_name: resolve::payload_by_name(&kept, &self.keys),
            tracked: self.tracked.clone(),
            absent_leaves,
            kept,
            ..self.clone()
        };
        if !matches!(self.track_history, ColumnSelection::Only(_)) {
            spec.tracked.extend(self.kept.fields().len()..spec.kept.fields().len());
        }
        spec.target = resolve::target_schema(&spec);
        spec.side = side_schema(&spec);
        Ok(spec)
    }

    /// The same flow, with the key `own` called `name` in the target.
    #[must_use]
    pub fn with_key_named(&self, own: &str, name: &str) -> Self {
        let Some(at) = self.kept.fields().iter().position(|field| field.name() == own && own != name) else {
            return self.clone();
        };
        let named = |(i, field): (usize, &FieldRef)| {
            if i == at { Arc::new(field.as_ref().clone().with_name(name)) } else { Arc::clone(field) }
        };
        let mut spec = self.clone();
        spec.kept = schema_of(self.kept.fields().iter().enumerate().map(named));
        spec.renamed.push((at, own.to_owned()));
        spec.target = resolve::target_schema(&spec);
        spec.side = side_schema(&spec);
        spec
    }

    /// What the source calls a kept column.
    pub(crate) fn source_name<'n>(&'n self, at: usize, field: &'n Field) -> &'n str {
        self.renamed.iter().find(|(renamed, _)| *renamed == at).map_or(field.name(), |(_, name)| name)
    }

    /// The type of a sequence never changes.
    fn check_system_column(&self, stored: &Field) -> Result<(), CdcError> {
        match (stored.name().as_str(), &self.system_type) {
            (names::SEQUENCE_AT | names::START_AT | names::END_AT, _) => {
                check_sequence(stored, Fact::SequenceType, &self.sequence_type)
            }
            (names::SYSTEM_START_AT | names::SYSTEM_END_AT, Some(system)) => {
                check_sequence(stored, Fact::SystemType, system)
            }
            _ => Ok(()),
        }
    }

    /// Names of the target's columns that the source lacks, see [`CdcSpec::with_target_columns`].
    pub fn absent_names(&self) -> Vec<&str> {
        self.kept.fields().iter().skip(self.present).map(|field| field.name().as_str()).collect()
    }

    pub(crate) fn has_absent(&self) -> bool {
        self.present < self.kept.fields().len() || !self.absent_leaves.is_empty()
    }
}

fn drift(fact: Fact, recorded: &Field, now: &Field) -> CdcError {
    let text = |field: &Field| format!("{} {}", field.name(), field.data_type());
    CdcError::Drift { fact, recorded: text(recorded), now: text(now) }
}

/// A sequence never changes its type.
fn check_sequence(stored: &Field, fact: Fact, now: &DataType) -> Result<(), CdcError> {
    if stored.data_type() == now {
        return Ok(());
    }
    Err(CdcError::Drift { fact, recorded: stored.data_type().to_string(), now: now.to_string() })
}
