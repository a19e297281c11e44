//! What is a snapshot, and when is one refused?
//!
//! A snapshot is one complete image of a source at a version. It is a barrier at that version, and a row of each key that
//! the source had: a key that it lacks is deleted there.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::BooleanBuffer;

use crate::{
    batch::{Bound, ChangeBatch, Lookup, Prior, ReadPlan, Reconciled, check_sequence, kept_rows},
    columnar::{
        canonical::{Role, canonical},
        keys::KeyIndex,
        print, snapshot,
    },
    error::CdcError,
    names,
    spec::{CdcSpec, SequenceColumn, StoredAs},
};

/// A snapshot, validated: kept columns in canonical form, each key once.
#[derive(Debug, Clone)]
pub struct SnapshotBatch {
    pub(crate) rows: RecordBatch,
    /// An array of length 1.
    pub(crate) version: ArrayRef,
}

/// When a snapshot is refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SnapshotRules {
    /// A snapshot that deletes more than this fraction of the target's current rows is refused, from 0 to 1; 1 for
    /// any. A failed export is likelier than a source that lost nearly all it had; an empty one deletes all of them.
    pub max_delete_fraction: f64,
    /// One that deletes fewer rows than this is not refused for it.
    pub guard_from_rows: usize,
    /// Whether the snapshot is applied to a target whose tombstones were collected: a key that was deleted after it may
    /// come back.
    pub accept_horizon: bool,
    /// What to do with a version that is not above the last one that was applied.
    pub on_stale: OnStale,
}

impl Default for SnapshotRules {
    fn default() -> Self {
        Self {
            max_delete_fraction: 0.9,
            guard_from_rows: 100,
            accept_horizon: false,
            on_stale: OnStale::Refuse,
        }
    }
}

/// What to do with a snapshot whose version is not above the last one that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStale {
    /// It is refused by name.
    #[default]
    Refuse,
    /// It changes nothing. For a flow that reads its versions again.
    Skip,
}

impl SnapshotBatch {
    /// Takes the rows of a snapshot. `version`: one value of the spec's sequence type.
    ///
    /// # Errors
    /// [`CdcError::SnapshotVersion`] for a version that is NULL or not one value; [`CdcError::NullKey`];
    /// [`CdcError::DuplicateKey`]; [`CdcError::SchemaMismatch`].
    pub fn new(spec: &CdcSpec, source: &RecordBatch, version: &ArrayRef) -> Result<Self, CdcError> {
        if version.len() != 1 || version.logical_nulls().is_some_and(|nulls| nulls.null_count() > 0) {
            let found =
                if version.len() == 1 { "NULL".to_owned() } else { format!("{} values", version.len()) };
            return Err(CdcError::SnapshotVersion { found });
        }
        if version.data_type() != &spec.sequence_type {
            return Err(CdcError::SchemaMismatch {
                what: "the version of a snapshot",
                expected: spec.sequence_type.to_string(),
                found: version.data_type().to_string(),
            });
        }
        let alone = RecordBatch::try_from_iter([("version", ArrayRef::clone(version))])?;
        check_sequence(spec, &alone, version, "the version")
            .map_err(|_| CdcError::SnapshotVersion { found: "a NULL field".to_owned() })?;
        crate::columnar::check_len(source, "snapshot rows")?;
        let rows = kept_rows(spec, source, &BooleanBuffer::new_set(source.num_rows()))?;
        snapshot::check_keys(spec, &rows, "the snapshot")?;
        Ok(Self { rows, version: canonical(version, Role::Identity)? })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// True for a snapshot without a row: the source was empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl CdcSpec {
    /// What must be read before [`CdcSpec::reconcile_snapshot`]: every key, and of an SCD2 target the current versions.
    pub fn snapshot_plan(&self, image: &SnapshotBatch) -> ReadPlan {
        let everything = Lookup { columns: None, bound: None };
        let current = || {
            let at_least = ArrayRef::clone(&image.version);
            Bound { column: names::END_AT.to_owned(), at_least, until: None }
        };
        let bound = (self.stored_as != StoredAs::Scd1).then(current);
        ReadPlan { keys: None, visible: Lookup { columns: None, bound }, hidden: everything }
    }

    /// What must change for the target to show a snapshot too. In an SCD1 target changes that are newer than the snapshot
    /// stay (a hybrid target); rows that the snapshot leaves as they are, are not rewritten.
    ///
    /// # Errors
    /// [`CdcError::OutOfOrderSnapshot`]; [`CdcError::SnapshotDeletesTooMuch`]; [`CdcError::SnapshotBelowHorizon`]; [`CdcError::DuplicateKey`] when the
    /// target has a key twice; [`CdcError::ConflictingClauses`] for a bitemporal target. Nothing is to be changed then.
    pub fn reconcile_snapshot(
        &self,
        prior: &Prior,
        image: &SnapshotBatch,
        rules: &SnapshotRules,
    ) -> Result<Reconciled, CdcError> {
        if self.stored_as == StoredAs::Bitemporal {
            return Err(CdcError::ConflictingClauses {
                condition: "AUTOCDC_SNAPSHOT_REQUIRES_SCD",
                why: "a snapshot flow needs STORED AS SCD TYPE 1 or 2",
            });
        }
        if self.stored_as == StoredAs::Scd1 && self.sequence_column != SequenceColumn::SystemColumn {
            return Err(CdcError::ConflictingClauses {
                condition: "AUTOCDC_SEQUENCE_COLUMN_CONFLICT",
                why: "a target of snapshots keeps their versions in a column of its own",
            });
        }
        snapshot::reconcile(self, prior, image, rules)
    }
}

/// A sequence as text, for messages.
pub(crate) fn version_text(version: &ArrayRef) -> String {
    print::value(version, 0)
}

impl SnapshotBatch {
    /// The snapshot as changes of an SCD1 target: its rows, and the barrier.
    pub(crate) fn as_changes(&self, rows: RecordBatch) -> Result<ChangeBatch, CdcError> {
        ChangeBatch::of_snapshot(rows, &self.version)
    }

    pub(crate) fn index(&self, spec: &CdcSpec) -> Result<KeyIndex, CdcError> {
        Ok(KeyIndex::new(&spec.key_columns(&self.rows)?)?)
    }
}
