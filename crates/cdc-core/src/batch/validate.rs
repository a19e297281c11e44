//! From source rows to a [`ChangeBatch`]: kept columns only, canonical values, no NULL where none may be.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, cast::AsArray, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use arrow_select::{
    concat::concat_batches, filter::filter, filter::filter_record_batch, take::take, zip::zip,
};

use super::{ChangeBatch, ChangeInput, SystemSequence, authored};
use crate::{
    algebra::order::Op,
    columnar::{
        canonical::{Role, canonical},
        ordinals::ordinals,
        print,
    },
    error::CdcError,
    spec::{CdcSpec, NullSequenceFields, StoredAs, SystemTime, widened, wider},
};

impl ChangeBatch {
    /// Takes the rows of a batch with upserts and deletes: [`ChangeBatch::of`] has all there is.
    ///
    /// # Errors
    /// As [`ChangeBatch::of`].
    pub fn new(
        spec: &CdcSpec,
        source: &RecordBatch,
        sequence: &ArrayRef,
        deletes: Option<&BooleanArray>,
    ) -> Result<Self, CdcError> {
        Self::of(spec, &ChangeInput { deletes, ..ChangeInput::new(source, sequence) })
    }

    /// Takes the rows of a batch. Columns of the source that the spec does not keep are ignored, absent ones are not
    /// asked for. A row that is a truncate is nothing else, one that is a retraction is no delete.
    ///
    /// # Errors
    /// [`CdcError::NullKey`] and [`CdcError::NullSequence`] (NULL fields of a struct sequence included, unless the spec
    /// takes them), with a count and a sample; [`CdcError::ColumnsToUpdateInvalid`]; [`CdcError::EventOfOtherShape`] for
    /// a truncate or a retraction that the target's shape does not take; [`CdcError::SchemaMismatch`] for columns that
    /// are missing, of another type or of another length.
    pub fn of(spec: &CdcSpec, input: &ChangeInput<'_>) -> Result<Self, CdcError> {
        check_lengths(spec, input)?;
        let ops = Ops::new(spec, input)?;
        let (sequence, system) = sequences(spec, input)?;
        let keyed = !&ops.truncates;
        let rows = kept_rows(spec, input.source, &keyed)?;
        let authored = authored::authored(spec, input, &rows, &ops.upserts)?;
        let truncate = greatest(&filter(&sequence, &BooleanArray::new(ops.truncates.clone(), None))?)?;
        let mut batch = Self {
            rows,
            sequence,
            system,
            ops: ops.list(),
            truncate,
            snapshot: None,
            truncates: ops.truncates.count_set_bits() as u64,
            authored,
            applied_at: input.applied_at.filter(|_| spec.tombstones_expire),
        };
        if batch.truncates > 0 {
            batch.retain(&keyed)?;
        }
        match input.valid_to {
            Some(valid_to) => batch.with_ends(spec, valid_to, &keyed),
            None => Ok(batch),
        }
    }

    /// The same changes where the target has seen greater system sequences since they were planned: with monotonic system
    /// time, events that claim to be older than `floor`, an array of length 1, count as learned then.
    ///
    /// # Errors
    /// [`CdcError::SchemaMismatch`] for a floor of another type.
    pub fn learned_from(mut self, spec: &CdcSpec, floor: &ArrayRef) -> Result<Self, CdcError> {
        if let Some(system) = self.system.as_mut().filter(|system| {
            spec.system_time == SystemTime::Monotonic && floor.len() == 1 && !system.at.is_empty()
        }) {
            system.at = raised(&system.at, &canonical(floor, Role::Identity)?)?;
        }
        Ok(self)
    }

    /// The rows of a snapshot, as changes of an SCD1 target.
    pub(crate) fn of_snapshot(rows: RecordBatch, version: &ArrayRef) -> Result<Self, CdcError> {
        let len = rows.num_rows();
        Ok(Self {
            rows,
            sequence: take(version, &UInt32Array::from(vec![0; len]), None)?,
            system: None,
            ops: vec![Op::Snapshot; len],
            truncate: None,
            truncates: 0,
            snapshot: Some(ArrayRef::clone(version)),
            authored: None,
            applied_at: None,
        })
    }

