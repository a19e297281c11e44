//! What of Delta can a table have and still be maintained here?
//!
//! deltalake refuses to commit to a table with a feature that its own operations don't serve. Commits are not of its
//! operations here: the change feed is written by us, and a feature that a table has without making use of it asks nothing of a
//! writer. So whether a table can be maintained is decided here, and when it is opened.

use arrow_schema::{DataType, Field, Schema};
use deltalake_core::{kernel::Metadata, table::state::DeltaTableState};

use super::{
    RETENTION,
    protocol::{CHANGES, Features, LOCAL_TIME, VECTORS},
};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// Features that ask nothing that is not done here.
const MAINTAINED: [&str; 8] = [
    "appendOnly",
    CHANGES,
    PROTECTED,
    VECTORS,
    "domainMetadata",
    LOCAL_TIME,
    "v2Checkpoint",
    "vacuumProtocolCheck",
];
/// Feature of logs that can't be shortened by everybody.
pub(super) const PROTECTED: &str = "checkpointProtection";
/// Property of tables that lose no row.
const APPEND_ONLY: &str = "delta.appendOnly";

/// Refuses a table that this adapter can't maintain, by the name of what is in the way.
pub(super) fn check(state: &DeltaTableState, schema: &Schema) -> Result<()> {
    let Features { reader, writer } = Features::of(state.protocol());
    let used = |feature: &&String| is_used(feature, state.metadata(), schema);
    if let Some(feature) = reader.union(&writer).find(used) {
        return Err(unsupported(&format!("the feature {feature}")));
    }
    if state.metadata().configuration().contains_key(RETENTION) {
        return Err(unsupported(&format!(
            "the property `{RETENTION}`, by which committed batches are forgotten"
        )));
    }
    Ok(())
}

/// Refuses to take rows from a table that loses none.
pub(super) fn check_removal(metadata: &Metadata) -> Result<()> {
    if metadata.configuration().get(APPEND_ONLY).is_none_or(|value| !value.eq_ignore_ascii_case("true")) {
        return Ok(());
    }
    let message =
        format!("the table's property `{APPEND_ONLY}` is true: its rows can't be changed or deleted");
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// Whether a feature asks something of a writer that is not done here. Unknown ones do.
fn is_used(feature: &str, metadata: &Metadata, schema: &Schema) -> bool {
    let properties = metadata.configuration();
    match feature {
        "columnMapping" => properties.get("delta.columnMapping.mode").is_some_and(|mode| mode != "none"),
        "checkConstraints" => properties.keys().any(|key| key.starts_with("delta.constraints.")),
        "invariants" => says(schema, "delta.invariants"),
        "generatedColumns" => says(schema, "delta.generationExpression"),
        "identityColumns" => says(schema, "delta.identity.start"),
        "allowColumnDefaults" => says(schema, "CURRENT_DEFAULT"),
        other => !MAINTAINED.contains(&other),
    }
}

/// Whether some column, at any depth, has something said of it.
fn says(schema: &Schema, key: &str) -> bool {
    schema.fields().iter().any(|field| field_says(field, key))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other types have no fields")]
fn field_says(field: &Field, key: &str) -> bool {
    field.metadata().contains_key(key)
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|field| field_says(field, key)),
            DataType::List(inner) | DataType::Map(inner, _) => field_says(inner, key),
            _ => false,
        }
}

pub(super) fn unsupported(feature: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("the table has {feature}, which this adapter can't maintain"))
}
