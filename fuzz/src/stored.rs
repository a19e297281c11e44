//! Bytes as state that nobody should have written: any kinds, lists, NULLs and overlaps, and now and then a column that is
//! missing or of another type.

use std::sync::Arc;

use arbitrary::{Arbitrary, Result, Unstructured};
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Fields, Schema};
use strandline_cdc_core::{
    Barriers, CdcError, CdcOptions, CdcSpec, ChangeBatch, ChangeInput, ColumnSelection, NullSequenceFields,
    OnStale, OnTie, Prior, Reconciled, Reconciliation, Rows, SequenceTypes, SnapshotBatch, SnapshotRules,
    StoredAs, SystemTime,
};
use strandline_testkit::reference::Value;

use crate::convert::array;

const LONGEST: usize = 7;

/// A flow, what it finds, and what comes.
#[derive(Debug)]
pub struct Stored {
    spec: CdcSpec,
    source: RecordBatch,
    sequence: ArrayRef,
    system: Option<ArrayRef>,
    valid_to: Option<ArrayRef>,
    floor: Option<ArrayRef>,
    flags: [BooleanArray; 3],
    masks: Vec<(String, BooleanArray)>,
    prior: Prior,
    barriers: RecordBatch,
    moment: i64,
}

impl Stored {
    /// Reconciles, takes a snapshot and collects tombstones.
    ///
    /// # Panics
    /// When what comes back makes no sense, whatever was stored: ids that were not given, more rows than can be.
    pub fn survives(&self) {
        let mut prior = self.prior.clone();
        if let Ok(barriers) = Barriers::from_rows(&self.spec, &self.barriers) {
            prior.barriers = barriers;
        }
        drop(self.changes(&prior));
        drop(self.snapshot(&prior));
        if let Ok(collected) = self.spec.collect_tombstones(&prior.hidden, &prior.barriers, self.moment) {
            self.given(&prior.hidden, &collected.side.deletes);
        }
        let target = prior.visible.batch.schema();
        drop(self.spec.with_target_columns(&target));
    }

    fn changes(&self, prior: &Prior) -> std::result::Result<(), CdcError> {
        let [deletes, truncates, retracts] = &self.flags;
        let input = ChangeInput {
            system_sequence: self.system.as_ref(),
            deletes: Some(deletes),
            truncates: Some(truncates),
            retracts: Some(retracts),
            authored: &self.masks,
            valid_to: self.valid_to.as_ref(),
            applied_at: Some(self.moment),
            system_floor: self.floor.as_ref(),
            ..ChangeInput::new(&self.source, &self.sequence)
        };
        let batch = ChangeBatch::of(&self.spec, &input)?;
        drop(self.spec.read_plan(&batch)?);
        let complete = Prior { complete: true, ..prior.clone() };
        for prior in [prior, &complete] {
            if let Reconciliation::Done(done) = self.spec.reconcile(prior, &batch)? {
                self.sane(prior, &done);
            }
        }
        Ok(())
    }

    fn snapshot(&self, prior: &Prior) -> std::result::Result<(), CdcError> {
        let version = self.sequence.slice(0, self.sequence.len().min(1));
        let image = SnapshotBatch::new(&self.spec, &self.source, &version)?;
        let rules = SnapshotRules {
            max_delete_fraction: 0.5,
            guard_from_rows: 3,
            on_stale: OnStale::Skip,
            ..SnapshotRules::default()
        };
        self.sane(prior, &self.spec.reconcile_snapshot(prior, &image, &rules)?);
        Ok(())
    }

    fn sane(&self, prior: &Prior, done: &Reconciled) {
        self.given(&prior.visible, &done.target.deletes);
        self.given(&prior.hidden, &done.side.deletes);
        let events =
            prior.visible.batch.num_rows() + prior.hidden.batch.num_rows() + 2 * self.source.num_rows();
        let most = 2 * (events + 1) * (events + 1);
        assert!(done.target.inserts.num_rows() <= most, "{events} events make so many rows: {done:?}");
        assert!(done.side.inserts.num_rows() <= most, "{events} events make so many side rows: {done:?}");
    }

    fn given(&self, rows: &Rows, gone: &UInt64Array) {
        let mut left = rows.ids.values().to_vec();
        for id in gone.values() {
            let at = left.iter().position(|known| known == id);
            assert!(at.is_some(), "{id} of {:?} goes, or goes twice", rows.ids);
            at.map(|at| left.swap_remove(at));
        }
    }
}

