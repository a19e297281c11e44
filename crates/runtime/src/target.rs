//! How is a target opened or created, and does what it records still fit its flow?
//!
//! A CDC target records in its properties what its history was built with. A flow that means something else would make
//! a mixture of both, so drift is refused by name; a full refresh is the remedy. Which columns a row may leave unset is
//! a matter of each event, not of the table, and may change.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};
use strandline_cdc_core::{CdcSpec, ColumnSelection};
use strandline_table_formats::contract::{Table, TableDefinition, TableFormat};

use crate::{
    analysis::CdcWork,
    error::{Error, ErrorKind, Result},
    types::storable,
};

/// Property that holds the [`Recorded`] meaning of a CDC target.
const PROPERTY: &str = "strandline.cdc";
const FORMAT: u32 = 1;

/// What the history of a CDC target was built with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Recorded {
    format: u32,
    keys: Vec<(String, String)>,
    stored_as: String,
    sequence_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system_sequence_type: Option<String>,
    /// The tracked columns, sorted; `None` for "every kept column", which grows with the source.
    tracked: Option<Vec<String>>,
    sequence_column: String,
}

impl Recorded {
    fn new(spec: &CdcSpec, track_history: &ColumnSelection) -> Self {
        let kept = spec.kept_schema();
        let type_of = |name: &str| {
            kept.field_with_name(name).map_or_else(|_| "?".to_owned(), |f| f.data_type().to_string())
        };
        let mut keys: Vec<_> =
            spec.key_names().iter().map(|name| ((*name).to_owned(), type_of(name))).collect();
        keys.sort();
        let mut tracked: Vec<String> = spec.tracked_names().into_iter().map(str::to_owned).collect();
        tracked.sort();
        Self {
            format: FORMAT,
            keys,
            stored_as: spec.stored_as().to_string(),
            sequence_type: spec.sequence_type().to_string(),
            system_sequence_type: spec.system_sequence_type().map(ToString::to_string),
            tracked: (*track_history != ColumnSelection::All).then_some(tracked),
            sequence_column: spec.sequence_column_name().to_owned(),
        }
    }

    /// What a table records.
    fn of(properties: &BTreeMap<String, String>) -> Result<Self> {
        let text = properties.get(PROPERTY).ok_or_else(|| {
            Error::new(ErrorKind::State, "the table exists and is no CDC target")
                .help("give the flow another target, or drop the table")
        })?;
        let recorded: Option<Self> = serde_json::from_str(text).ok();
        recorded.filter(|recorded| recorded.format == FORMAT).ok_or_else(|| {
            Error::new(ErrorKind::State, format!("the property {PROPERTY} of the table can't be read"))
                .with("value", text)
        })
    }

    /// Names what differs, with both sides.
    fn check(&self, now: &Self) -> Result<()> {
        let print_keys = |keys: &[(String, String)]| {
            keys.iter().map(|(name, data_type)| format!("{name} {data_type}")).collect::<Vec<_>>().join(", ")
        };
        let print_tracked = |tracked: &Option<Vec<String>>| {
            tracked.as_ref().map_or_else(|| "every column".to_owned(), |names| names.join(", "))
        };
        let print_type = |data_type: &Option<String>| data_type.clone().unwrap_or_else(|| "none".to_owned());
        let facts = [
            ("KEY_SCHEMA_DRIFT", "keys", print_keys(&self.keys), print_keys(&now.keys)),
            ("SCD_TYPE_DRIFT", "shape", self.stored_as.clone(), now.stored_as.clone()),
            ("SEQUENCING_TYPE_DRIFT", "sequence type", self.sequence_type.clone(), now.sequence_type.clone()),
            (
                "SYSTEM_SEQUENCING_TYPE_DRIFT",
                "system sequence type",
                print_type(&self.system_sequence_type),
                print_type(&now.system_sequence_type),
            ),
            (
                "TRACK_HISTORY_DRIFT",
                "tracked columns",
                print_tracked(&self.tracked),
                print_tracked(&now.tracked),
            ),
            (
                "SEQUENCE_COLUMN_DRIFT",
                "sequence column",
                self.sequence_column.clone(),
                now.sequence_column.clone(),
            ),
        ];
        match facts.into_iter().find(|(.., before, now)| before != now) {
            None => Ok(()),
            Some((condition, what, before, now)) => Err(Error::new(
                ErrorKind::State,
                format!("AUTOCDC_INVALID_STATE.{condition}: the {what} of the target changed"),
            )
            .with("recorded", before)
            .with("now", now)
            .help("give the flow and its target new names; a full refresh in place is not built yet")),
        }
    }
}

/// What a table is created with besides its columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// Columns of a CDC target in the order that all of its flows agree on.
    pub(crate) columns: Option<SchemaRef>,
    pub(crate) comment: Option<String>,
    pub(crate) properties: BTreeMap<String, String>,
}

/// Opens or creates the target of an append flow.
pub(crate) async fn append_target(
    format: &dyn TableFormat,
    name: &str,
    schema: &SchemaRef,
    about: About,
) -> Result<Arc<dyn Table>> {
    if let Some(table) = format.open(name).await? {
        if table.snapshot().await?.properties().contains_key(PROPERTY) {
            return Err(Error::new(
                ErrorKind::State,
                "the table is a CDC target, it does not take appended rows",
            ));
        }
        return Ok(table);
    }
    create(
        format,
        name,
        TableDefinition {
            schema: Arc::clone(schema),
            keys: Vec::new(),
            properties: about.properties,
            comment: about.comment,
        },
    )
    .await
}

/// Opens or creates the target of a CDC flow, and checks that the flow still means what the target records. The spec that
/// is returned fits the target as it is.
pub(crate) async fn cdc_target(
    format: &dyn TableFormat,
    name: &str,
    cdc: &CdcWork,
    track_history: &ColumnSelection,
    about: About,
) -> Result<(Arc<dyn Table>, CdcSpec)> {
    if let Some(table) = format.open(name).await? {
        let snapshot = table.snapshot().await?;
        let recorded = Recorded::of(snapshot.properties())?;
        let spec = cdc.with_sequences_in(&recorded.sequence_column)?.unwrap_or_else(|| cdc.spec.clone());
        recorded.check(&Recorded::new(&spec, track_history))?;
        // A column that the source does not have is kept, and not authored; one of another type is refused.
        let spec = spec.with_target_columns(&cdc.with_shared(&Arc::new(storable(&snapshot.schema()))))?;
        return Ok((table, spec));
    }
    if let Some(peer) = cdc.unknown_peer() {
        return Err(Error::new(
            ErrorKind::State,
            "the target can't be created: not all of the flows that give it columns could be understood",
        )
        .with("table", name)
        .with("flow that failed", peer));
    }
    let spec = cdc.spec.clone();
    let mut properties = about.properties;
    properties.insert(PROPERTY.to_owned(), serde_json::to_string(&Recorded::new(&spec, track_history))?);
    let keys = spec.key_names().into_iter().map(str::to_owned).collect();
    let schema = about.columns.unwrap_or_else(|| Arc::clone(spec.target_schema()));
    let table =
        create(format, name, TableDefinition { schema, keys, properties, comment: about.comment }).await?;
    Ok((table, spec))
}

async fn create(format: &dyn TableFormat, name: &str, definition: TableDefinition) -> Result<Arc<dyn Table>> {
    format.check_schema(&definition.schema)?;
    Ok(format.create(name, &definition).await?)
}
