//! How is a snapshot compared with what a target shows?

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::{ArrowError, Field};
use arrow_select::{
    concat::concat_batches,
    interleave::interleave,
    take::{take, take_arrays},
};

use super::{
    check_rows, column,
    gather::column_or_null,
    ids, key_of,
    keys::{KeyIndex, UNKNOWN},
    ordinals::ordinals,
    payload::{PayloadOrder, RowRef},
    row_number, scd1, unchanged,
};
use crate::{
    algebra::order::Ordinal,
    barriers::{BarrierKind, Keep},
    batch::{Counts, Prior, Reconciled, Reconciliation, RowChanges},
    error::CdcError,
    names,
    snapshot::{OnStale, SnapshotBatch, SnapshotRules, version_text},
    spec::{CdcSpec, StoredAs, schema_of},
};

/// Refuses rows of which two have one key.
pub(crate) fn check_keys(spec: &CdcSpec, rows: &RecordBatch, what: &'static str) -> Result<(), CdcError> {
    let index = KeyIndex::new(&spec.key_columns(rows)?)?;
    let repeats =
        || index.groups().iter().enumerate().filter(|(row, group)| index.first_row(**group) != *row);
    match repeats().next() {
        None => Ok(()),
        Some((row, _)) => {
            Err(CdcError::DuplicateKey { what, key: key_of(spec, rows, row)?, count: repeats().count() })
        }
    }
}

pub(crate) fn reconcile(
    spec: &CdcSpec,
    prior: &Prior,
    image: &SnapshotBatch,
    rules: &SnapshotRules,
) -> Result<Reconciled, CdcError> {
    let counts = Counts { events: image.len() as u64, ..Counts::default() };
    if let Some(last) = prior.barriers.greatest(BarrierKind::Snapshot) {
        let at = ordinals(&[&last, &image.version])?;
        let stale = matches!(at.as_slice(), [last, version] if version <= last);
        match rules.on_stale {
            OnStale::Refuse if stale => {
                let (version, last) = (version_text(&image.version), version_text(&last));
                return Err(CdcError::OutOfOrderSnapshot { version, last });
            }
            OnStale::Skip if stale => return done(unchanged(spec, prior, counts)),
            OnStale::Refuse | OnStale::Skip => {}
        }
    }
    if let Some(horizon) = prior.barriers.greatest(BarrierKind::Horizon).filter(|_| !rules.accept_horizon) {
        return Err(CdcError::SnapshotBelowHorizon { horizon: version_text(&horizon) });
    }
    let current = current_rows(spec, prior)?;
    let keys = spec.key_columns(&prior.visible.batch)?;
    let keys = RecordBatch::try_new(schema_of(spec.key_fields()), take_arrays(&keys, &current, None)?)?;
    check_keys(spec, &keys, "the target")?;
    let rows = with_absent(spec, prior, image, &current)?;
    let reconciled = match spec.stored_as {
        StoredAs::Scd1 => done(scd1::reconcile(spec, prior, &image.as_changes(rows)?)?)?,
        StoredAs::Scd2 | StoredAs::Bitemporal => versions(spec, prior, image, &rows, &current)?,
    };
    guard(&reconciled, current.len(), image, rules)?;
    Ok(reconciled)
}

fn done(outcome: Reconciliation) -> Result<Reconciled, CdcError> {
    match outcome {
        Reconciliation::Done(done) => Ok(done),
        Reconciliation::ReadMore(_) => Err(CdcError::SchemaMismatch {
            what: "target rows",
            expected: "every column".to_owned(),
            found: "some of them".to_owned(),
        }),
    }
}