impl<'a> Arbitrary<'a> for Stored {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let spec = spec(u)?;
        let rows = length(u)?;
        let source = table(u, spec.kept_schema(), rows)?;
        let sequence = column(u, spec.sequence_type(), rows)?;
        let optional = |u: &mut Unstructured<'a>, kind: &DataType, rows: usize, percent: u8| {
            u.ratio(percent, 100)?.then(|| column(u, kind, rows)).transpose()
        };
        let system = match spec.system_sequence_type() {
            Some(kind) => Some(column(u, kind, rows)?),
            None => None,
        };
        let floor = match spec.system_sequence_type() {
            Some(kind) => optional(u, kind, 1, 50)?,
            None => None,
        };
        let valid_to = optional(u, spec.sequence_type(), rows, 10)?;
        let truncates = spec.stored_as() == StoredAs::Scd1;
        let retracts = spec.stored_as() == StoredAs::Bitemporal;
        let flags = [flags(u, rows, true)?, flags(u, rows, truncates)?, flags(u, rows, retracts)?];
        let mut masks = Vec::new();
        if spec.is_partial() && spec.columns_to_update().is_none() {
            for path in ["a", "s", "s.x", "s.y", "z"] {
                if u.ratio(if path == "z" { 1_u8 } else { 128 }, 255)? {
                    masks.push((path.to_owned(), self::flags(u, rows, true)?));
                }
            }
        }
        let barriers = length(u)?.min(4);
        let barriers = table(u, &spec.barrier_schema(), barriers)?;
        let prior = Prior {
            visible: stored(u, spec.target_schema())?,
            hidden: stored(u, spec.side_schema())?,
            barriers: Barriers::none(),
            complete: u.arbitrary()?,
        };
        let moment = i64::from(u.arbitrary::<i8>()?);
        Ok(Self { spec, source, sequence, system, valid_to, floor, flags, masks, prior, barriers, moment })
    }
}

/// One of the flows that there can be.
fn spec(u: &mut Unstructured<'_>) -> Result<CdcSpec> {
    let stored_as = *u.choose(&[StoredAs::Scd1, StoredAs::Scd2, StoredAs::Bitemporal])?;
    let bitemporal = stored_as == StoredAs::Bitemporal;
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let partial = u.int_in_range(0..=4_u8)?;
    let ordered = [DataType::Int64, DataType::Int64, pair(), DataType::Utf8];
    let tracked = stored_as == StoredAs::Scd2 && u.arbitrary()?;
    let options = CdcOptions {
        keys: names(if u.ratio(1_u8, 4)? { &["k", "l"] } else { &["k"] }),
        stored_as,
        track_history: if tracked { ColumnSelection::Only(names(&["a"])) } else { ColumnSelection::All },
        ignore_null_updates: match partial {
            1 => Some(ColumnSelection::All),
            2 => Some(ColumnSelection::Only(names(&["s"]))),
            _ => None,
        },
        authored_masks: partial == 3,
        columns_to_update: (partial == 4 && !bitemporal).then(|| "m".to_owned()),
        on_tie: if u.ratio(1_u8, 8)? { OnTie::Error } else { OnTie::LargerWins },
        system_time: if bitemporal && u.arbitrary()? { SystemTime::Monotonic } else { SystemTime::Declared },
        null_sequence_fields: if u.arbitrary()? {
            NullSequenceFields::First
        } else {
            NullSequenceFields::Refused
        },
        tombstones_expire: u.arbitrary()?,
        ..CdcOptions::default()
    };
    let sequences = SequenceTypes {
        sequence: u.choose(&ordered)?.clone(),
        system: if bitemporal { Some(u.choose(&ordered)?.clone()) } else { None },
    };
    let spec =
        CdcSpec::new(&options, &source_schema(), sequences).map_err(|_| arbitrary::Error::IncorrectFormat)?;
    let target = with_columns(&spec, if u.ratio(1_u8, 4)? { &["b", "t"] } else { &[] });
    spec.with_target_columns(&target).map_err(|_| arbitrary::Error::IncorrectFormat)
}

fn source_schema() -> Schema {
    Schema::new(vec![
        Field::new("k", DataType::Utf8, true),
        Field::new("l", DataType::Int64, true),
        Field::new("a", DataType::Int64, true),
        Field::new("s", pair(), true),
        Field::new("m", texts(), true),
    ])
}

