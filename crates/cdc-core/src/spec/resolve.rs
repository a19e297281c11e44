//! From options to a spec: names are resolved, rules are checked, schemas are derived.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::{
    CdcOptions, CdcSpec, ColumnSelection, SequenceColumn, SequenceTypes, StoredAs, partial, schema_of,
    side_columns::side_schema,
};
use crate::{error::CdcError, names};

pub(super) fn resolve(
    options: &CdcOptions,
    source: &Schema,
    sequences: SequenceTypes,
) -> Result<CdcSpec, CdcError> {
    check_source(source)?;
    partial::check_clauses(options, &sequences)?;
    for data_type in std::iter::once(&sequences.sequence).chain(&sequences.system) {
        if !is_orderable(data_type) {
            return Err(CdcError::NonOrderableSequence { data_type: data_type.clone() });
        }
    }
    let mask = partial::mask_column(options, source)?;
    let kept = select(source, &options.columns, mask)?;
    let keys = resolve_keys(&options.keys, source, &kept)?;
    let tracked = resolve_tracked(options, &kept, &keys)?;
    let sequence_column = resolve_sequence_column(options, &kept, &sequences.sequence)?;
    let partial = partial::resolve(options, source, mask, &kept, &keys)?;
    let payload_by_name = payload_by_name(&kept, &keys);
    let mut spec = CdcSpec {
        stored_as: options.stored_as,
        on_tie: options.on_tie,
        target: Arc::clone(&kept),
        side: Arc::clone(&kept),
        present: kept.fields().len(),
        renamed: Vec::new(),
        absent_leaves: Vec::new(),
        keys,
        tracked,
        track_history: written(options, &kept)?,
        kept,
        payload_by_name,
        partial,
        sequence_type: sequences.sequence,
        system_type: sequences.system,
        system_time: options.system_time,
        null_sequence_fields: options.null_sequence_fields,
        tombstones_expire: options.tombstones_expire,
        sequence_column,
    };
    spec.target = target_schema(&spec);
    spec.side = side_schema(&spec);
    Ok(spec)
}

/// Positions of the non-key columns in the order in which payloads compare.
pub(super) fn payload_by_name(kept: &Schema, keys: &[usize]) -> Vec<usize> {
    let mut payload: Vec<usize> = (0..kept.fields().len()).filter(|i| !keys.contains(i)).collect();
    payload.sort_by(|&a, &b| kept.field(a).name().cmp(kept.field(b).name()));
    payload
}

fn check_source(source: &Schema) -> Result<(), CdcError> {
    for (i, field) in source.fields().iter().enumerate() {
        if names::is_reserved(field.name()) {
            return Err(CdcError::ReservedColumn { column: field.name().clone() });
        }
        if source.fields().iter().take(i).any(|f| f.name() == field.name()) {
            return Err(CdcError::AmbiguousSource { column: field.name().clone() });
        }
    }
    Ok(())
}

/// Position of `name` in `schema`: the exact name first, else the only one that differs in case alone.
pub(super) fn position(schema: &Schema, name: &str, clause: &'static str) -> Result<usize, CdcError> {
    if let Ok(exact) = schema.index_of(name) {
        return Ok(exact);
    }
    let folded = name.to_lowercase();
    let fits: Vec<usize> =
        (0..schema.fields().len()).filter(|&i| schema.field(i).name().to_lowercase() == folded).collect();
    match fits.as_slice() {
        [only] => Ok(*only),
        [] => Err(CdcError::UnknownColumn {
            clause,
            column: name.to_owned(),
            available: schema.fields().iter().map(|f| f.name().clone()).collect(),
        }),
        several => Err(CdcError::AmbiguousColumn {
            clause,
            column: name.to_owned(),
            candidates: several.iter().map(|&i| schema.field(i).name().clone()).collect(),
        }),
    }
}

pub(super) fn positions(
    schema: &Schema,
    list: &[String],
    clause: &'static str,
) -> Result<Vec<usize>, CdcError> {
    let mut found = Vec::with_capacity(list.len());
    for name in list {
        let at = position(schema, name, clause)?;
        if found.contains(&at) {
            return Err(CdcError::DuplicateColumn { clause, column: schema.field(at).name().clone() });
        }
        found.push(at);
    }
    Ok(found)
}

/// The kept columns, always in source order whatever the order of the list. The mask column is none of them.
fn select(source: &Schema, selection: &ColumnSelection, mask: Option<usize>) -> Result<SchemaRef, CdcError> {
    let all = source.fields();
    let kept: Vec<FieldRef> = match selection {
        ColumnSelection::All => all.iter().cloned().collect(),
        ColumnSelection::Only(list) => {
            if list.is_empty() {
                return Err(CdcError::EmptyColumnList { clause: "COLUMNS" });
            }
            let wanted = positions(source, list, "COLUMNS")?;
            all.iter().enumerate().filter(|(i, _)| wanted.contains(i)).map(|(_, f)| Arc::clone(f)).collect()
        }
        ColumnSelection::Except(list) => {
            let dropped = positions(source, list, "COLUMNS * EXCEPT")?;
            all.iter().enumerate().filter(|(i, _)| !dropped.contains(i)).map(|(_, f)| Arc::clone(f)).collect()
        }
    };
    let mask = mask.map(|mask| source.field(mask).name());
    let kept = kept.into_iter().filter(|field| Some(field.name()) != mask);
    Ok(schema_of(kept.map(|f| Arc::new(f.as_ref().clone().with_nullable(true)))))
}