///
fn guard(
    reconciled: &Reconciled,
    rows: usize,
    image: &SnapshotBatch,
    rules: &SnapshotRules,
) -> Result<(), CdcError> {
    let deleted = usize::try_from(reconciled.counts.deleted).unwrap_or(usize::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a fraction of row counts needs no exact division")]
    let fraction = deleted as f64 / rows.max(1) as f64;
    if deleted < rules.guard_from_rows || fraction <= rules.max_delete_fraction {
        return Ok(());
    }
    Err(CdcError::SnapshotDeletesTooMuch {
        version: version_text(&image.version),
        deleted,
        rows,
        allowed: rules.max_delete_fraction,
        at_least: rules.guard_from_rows,
    })
}

/// The current rows: of an SCD2 target, those without an end.
fn current_rows(spec: &CdcSpec, prior: &Prior) -> Result<UInt32Array, CdcError> {
    let visible = &prior.visible.batch;
    check_rows(&prior.visible, "target rows")?;
    check_rows(&prior.hidden, "side rows")?;
    let ends = match spec.stored_as {
        StoredAs::Scd1 => None,
        StoredAs::Scd2 | StoredAs::Bitemporal => {
            let field = Field::new(names::END_AT, spec.sequence_type.clone(), true);
            Some(column(visible, &field, "target rows")?)
        }
    };
    let open = |row: &usize| ends.as_ref().is_none_or(|ends| ends.is_null(*row));
    let rows: Vec<u32> = (0..visible.num_rows()).filter(open).map(row_number).collect();
    Ok(rows.into())
}

/// The rows of a snapshot. A column that the source does not have any more keeps the value of the key's current row
///
fn with_absent(
    spec: &CdcSpec,
    prior: &Prior,
    image: &SnapshotBatch,
    current: &UInt32Array,
) -> Result<RecordBatch, CdcError> {
    if !spec.has_absent() {
        return Ok(image.rows.clone());
    }
    let index = image.index(spec)?;
    let mut stored: Vec<Option<u32>> = vec![None; image.len()];
    let groups = index.probe(&spec.key_columns(&prior.visible.batch)?)?;
    for &row in current.values() {
        let group = groups.get(row as usize).copied().unwrap_or(UNKNOWN);
        // Keys of a snapshot are distinct, so that their numbers are its rows.
        if let Some(slot) = stored.get_mut(group as usize) {
            *slot = Some(row);
        }
    }
    let places: Vec<(usize, usize)> =
        stored.iter().map(|row| row.map_or((1, 0), |row| (0, row as usize))).collect();
    let leaves = spec.leaves();
    let split = |rows: &RecordBatch| -> Result<Vec<ArrayRef>, CdcError> {
        let fields = spec.payload_by_name.iter().filter_map(|&at| spec.kept.fields().get(at));
        Ok(leaves.split(&fields.map(|field| column_or_null(rows, field)).collect::<Result<Vec<_>, _>>()?)?)
    };
    let (own, kept, null) = (split(&image.rows)?, split(&prior.visible.batch)?, leaves.null_row());
    let absent = spec.unset_leaves(&leaves);
    let mut leaf = |leaf: usize| match (own.get(leaf), kept.get(leaf), null.get(leaf)) {
        (Some(_), Some(kept), Some(null)) if absent.contains(&leaf) => {
            interleave(&[kept.as_ref(), null.as_ref()], &places)
        }
        (Some(own), ..) => Ok(Arc::clone(own)),
        _ => Err(ArrowError::InvalidArgumentError("no such leaf".to_owned())),
    };
    let mut columns = image.rows.columns().to_vec();
    for (column, &at) in spec.payload_by_name.iter().enumerate() {
        if let Some(slot) = columns.get_mut(at)
            && leaves.of_column(column).any(|leaf| absent.contains(&leaf))
        {
            *slot = leaves.join(column, &mut leaf)?;
        }
    }
    Ok(RecordBatch::try_new(Arc::clone(&spec.kept), columns)?)
}

/// SCD2: versions of keys that are gone or changed end, those of keys that are new or changed begin. No side row is needed:
/// versions rise, so that no event can come late.
fn versions(
    spec: &CdcSpec,
    prior: &Prior,
    image: &SnapshotBatch,
    rows: &RecordBatch,
    current: &UInt32Array,
) -> Result<Reconciled, CdcError> {
    let visible = &prior.visible.batch;
    let starts =
        column(visible, &Field::new(names::START_AT, spec.sequence_type.clone(), true), "target rows")?;
    let at = ordinals(&[&starts, &image.version])?;
    let start = |row: u32| at.first().and_then(|starts| starts.get(row as usize)).copied();
    let version: Option<Ordinal> = at.get(1).and_then(|version| version.first()).copied();
    let compare = Compare::new(spec, visible, rows)?;
    let groups = image.index(spec)?.probe(&spec.key_columns(visible)?)?;
    let mut plan = Plan { seen: vec![false; rows.num_rows()], ..Plan::default() };
    for &row in current.values() {
        let group = groups.get(row as usize).copied().unwrap_or(UNKNOWN);
        if let Some(seen) = plan.seen.get_mut(group as usize) {
            *seen = true;
        }
        // A version that somebody wrote by hand, from a later sequence on, is news to the snapshot.
        if start(row) >= version {
            continue;
        }
        match (group != UNKNOWN).then(|| compare.relate(row, group)) {
            Some(Change::None) => {}
            Some(Change::Untracked) => plan.rewrite(row, group),
            Some(Change::Tracked) => {
                plan.close(row);
                plan.opened.push(group);
            }
            None => {
                plan.close(row);
                plan.deleted = plan.deleted.saturating_add(1);
            }
        }
    }
    let fresh = (0_u32..).zip(&plan.seen).filter(|(_, seen)| !**seen).map(|(row, _)| row);
    plan.opened.extend(fresh);
    let target = plan.changes(spec, prior, rows, &image.version)?;
    Ok(Reconciled {
        side: RowChanges {
            deletes: Vec::<u64>::new().into(),
            inserts: RecordBatch::new_empty(Arc::clone(&spec.side)),
        },
        barriers: prior.barriers.with(spec, BarrierKind::Snapshot, &image.version, Keep::All)?,
        counts: Counts {
            events: image.len() as u64,
            upserted: target.inserts.num_rows() as u64,
            deleted: plan.deleted,
            ..Counts::default()
        },
        target,
    })
}

enum Change {
    None,
    /// Only columns that open no version differ.
    Untracked,
    Tracked,
}

struct Compare {
    order: PayloadOrder,
    tracked: Vec<bool>,
}

impl Compare {
    fn new(spec: &CdcSpec, visible: &RecordBatch, rows: &RecordBatch) -> Result<Self, CdcError> {
        let fields = || spec.payload_by_name.iter().filter_map(|&at| spec.kept.fields().get(at));
        let columns = |rows: &RecordBatch| {
            fields().map(|field| column_or_null(rows, field)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            order: PayloadOrder::new(&[columns(visible)?, columns(rows)?])?,
            tracked: spec.payload_by_name.iter().map(|at| spec.tracked.contains(at)).collect(),
        })
    }

    fn relate(&self, visible: u32, image: u32) -> Change {
        let (a, b) = (RowRef { source: 0, row: visible as usize }, RowRef { source: 1, row: image as usize });
        let differs = |(column, _): &(usize, &bool)| self.order.compare_column(*column, a, b).is_ne();
        let mut change = Change::None;
        for (_, tracked) in self.tracked.iter().enumerate().filter(differs) {
            if *tracked {
                return Change::Tracked;
            }
            change = Change::Untracked;
        }
        change
    }
}

/// What is to change in an SCD2 target: rows of it, and of the snapshot.
#[derive(Default)]
struct Plan {
    seen: Vec<bool>,
    /// Versions that end.
    closed: Vec<u32>,
    /// Versions that change in place, and the rows with their values.
    rewritten: Vec<(u32, u32)>,
    /// Rows that open a version.
    opened: Vec<u32>,
    /// Keys that the snapshot lacks.
    deleted: u64,
}

impl Plan {
    fn close(&mut self, row: u32) {
        self.closed.push(row);
    }

    fn rewrite(&mut self, row: u32, image: u32) {
        self.rewritten.push((row, image));
    }

    fn changes(
        &self,
        spec: &CdcSpec,
        prior: &Prior,
        rows: &RecordBatch,
        version: &ArrayRef,
    ) -> Result<RowChanges, CdcError> {
        let visible = &prior.visible.batch;
        let gone: Vec<u32> =
            self.closed.iter().copied().chain(self.rewritten.iter().map(|(row, _)| *row)).collect();
        let version = |len: usize| take(version, &UInt32Array::from(vec![0; len]), None);
        let part =
            |from: &RecordBatch, of: &[u32], start: Start<'_>, ends: bool| -> Result<RecordBatch, CdcError> {
                let places = UInt32Array::from(of.to_vec());
                let one = |field: &arrow_schema::FieldRef| -> Result<ArrayRef, CdcError> {
                    match (field.name().as_str(), start) {
                        (names::START_AT, Start::Now) => Ok(version(of.len())?),
                        (names::START_AT, Start::Of(stored)) => Ok(take(
                            &column(visible, field, "target rows")?,
                            &UInt32Array::from(stored.to_vec()),
                            None,
                        )?),
                        (names::END_AT, _) if ends => Ok(version(of.len())?),
                        (names::END_AT, _) => Ok(new_null_array(field.data_type(), of.len())),
                        _ => Ok(take(&column_or_null(from, field)?, &places, None)?),
                    }
                };
                let columns = spec.target.fields().iter().map(one).collect::<Result<Vec<_>, _>>()?;
                Ok(RecordBatch::try_new(Arc::clone(&spec.target), columns)?)
            };
        let (stored, fresh): (Vec<u32>, Vec<u32>) = self.rewritten.iter().copied().unzip();
        let parts = [
            part(visible, &self.closed, Start::Of(&self.closed), true)?,
            part(rows, &fresh, Start::Of(&stored), false)?,
            part(rows, &self.opened, Start::Now, false)?,
        ];
        let inserts = concat_batches(&spec.target, &parts)?;
        Ok(RowChanges { deletes: ids(&prior.visible.ids, &gone), inserts })
    }
}

/// Where a version starts: now, or where these stored ones do.
#[derive(Clone, Copy)]
enum Start<'s> {
    Now,
    Of(&'s [u32]),
}