/// A target that has columns which the source lacks.
fn with_columns(spec: &CdcSpec, absent: &[&str]) -> Schema {
    let kind = |name: &str| if name == "t" { pair() } else { DataType::Int64 };
    let absent = absent.iter().map(|name| Arc::new(Field::new(*name, kind(name), true)));
    Schema::new(spec.target_schema().fields().iter().cloned().chain(absent).collect::<Vec<_>>())
}

fn pair() -> DataType {
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    DataType::Struct(Fields::from(vec![field("x"), field("y")]))
}

fn texts() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)))
}

fn length(u: &mut Unstructured<'_>) -> Result<usize> {
    Ok(usize::from(u.arbitrary::<u8>()?) % (LONGEST + 1))
}

fn flags(u: &mut Unstructured<'_>, rows: usize, may_be: bool) -> Result<BooleanArray> {
    let flag = |u: &mut Unstructured<'_>| Ok(if may_be { Some(u.ratio(1_u8, 4)?) } else { None });
    (0..rows).map(|_| flag(u)).collect()
}

/// Rows with ids: each once, mostly.
fn stored(u: &mut Unstructured<'_>, schema: &Schema) -> Result<Rows> {
    let rows = length(u)?;
    let batch = table(u, schema, rows)?;
    let ids = if u.ratio(1_u8, 64)? { vec![7; rows] } else { (1..).take(rows).collect() };
    Ok(Rows { batch, ids: UInt64Array::from(ids) })
}

/// Rows of a schema; once in a while a column is missing, another one, or of another type.
fn table(u: &mut Unstructured<'_>, schema: &Schema, rows: usize) -> Result<RecordBatch> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for field in schema.fields() {
        let change = u.arbitrary::<u8>()?;
        let wrong = [DataType::Utf8, DataType::Int64, DataType::Boolean, DataType::Null, texts(), pair()];
        let kind = match change {
            255 => continue,
            254 => u.choose(&wrong)?.clone(),
            _ => field.data_type().clone(),
        };
        columns.push(column(u, &kind, rows)?);
        fields.push(Field::new(field.name(), kind, true));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|_| arbitrary::Error::IncorrectFormat)
}

fn column(u: &mut Unstructured<'_>, kind: &DataType, rows: usize) -> Result<ArrayRef> {
    if *kind == DataType::Null {
        return Ok(arrow_array::new_null_array(kind, rows));
    }
    if *kind == DataType::Int8 {
        let kinds = (0..rows).map(|_| code(u)).collect::<Result<Int64Array>>()?;
        return cast(&kinds, kind).map_err(|_| arbitrary::Error::IncorrectFormat);
    }
    Ok(array(kind, &(0..rows).map(|_| value(u, kind)).collect::<Result<Vec<_>>>()?))
}

/// A kind of side row or barrier, known or not.
fn code(u: &mut Unstructured<'_>) -> Result<Option<i64>> {
    Ok(match u.arbitrary::<i8>()? {
        i8::MIN => None,
        code if code % 16 == 15 => Some(code.into()),
        code => Some(i64::from(code.rem_euclid(16) % 7) + 1),
    })
}

fn value(u: &mut Unstructured<'_>, kind: &DataType) -> Result<Value> {
    let byte = u.arbitrary::<u8>()?;
    if byte >= 240 {
        return Ok(Value::Null);
    }
    Ok(match kind {
        DataType::Boolean => Value::Bool(byte & 1 == 1),
        DataType::Int64 => Value::Int(match byte {
            239 => i64::MAX,
            238 => i64::MIN,
            _ => i64::from(byte & 7),
        }),
        DataType::Utf8 => Value::text(["k0", "k1", "k2", ""][usize::from(byte & 3)]),
        DataType::Struct(fields) => Value::Struct(
            fields
                .iter()
                .map(|field| Ok((field.name().clone(), value(u, field.data_type())?)))
                .collect::<Result<_>>()?,
        ),
        DataType::List(_) => {
            let paths = ["a", "s.x", "s.y", "s", "k", "b", "t.x", "s.x.y", "", ".", "m", "A"];
            let items = (0..byte & 3).map(|_| {
                let byte = u.arbitrary::<u8>()?;
                Ok(paths.get(usize::from(byte & 15)).map_or(Value::Null, |path| Value::text(*path)))
            });
            Value::List(items.collect::<Result<_>>()?)
        }
        _ => Value::Null,
    })
}