fn resolve_keys(list: &[String], source: &Schema, kept: &Schema) -> Result<Vec<usize>, CdcError> {
    if list.is_empty() {
        return Err(CdcError::EmptyKeys);
    }
    let in_source = positions(source, list, "KEYS")?;
    let mut keys = Vec::with_capacity(list.len());
    for at in in_source {
        let field = source.field(at);
        let Ok(key) = kept.index_of(field.name()) else {
            return Err(CdcError::KeyNotSelected { key: field.name().clone() });
        };
        if !is_orderable(field.data_type()) {
            return Err(CdcError::UnhashableKey {
                key: field.name().clone(),
                data_type: field.data_type().clone(),
            });
        }
        keys.push(key);
    }
    Ok(keys)
}

fn resolve_tracked(options: &CdcOptions, kept: &Schema, keys: &[usize]) -> Result<Vec<usize>, CdcError> {
    const CLAUSE: &str = "TRACK HISTORY ON";
    let non_keys = (0..kept.fields().len()).filter(|i| !keys.contains(i));
    let (listed, selected) = match &options.track_history {
        ColumnSelection::All => return Ok(non_keys.collect()),
        ColumnSelection::Only(list) if list.is_empty() => {
            return Err(CdcError::EmptyColumnList { clause: CLAUSE });
        }
        ColumnSelection::Only(list) => {
            let listed = positions(kept, list, CLAUSE)?;
            let mut sorted = listed.clone();
            sorted.sort_unstable();
            (listed, sorted)
        }
        ColumnSelection::Except(list) => {
            let listed = positions(kept, list, "TRACK HISTORY ON * EXCEPT")?;
            let rest = non_keys.filter(|i| !listed.contains(i)).collect();
            (listed, rest)
        }
    };
    if options.stored_as != StoredAs::Scd2 {
        return Err(CdcError::TrackHistoryRequiresScd2 { stored_as: options.stored_as });
    }
    match listed.iter().find(|i| keys.contains(i)) {
        Some(&key) => Err(CdcError::TrackedKey { column: kept.field(key).name().clone() }),
        None => Ok(selected),
    }
}

/// `TRACK HISTORY ON` as it was written, with the names that the columns have.
fn written(options: &CdcOptions, kept: &Schema) -> Result<ColumnSelection, CdcError> {
    let names = |list: &[String]| -> Result<Vec<String>, CdcError> {
        let places = positions(kept, list, "TRACK HISTORY ON")?;
        let mut names: Vec<String> = places.into_iter().map(|at| kept.field(at).name().clone()).collect();
        names.sort();
        Ok(names)
    };
    Ok(match &options.track_history {
        ColumnSelection::All => ColumnSelection::All,
        ColumnSelection::Only(list) => ColumnSelection::Only(names(list)?),
        ColumnSelection::Except(list) if list.is_empty() => ColumnSelection::All,
        ColumnSelection::Except(list) => ColumnSelection::Except(names(list)?),
    })
}

fn resolve_sequence_column(
    options: &CdcOptions,
    kept: &Schema,
    sequence_type: &DataType,
) -> Result<SequenceColumn, CdcError> {
    let SequenceColumn::KeptColumn(name) = &options.sequence_column else {
        return Ok(SequenceColumn::SystemColumn);
    };
    let field = kept.field(position(kept, name, "SEQUENCE BY")?);
    if field.data_type() != sequence_type {
        return Err(CdcError::SequenceColumnType {
            column: field.name().clone(),
            found: field.data_type().clone(),
            expected: sequence_type.clone(),
        });
    }
    Ok(SequenceColumn::KeptColumn(field.name().clone()))
}

pub(crate) fn system(name: &str, data_type: &DataType) -> FieldRef {
    Arc::new(Field::new(name, data_type.clone(), true))
}

/// The kept columns, then the system columns of the target's shape.
pub(super) fn target_schema(spec: &CdcSpec) -> SchemaRef {
    let sequence = |name: &str| system(name, &spec.sequence_type);
    let mut fields: Vec<FieldRef> = spec.kept.fields().iter().cloned().collect();
    match (spec.stored_as, &spec.sequence_column) {
        (StoredAs::Scd1, SequenceColumn::KeptColumn(_)) => {}
        (StoredAs::Scd1, SequenceColumn::SystemColumn) => fields.push(sequence(names::SEQUENCE_AT)),
        (StoredAs::Scd2 | StoredAs::Bitemporal, _) => {
            fields.extend([sequence(names::START_AT), sequence(names::END_AT)]);
        }
    }
    if let Some(data_type) = &spec.system_type {
        fields.extend([names::SYSTEM_START_AT, names::SYSTEM_END_AT].map(|name| system(name, data_type)));
    }
    schema_of(fields)
}

/// True for types whose values have one total order, which serves as sequence order and as key equality.
#[expect(clippy::wildcard_enum_match_arm, reason = "a type of Arrow's that is new to us has no order yet")]
fn is_orderable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => !fields.is_empty() && fields.iter().all(|f| is_orderable(f.data_type())),
        DataType::Dictionary(_, value) => is_orderable(value),
        DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => true,
        other => other.is_primitive() && !matches!(other, DataType::Interval(_)),
    }
}