    /// Only the rows whose bit is set.
    fn retain(&mut self, keep: &BooleanBuffer) -> Result<(), CdcError> {
        let mask = BooleanArray::new(keep.clone(), None);
        let bits = |bits: &BooleanBuffer| -> BooleanBuffer {
            bits.iter().zip(keep).filter(|(_, keep)| *keep).map(|(bit, _)| bit).collect()
        };
        self.rows = filter_record_batch(&self.rows, &mask)?;
        self.sequence = filter(&self.sequence, &mask)?;
        if let Some(system) = &mut self.system {
            *system = SystemSequence { at: filter(&system.at, &mask)?, given: filter(&system.given, &mask)? };
        }
        let mut kept = keep.iter();
        self.ops.retain(|_| kept.next().unwrap_or_default());
        self.authored = self.authored.take().map(|leaves| leaves.iter().map(bits).collect());
        Ok(())
    }

    /// Adds a delete where an upsert says that it ends.
    fn with_ends(self, spec: &CdcSpec, valid_to: &ArrayRef, keyed: &BooleanBuffer) -> Result<Self, CdcError> {
        let ends = canonical(&filter(valid_to, &BooleanArray::new(keyed.clone(), None))?, Role::Identity)?;
        let upserts = self.ops.iter().enumerate();
        let ending: BooleanBuffer =
            upserts.map(|(row, op)| *op == Op::Upsert && ends.is_valid(row)).collect();
        let mask = BooleanArray::new(ending.clone(), None);
        let ends = filter(&ends, &mask)?;
        check_sequence(spec, &filter_record_batch(&self.rows, &mask)?, &ends, "VALID TO")?;
        check_ends(&filter_record_batch(&self.rows, &mask)?, &filter(&self.sequence, &mask)?, &ends)?;
        let both = |own: &ArrayRef, other: &ArrayRef| arrow_select::concat::concat(&[own, other]);
        let with_unset = |bits: &BooleanBuffer| -> BooleanBuffer {
            bits.iter().chain(std::iter::repeat_n(false, ends.len())).collect()
        };
        let system = self.system.as_ref().map(|system| -> Result<_, CdcError> {
            let (at, given) = (filter(&system.at, &mask)?, filter(&system.given, &mask)?);
            Ok(SystemSequence { at: both(&system.at, &at)?, given: both(&system.given, &given)? })
        });
        Ok(Self {
            rows: concat_batches(&spec.kept, [&self.rows, &filter_record_batch(&self.rows, &mask)?])?,
            sequence: both(&self.sequence, &ends)?,
            system: system.transpose()?,
            ops: self.ops.iter().copied().chain(std::iter::repeat_n(Op::Delete, ends.len())).collect(),
            authored: self.authored.as_ref().map(|leaves| leaves.iter().map(with_unset).collect()),
            ..self
        })
    }
}

/// Which row does what.
pub(super) struct Ops {
    truncates: BooleanBuffer,
    retracts: BooleanBuffer,
    deletes: BooleanBuffer,
    pub(super) upserts: BooleanBuffer,
}

impl Ops {
    pub(super) fn new(spec: &CdcSpec, input: &ChangeInput<'_>) -> Result<Self, CdcError> {
        let flags = |flags: Option<&BooleanArray>| {
            flags.map_or_else(|| BooleanBuffer::new_unset(input.source.num_rows()), authored::true_bits)
        };
        let (truncates, mut retracts, mut deletes) =
            (flags(input.truncates), flags(input.retracts), flags(input.deletes));
        let refuse =
            |rows: &BooleanBuffer, shape: StoredAs, condition: &'static str, what: &'static str| match rows
                .set_indices()
                .next()
                .filter(|_| spec.stored_as != shape)
            {
                None => Ok(()),
                Some(row) => Err(CdcError::EventOfOtherShape {
                    condition,
                    what,
                    stored_as: spec.stored_as,
                    row,
                    sample: print::row(input.source, row),
                }),
            };
        refuse(&truncates, StoredAs::Scd1, "AUTOCDC_TRUNCATE_REQUIRES_SCD1", "truncate")?;
        refuse(&retracts, StoredAs::Bitemporal, "AUTOCDC_RETRACT_REQUIRES_BITEMPORAL", "retraction")?;
        retracts = &retracts & &!&truncates;
        deletes = &deletes & &!&(&truncates | &retracts);
        let upserts = !&(&(&truncates | &retracts) | &deletes);
        Ok(Self { truncates, retracts, deletes, upserts })
    }

