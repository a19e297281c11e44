//! Arrow in, Arrow out: how is the algebra run over batches of rows?
//!
//! Keys and sequences are encoded once per batch ([`keys`], [`ordinals`]), small integers are sorted or hashed in place
//! of rows, the algebra runs over contiguous slices, and the output is gathered with one `interleave` a column
//! ([`gather`]). Values are compared only where the algebra asks ([`payload`]).

pub(crate) mod canonical;
pub(crate) mod gather;
mod history;
mod horizon;
pub mod keys;
pub(crate) mod leaves;
pub(crate) mod ordinals;
pub(crate) mod payload;
pub(crate) mod print;
mod scd1;
mod scd2;
pub(crate) mod snapshot;

use arrow_array::{
    Array, ArrayRef, Int8Array, RecordBatch, UInt32Array, UInt64Array, cast::AsArray, types::Int8Type,
};
use arrow_schema::{ArrowError, FieldRef, SchemaRef};
use arrow_select::take::{take, take_arrays};

use crate::{
    batch::{Bound, ChangeBatch, Counts, Lookup, Prior, ReadPlan, Reconciliation, RowChanges, Rows},
    columnar::keys::KeyIndex,
    error::CdcError,
    names,
    side::SideKind,
    spec::{CdcSpec, OnTie, StoredAs, schema_of},
};

impl CdcSpec {
    /// What must be read before [`CdcSpec::reconcile`], so that an adapter reads no more than that.
    ///
    /// SCD1 asks for the sequence of the keys' rows alone: values matter only for ties, which are rare, and then
    /// `reconcile` asks for more. Where columns may be left unset, values are inherited, and it asks for whole rows. SCD2
    /// asks for the versions that end at or after the first event of their key, and start before or next after its last;
    /// where columns may be left unset, for all of them. A bitemporal target asks for the rows that are believed at or
    /// after the first system sequence of their key. A batch with a barrier asks for every key there is.
    ///
    /// # Errors
    /// [`CdcError::SchemaMismatch`] for a batch that was not made with this spec.
    pub fn read_plan(&self, changes: &ChangeBatch) -> Result<ReadPlan, CdcError> {
        let key_columns = self.key_columns(&changes.rows)?;
        let index = KeyIndex::new(&key_columns)?;
        let firsts = take_arrays(&key_columns, &index.first_rows(), None)?;
        let keys = RecordBatch::try_new(schema_of(self.key_fields()), firsts)?;
        let everything = Lookup { columns: None, bound: None };
        let visible = match (self.stored_as, &changes.system) {
            (StoredAs::Scd1 | StoredAs::Scd2, _) if self.is_partial() => everything.clone(),
            (StoredAs::Scd1, _) => Lookup {
                columns: Some(
                    self.key_names()
                        .into_iter()
                        .chain([self.sequence_column_name()])
                        .map(str::to_owned)
                        .collect(),
                ),
                bound: None,
            },
            (StoredAs::Bitemporal, Some(system)) => {
                let (at_least, _) = extremes(&index, &system.at)?;
                let column = names::SYSTEM_END_AT.to_owned();
                Lookup { columns: None, bound: Some(Bound { column, at_least, until: None }) }
            }
            (StoredAs::Scd2 | StoredAs::Bitemporal, _) => {
                let (at_least, last) = extremes(&index, &changes.sequence)?;
                let until = Some((names::START_AT.to_owned(), last));
                Lookup {
                    columns: None,
                    bound: Some(Bound { column: names::END_AT.to_owned(), at_least, until }),
                }
            }
        };
        let keys = changes.truncate.is_none().then_some(keys);
        Ok(ReadPlan { keys, visible, hidden: everything })
    }

