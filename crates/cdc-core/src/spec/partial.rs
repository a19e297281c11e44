//! Which clauses of partial updates and of bitemporal targets may stand together, and which columns do they name?

use arrow_schema::{DataType, Schema};

use super::{
    CdcOptions, ColumnSelection, Partial, SequenceColumn, SequenceTypes, StoredAs, SystemTime,
    resolve::{position, positions},
};
use crate::error::CdcError;

const IGNORE: &str = "IGNORE NULL UPDATES ON";
const IGNORE_EXCEPT: &str = "IGNORE NULL UPDATES ON * EXCEPT";

/// The rules of semantics 1.1 that need no schema.
pub(super) fn check_clauses(options: &CdcOptions, sequences: &SequenceTypes) -> Result<(), CdcError> {
    let bitemporal = options.stored_as == StoredAs::Bitemporal;
    let broken = [
        (
            options.columns_to_update.is_some() && options.ignore_null_updates.is_some(),
            "AUTOCDC_COLUMNS_TO_UPDATE_CONFLICT",
            "COLUMNS TO UPDATE and IGNORE NULL UPDATES exclude each other; keep one of them",
        ),
        (
            options.columns_to_update.is_some() && bitemporal,
            "AUTOCDC_COLUMNS_TO_UPDATE_CONFLICT",
            "COLUMNS TO UPDATE does not go with STORED AS BITEMPORAL; use IGNORE NULL UPDATES",
        ),
        (
            options.has_partial_updates() && matches!(options.sequence_column, SequenceColumn::KeptColumn(_)),
            "AUTOCDC_SEQUENCE_COLUMN_CONFLICT",
            "a kept column can't stand for the sequence of a row under partial updates: it may be set alone or left out",
        ),
        (
            options.tombstones_expire && bitemporal,
            "AUTOCDC_TOMBSTONES_OF_BITEMPORAL",
            "a bitemporal target keeps every event: tombstones that expire need SCD TYPE 1 or 2",
        ),
        (
            bitemporal && sequences.system.is_none(),
            "AUTOCDC_BITEMPORAL_REQUIRES_SYSTEM_SEQUENCE",
            "STORED AS BITEMPORAL needs SYSTEM SEQUENCE BY: when the fact became known",
        ),
        (
            !bitemporal && sequences.system.is_some(),
            "AUTOCDC_SYSTEM_SEQUENCE_REQUIRES_BITEMPORAL",
            "SYSTEM SEQUENCE BY needs STORED AS BITEMPORAL",
        ),
        (
            !bitemporal && options.system_time == SystemTime::Monotonic,
            "AUTOCDC_SYSTEM_SEQUENCE_REQUIRES_BITEMPORAL",
            "a monotonic system time needs STORED AS BITEMPORAL",
        ),
    ];
    match broken.into_iter().find(|(holds, ..)| *holds) {
        Some((_, condition, why)) => Err(CdcError::ConflictingClauses { condition, why }),
        None => Ok(()),
    }
}

/// Position in the source of the column of `COLUMNS TO UPDATE`.
pub(super) fn mask_column(options: &CdcOptions, source: &Schema) -> Result<Option<usize>, CdcError> {
    let Some(name) = &options.columns_to_update else { return Ok(None) };
    let at = position(source, name, "COLUMNS TO UPDATE")?;
    let field = source.field(at);
    let is_text = |data_type: &DataType| {
        matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other type is no list")]
    let fits = match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) => is_text(item.data_type()),
        _ => false,
    };
    if fits {
        return Ok(Some(at));
    }
    Err(CdcError::ColumnsToUpdateType { column: field.name().clone(), found: field.data_type().clone() })
}

/// What of the kept columns an upsert may leave unset.
pub(super) fn resolve(
    options: &CdcOptions,
    source: &Schema,
    mask: Option<usize>,
    kept: &Schema,
    keys: &[usize],
) -> Result<Option<Partial>, CdcError> {
    let non_keys = || (0..kept.fields().len()).filter(|place| !keys.contains(place));
    let not_a_key = |listed: Vec<usize>, clause: &'static str| match listed.iter().find(|i| keys.contains(i))
    {
        Some(&key) => Err(CdcError::PartialKey { clause, column: kept.field(key).name().clone() }),
        None => Ok(listed),
    };
    if !options.has_partial_updates() {
        return Ok(None);
    }
    let ignored = match &options.ignore_null_updates {
        None => Vec::new(),
        Some(ColumnSelection::All) => non_keys().collect(),
        Some(ColumnSelection::Only(list)) if list.is_empty() => {
            return Err(CdcError::ConflictingClauses {
                condition: "AUTOCDC_IGNORE_NULL_EMPTY_COLUMN_LIST",
                why: "IGNORE NULL UPDATES ON needs at least one column",
            });
        }
        Some(ColumnSelection::Only(list)) => not_a_key(positions(kept, list, IGNORE)?, IGNORE)?,
        Some(ColumnSelection::Except(list)) => {
            let excepted = not_a_key(positions(kept, list, IGNORE_EXCEPT)?, IGNORE_EXCEPT)?;
            non_keys().filter(|place| !excepted.contains(place)).collect()
        }
    };
    let mask = mask.map(|mask| source.field(mask).name().clone());
    Ok(Some(Partial { ignored, mask }))
}