    fn list(&self) -> Vec<Op> {
        let op = |row: usize| {
            if self.retracts.value(row) {
                Op::Retract
            } else if self.deletes.value(row) {
                Op::Delete
            } else {
                Op::Upsert
            }
        };
        (0..self.upserts.len()).map(op).collect()
    }
}

pub(super) fn check_lengths(spec: &CdcSpec, input: &ChangeInput<'_>) -> Result<(), CdcError> {
    let rows = input.source.num_rows();
    crate::columnar::check_len(input.source, "change rows")?;
    check_shape("SEQUENCE BY", &spec.sequence_type, input.sequence.data_type())?;
    match (&spec.system_type, input.system_sequence) {
        (None, None) => {}
        (Some(expected), Some(found)) => check_shape("SYSTEM SEQUENCE BY", expected, found.data_type())?,
        (expected, found) => {
            let print =
                |data_type: Option<&DataType>| data_type.map_or("none".to_owned(), ToString::to_string);
            return Err(CdcError::SchemaMismatch {
                what: "SYSTEM SEQUENCE BY",
                expected: print(expected.as_ref()),
                found: print(found.map(Array::data_type)),
            });
        }
    }
    if let Some(valid_to) = input.valid_to {
        check_shape("VALID TO", &spec.sequence_type, valid_to.data_type())?;
    }
    let len = |array: Option<&ArrayRef>| array.map_or(rows, Array::len);
    let flags = |array: Option<&BooleanArray>| array.map_or(rows, Array::len);
    if let Some(floor) = input.system_floor.filter(|floor| floor.len() != 1) {
        return Err(CdcError::SchemaMismatch {
            what: "the floor of SYSTEM SEQUENCE BY",
            expected: "1 value".to_owned(),
            found: format!("{} values", floor.len()),
        });
    }
    let mut lengths = vec![
        ("SEQUENCE BY", input.sequence.len()),
        ("SYSTEM SEQUENCE BY", len(input.system_sequence)),
        ("VALID TO", len(input.valid_to)),
        ("APPLY AS DELETE WHEN", flags(input.deletes)),
        ("APPLY AS TRUNCATE WHEN", flags(input.truncates)),
        ("APPLY AS RETRACT WHEN", flags(input.retracts)),
    ];
    lengths.extend(input.authored.iter().map(|(_, mask)| ("a mask of set columns", mask.len())));
    match lengths.into_iter().find(|(_, len)| *len != rows) {
        None => Ok(()),
        Some((what, len)) => Err(CdcError::SchemaMismatch {
            what,
            expected: format!("{rows} values"),
            found: format!("{len} values"),
        }),
    }
}

/// The sequences in canonical form, without NULL. System sequences below the floor are raised to it.
fn sequences(
    spec: &CdcSpec,
    input: &ChangeInput<'_>,
) -> Result<(ArrayRef, Option<SystemSequence>), CdcError> {
    check_sequence(spec, input.source, input.sequence, "SEQUENCE BY")?;
    let sequence = canonical(input.sequence, Role::Identity)?;
    let Some(system) = input.system_sequence else { return Ok((sequence, None)) };
    check_sequence(spec, input.source, system, "SYSTEM SEQUENCE BY")?;
    let given = canonical(system, Role::Identity)?;
    let at = match input.system_floor {
        Some(floor) if spec.system_time == SystemTime::Monotonic && !given.is_empty() => {
            raised(&given, &canonical(floor, Role::Identity)?)?
        }
        _ => Arc::clone(&given),
    };
    Ok((sequence, Some(SystemSequence { at, given })))
}

/// Values below the floor, which is an array of length 1, become it.
fn raised(values: &ArrayRef, floor: &ArrayRef) -> Result<ArrayRef, CdcError> {
    check_shape("the floor of SYSTEM SEQUENCE BY", values.data_type(), floor.data_type())?;
    let ranks = ordinals(&[values, floor])?;
    let [values_at, floor_at] = ranks.as_slice() else { return Ok(Arc::clone(values)) };
    let Some(floor_at) = floor_at.first().filter(|_| floor.is_valid(0)) else {
        return Ok(Arc::clone(values));
    };
    let below: BooleanBuffer = values_at.iter().map(|at| at < floor_at).collect();
    let mask = BooleanArray::new(below, None);
    Ok(zip(&mask, &arrow_array::Scalar::new(Arc::clone(floor)), values)?)
}