    /// The pure heart: what must change for the target to show `changes` too. Same inputs, same output, in the same
    /// order.
    ///
    /// # Errors
    /// [`CdcError::Tie`] under `on_tie = error`; [`CdcError::InvalidState`] when the stored rows contradict themselves;
    /// [`CdcError::SchemaMismatch`] for rows of another schema. Nothing is to be changed then.
    pub fn reconcile(&self, prior: &Prior, changes: &ChangeBatch) -> Result<Reconciliation, CdcError> {
        check_rows(&prior.visible, "target rows")?;
        check_rows(&prior.hidden, "side rows")?;
        if self.stored_as == StoredAs::Scd1 {
            return scd1::reconcile(self, prior, changes);
        }
        if !history::is_needed(self, prior) {
            return scd2::reconcile(self, prior, changes);
        }
        if self.stored_as == StoredAs::Scd2 && !prior.complete {
            // Side rows of an earlier definition tell of partial updates: values may be inherited from any version.
            let mut plan = self.read_plan(changes)?;
            plan.visible.bound = None;
            return Ok(Reconciliation::ReadMore(plan));
        }
        history::reconcile(self, prior, changes)
    }

    pub(crate) fn key_fields(&self) -> Vec<FieldRef> {
        self.keys.iter().filter_map(|&k| self.kept.fields().get(k)).cloned().collect()
    }

    /// The key columns of rows that have them, in declared order.
    pub(crate) fn key_columns(&self, rows: &RecordBatch) -> Result<Vec<ArrayRef>, CdcError> {
        self.key_fields().iter().map(|field| column(rows, field, "key columns")).collect()
    }
}

/// The least and the greatest value of each key in a batch, in the order of the key numbers.
fn extremes(index: &KeyIndex, values: &ArrayRef) -> Result<(ArrayRef, ArrayRef), ArrowError> {
    let at = ordinals::ordinals(&[values])?.pop().unwrap_or_default();
    let ordinal = |row: u32| at.get(row as usize).copied().unwrap_or_default();
    let mut least: Vec<u32> = (0..index.len()).map(|g| row_number(index.first_row(row_number(g)))).collect();
    let mut greatest = least.clone();
    for (row, &group) in index.groups().iter().enumerate() {
        let row = row_number(row);
        if let Some(first) = least.get_mut(group as usize)
            && ordinal(row) < ordinal(*first)
        {
            *first = row;
        }
        if let Some(last) = greatest.get_mut(group as usize)
            && ordinal(row) > ordinal(*last)
        {
            *last = row;
        }
    }
    let rows = |rows: Vec<u32>| take(values, &UInt32Array::from(rows), None);
    Ok((rows(least)?, rows(greatest)?))
}

/// The schema of the side rows that come: that of the spec, and what stored ones have besides.
fn side_schema(spec: &CdcSpec, prior: &Prior) -> SchemaRef {
    let stored = prior.hidden.batch.schema();
    let further = stored
        .fields()
        .iter()
        .filter(|field| names::is_reserved(field.name()) && spec.side.field_with_name(field.name()).is_err());
    let further: Vec<FieldRef> = further.cloned().collect();
    if further.is_empty() {
        return SchemaRef::clone(&spec.side);
    }
    schema_of(spec.side.fields().iter().cloned().chain(further))
}

/// The column of `rows` that `field` describes.
pub(crate) fn column(
    rows: &RecordBatch,
    field: &arrow_schema::Field,
    what: &'static str,
) -> Result<ArrayRef, CdcError> {
    let mismatch = |found: String| CdcError::SchemaMismatch {
        what,
        expected: format!("`{}` {}", field.name(), field.data_type()),
        found,
    };
    match rows.column_by_name(field.name()) {
        Some(array) if array.data_type() == field.data_type() => Ok(ArrayRef::clone(array)),
        Some(array) => Err(mismatch(format!("type {}", array.data_type()))),
        None => Err(mismatch("no such column".to_owned())),
    }
}

/// Ties met in a batch; the first is kept for the message.
#[derive(Debug, Default)]
struct Ties {
    count: u64,
    first: Option<(u32, ArrayRef, usize)>,
}

impl Ties {
    /// Notes `count` ties of the key `group` at the sequence in `sequences[row]`.
    fn note(&mut self, count: u64, group: u32, sequences: &ArrayRef, row: usize) {
        if count > 0 && self.first.is_none() {
            self.first = Some((group, ArrayRef::clone(sequences), row));
        }
        self.count = self.count.saturating_add(count);
    }

    fn check(&self, spec: &CdcSpec, index: &KeyIndex, changes: &ChangeBatch) -> Result<(), CdcError> {
        let (OnTie::Error, Some((group, sequences, row))) = (spec.on_tie, &self.first) else {
            return Ok(());
        };
        Err(CdcError::Tie {
            key: key_text(spec, index, changes, *group)?,
            sequence: print::value(sequences, *row),
            count: usize::try_from(self.count).unwrap_or(usize::MAX),
        })
    }
}

/// A key of the batch as text, for messages.
fn key_text(spec: &CdcSpec, index: &KeyIndex, changes: &ChangeBatch, group: u32) -> Result<String, CdcError> {
    key_of(spec, &changes.rows, index.first_row(group))
}

/// The key of a row as text.
fn key_of(spec: &CdcSpec, rows: &RecordBatch, row: usize) -> Result<String, CdcError> {
    let parts: Vec<String> = spec
        .key_fields()
        .iter()
        .zip(spec.key_columns(rows)?)
        .map(|(field, array)| format!("{}={}", field.name(), print::value(&array, row)))
        .collect();
    Ok(parts.join(", "))
}

/// The error that the stored rows of a key, of which this is one, contradict themselves.
fn invalid(spec: &CdcSpec, rows: &RecordBatch, row: usize, why: &str) -> CdcError {
    match key_of(spec, rows, row) {
        Ok(key) => CdcError::InvalidState { key, why: why.to_owned() },
        Err(error) => error,
    }
}

/// The kinds of side rows.
pub(crate) fn kinds(hidden: &RecordBatch) -> Result<Int8Array, CdcError> {
    let field = arrow_schema::Field::new(names::SIDE_KIND, arrow_schema::DataType::Int8, true);
    Ok(column(hidden, &field, "side rows")?.as_primitive::<Int8Type>().clone())
}

/// The kind of a side row that has a sequence.
pub(crate) fn kind_of(
    spec: &CdcSpec,
    hidden: &RecordBatch,
    kinds: &Int8Array,
    sequence: &ArrayRef,
    row: usize,
) -> Result<SideKind, CdcError> {
    let kind = kinds.is_valid(row).then(|| SideKind::from_code(kinds.value(row))).flatten();
    let why = match kind {
        Some(kind) if sequence.is_valid(row) => return Ok(kind),
        Some(_) => "a side row has no sequence",
        None => "a side row is of a kind that this version does not know",
    };
    Err(invalid(spec, hidden, row, why))
}

/// Nothing changes.
fn unchanged(spec: &CdcSpec, prior: &Prior, counts: Counts) -> Reconciliation {
    let none = |schema: &SchemaRef| RowChanges {
        deletes: UInt64Array::from(Vec::<u64>::new()),
        inserts: RecordBatch::new_empty(SchemaRef::clone(schema)),
    };
    Reconciliation::Done(crate::batch::Reconciled {
        target: none(&spec.target),
        side: none(&spec.side),
        barriers: prior.barriers.clone(),
        counts,
    })
}

/// Row numbers fit `u32` by construction: a batch of more rows is refused on entry.
#[expect(
    clippy::cast_possible_truncation,
    reason = "ChangeBatch and Rows are checked against u32::MAX rows on entry"
)]
pub(crate) fn row_number(row: usize) -> u32 {
    row as u32
}

/// Refuses prior rows that are too many to be numbered, or have not one id each.
fn check_rows(rows: &Rows, what: &'static str) -> Result<(), CdcError> {
    check_len(&rows.batch, what)?;
    if rows.ids.len() == rows.batch.num_rows() {
        return Ok(());
    }
    Err(CdcError::SchemaMismatch {
        what,
        expected: format!("{} ids, one a row", rows.batch.num_rows()),
        found: format!("{} ids", rows.ids.len()),
    })
}

/// Refuses rows that are too many to be numbered.
pub(crate) fn check_len(rows: &RecordBatch, what: &'static str) -> Result<(), CdcError> {
    if u32::try_from(rows.num_rows()).is_ok_and(|n| n < u32::MAX) {
        Ok(())
    } else {
        Err(CdcError::SchemaMismatch {
            what,
            expected: "fewer than 4294967295 rows".to_owned(),
            found: rows.num_rows().to_string(),
        })
    }
}

/// The ids of rows, in the order of the rows.
pub(crate) fn ids(all: &UInt64Array, rows: &[u32]) -> UInt64Array {
    rows.iter().filter_map(|&row| all.values().get(row as usize)).copied().collect::<Vec<_>>().into()
}