/// The greatest value, as an array of length 1.
fn greatest(values: &ArrayRef) -> Result<Option<ArrayRef>, CdcError> {
    let at = ordinals(&[values])?.pop().unwrap_or_default();
    let greatest = at.iter().enumerate().max_by_key(|(_, at)| **at).map(|(row, _)| row);
    Ok(match greatest {
        None => None,
        Some(row) => Some(canonical(&values.slice(row, 1), Role::Identity)?),
    })
}

/// The kept columns in canonical form. `keyed`: the rows that need a key.
pub(crate) fn kept_rows(
    spec: &CdcSpec,
    source: &RecordBatch,
    keyed: &BooleanBuffer,
) -> Result<RecordBatch, CdcError> {
    let column = |(i, field): (usize, &arrow_schema::FieldRef)| {
        if i >= spec.present {
            return Ok(new_null_array(field.data_type(), source.num_rows()));
        }
        let name = spec.source_name(i, field);
        let column = source.column_by_name(name).ok_or_else(|| CdcError::SchemaMismatch {
            what: "source",
            expected: format!("column `{name}`"),
            found: "no such column".to_owned(),
        })?;
        if wider(column.data_type(), field.data_type()).as_ref() != Some(field.data_type()) {
            check_shape("source column", field.data_type(), column.data_type())?;
        }
        let column = &widened(column, field.data_type())?;
        let role = if spec.keys.contains(&i) { Role::Identity } else { Role::Payload };
        if role == Role::Identity {
            check_key(source, column, field.name(), keyed)?;
        }
        Ok(canonical(column, role)?)
    };
    let columns = spec.kept.fields().iter().enumerate().map(column).collect::<Result<Vec<_>, CdcError>>()?;
    Ok(RecordBatch::try_new(Arc::clone(&spec.kept), columns)?)
}

fn check_shape(what: &'static str, expected: &DataType, found: &DataType) -> Result<(), CdcError> {
    if expected == found {
        return Ok(());
    }
    Err(CdcError::SchemaMismatch { what, expected: expected.to_string(), found: found.to_string() })
}

fn check_key(
    source: &RecordBatch,
    column: &ArrayRef,
    name: &str,
    keyed: &BooleanBuffer,
) -> Result<(), CdcError> {
    let Some((row, count)) = nulls(column, |row| keyed.value(row)) else {
        return Ok(());
    };
    Err(CdcError::NullKey {
        column: name.to_owned(),
        count,
        rows: source.num_rows(),
        row,
        sample: print::row(source, row),
    })
}

pub(crate) fn check_sequence(
    spec: &CdcSpec,
    source: &RecordBatch,
    sequence: &ArrayRef,
    what: &str,
) -> Result<(), CdcError> {
    if let Some((row, count)) = nulls(sequence, |_| true) {
        return Err(CdcError::NullSequence {
            condition: if what.ends_with("SYSTEM SEQUENCE BY") {
                "NULL_SYSTEM_SEQUENCE"
            } else {
                "NULL_SEQUENCE"
            },
            what: what.to_owned(),
            count,
            rows: source.num_rows(),
            row,
            sample: print::row(source, row),
        });
    }
    if let (DataType::Struct(fields), NullSequenceFields::Refused) =
        (sequence.data_type(), spec.null_sequence_fields)
    {
        for (field, part) in fields.iter().zip(sequence.as_struct().columns()) {
            check_sequence(spec, source, part, &format!("field `{}` of {what}", field.name()))?;
        }
    }
    Ok(())
}

/// The first NULL and the number of NULLs, among the rows that count.
fn nulls(array: &ArrayRef, counts: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
    let logical = array.logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    let mut rows = (0..array.len()).filter(|&row| logical.is_null(row) && counts(row));
    let first = rows.next()?;
    Some((first, rows.count().saturating_add(1)))
}

/// Refuses an end that is not above the sequence of its row.
fn check_ends(rows: &RecordBatch, sequence: &ArrayRef, ends: &ArrayRef) -> Result<(), CdcError> {
    let at = ordinals(&[sequence, ends])?;
    let [sequence_at, ends_at] = at.as_slice() else { return Ok(()) };
    let empty = || sequence_at.iter().zip(ends_at).enumerate().filter(|(_, (start, end))| end <= start);
    match empty().next() {
        None => Ok(()),
        Some((row, _)) => Err(CdcError::EmptyValidity {
            count: empty().count(),
            rows: rows.num_rows(),
            end: print::value(ends, row),
            start: print::value(sequence, row),
            sample: print::row(rows, row),
        }),
    }
}
