//! How is a target opened or created, and does what it records still fit its flow?
//!
//! A CDC target records in its properties what its history was built with. A flow that means something else would make
//! a mixture of both, so drift is refused by name; a full refresh is the remedy. Which columns a row may leave unset is
//! a matter of each event, not of the table, and may change.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};
use strandline_cdc_core::{CdcSpec, Definition, Fact, StoredAs};
use strandline_table_formats::contract::{Table, TableDefinition, TableFormat};

use crate::{
    analysis::CdcWork,
    error::{Error, ErrorKind, Result},
    types::storable,
};

/// Property that holds the [`Recorded`] meaning of a CDC target.
const PROPERTY: &str = "strandline.cdc";
/// Property of a table that is a materialized view.
const VIEW: &str = "strandline.materialized_view";
const FORMAT: u32 = 2;

/// What the history of a CDC target was built with: its [`Definition`], fact by fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Recorded {
    format: u32,
    facts: BTreeMap<String, String>,
}

impl Recorded {
    fn new(definition: &Definition) -> Self {
        let fact = |fact: Fact| (fact.to_string(), definition.canonical_text(fact));
        Self { format: FORMAT, facts: Fact::ALL.into_iter().map(fact).collect() }
    }

    /// What a table records; `now` is a flow of it.
    fn of(properties: &BTreeMap<String, String>, now: &CdcSpec) -> Result<Self> {
        let text = properties.get(PROPERTY).ok_or_else(|| {
            Error::new(ErrorKind::State, "the table exists and is no CDC target")
                .help("give the flow another target, or drop the table")
        })?;
        let recorded: Option<Self> = serde_json::from_str(text).ok();
        let recorded = recorded.filter(|recorded| recorded.format == FORMAT);
        recorded.or_else(|| FirstFormat::read(text).map(|first| first.as_now(now))).ok_or_else(|| {
            Error::new(ErrorKind::State, format!("the property {PROPERTY} of the table can't be read"))
                .with("value", text)
        })
    }

    fn text(&self, fact: Fact) -> &str {
        self.facts.get(&fact.to_string()).map_or("none", String::as_str)
    }

    /// Names what differs, with both sides.
    fn check(&self, now: &Self) -> Result<()> {
        match Fact::ALL.into_iter().find(|fact| self.text(*fact) != now.text(*fact)) {
            None => Ok(()),
            Some(fact) => Err(Error::new(
                ErrorKind::State,
                format!("{}: the {fact} of the target changed", fact.condition()),
            )
            .with("recorded", self.text(fact))
            .with("now", now.text(fact))
            .help("refresh the table fully (--full-refresh), or give the flow and its target new names")),
        }
    }
}

/// [`Recorded`] as it was written first: `TRACK HISTORY` as the list that it came to.
#[derive(Debug, Deserialize)]
struct FirstFormat {
    format: u32,
    keys: Vec<(String, String)>,
    stored_as: String,
    sequence_type: String,
    system_sequence_type: Option<String>,
    tracked: Option<Vec<String>>,
    sequence_column: String,
}

impl FirstFormat {
    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|first: &Self| first.format == 1)
    }

    fn as_now(&self, now: &CdcSpec) -> Recorded {
        let definition = now.definition();
        let mut tracked: Vec<&str> = now.tracked_names();
        tracked.sort_unstable();
        let text = |fact: Fact| match fact {
            Fact::Keys => {
                let keys = self.keys.iter().map(|(name, data_type)| format!("{name} {data_type}"));
                keys.collect::<Vec<_>>().join(", ")
            }
            Fact::StoredAs => self.stored_as.clone(),
            Fact::SequenceType => self.sequence_type.clone(),
            Fact::SystemType => self.system_sequence_type.clone().unwrap_or_else(|| "none".to_owned()),
            Fact::Tracked => match &self.tracked {
                Some(list) if *list != tracked => list.join(", "),
                Some(_) => definition.canonical_text(fact),
                None => "every kept column".to_owned(),
            },
            Fact::SequenceColumn if now.stored_as() != StoredAs::Scd1 => "none".to_owned(),
            Fact::SequenceColumn => self.sequence_column.clone(),
        };
        let facts = Fact::ALL.into_iter().map(|fact| (fact.to_string(), text(fact))).collect();
        Recorded { format: FORMAT, facts }
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
        let snapshot = table.snapshot().await?;
        for (property, what) in [(PROPERTY, "a CDC target"), (VIEW, "a materialized view")] {
            if snapshot.properties().contains_key(property) {
                let message = format!("the table is {what}, it does not take appended rows");
                return Err(Error::new(ErrorKind::State, message).with("table", name));
            }
        }
        return Ok(table);
    }
    create(format, name, append_definition(schema, about)).await
}

/// Opens or creates the target of a CDC flow, and checks that the flow still means what the target records. The spec that
/// is returned fits the target as it is.
pub(crate) async fn cdc_target(
    format: &dyn TableFormat,
    name: &str,
    cdc: &CdcWork,
    about: About,
) -> Result<(Arc<dyn Table>, CdcSpec)> {
    if let Some(table) = format.open(name).await? {
        let snapshot = table.snapshot().await?;
        let recorded = Recorded::of(snapshot.properties(), &cdc.spec)?;
        let kept_in = recorded.text(Fact::SequenceColumn);
        let spec = cdc.with_sequences_in(kept_in)?.unwrap_or_else(|| cdc.spec.clone());
        recorded.check(&Recorded::new(&spec.definition()))?;
        // A column that the source does not have is kept, and not authored (A-20); one of another type is refused.
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
    let table = create(format, name, cdc_definition(&cdc.spec, about)?).await?;
    Ok((table, cdc.spec.clone()))
}

/// What a new CDC target is.
pub(crate) fn cdc_definition(spec: &CdcSpec, about: About) -> Result<TableDefinition> {
    let mut properties = about.properties;
    properties.insert(PROPERTY.to_owned(), serde_json::to_string(&Recorded::new(&spec.definition()))?);
    let keys = spec.key_names().into_iter().map(str::to_owned).collect();
    let schema = about.columns.unwrap_or_else(|| Arc::clone(spec.target_schema()));
    Ok(TableDefinition { schema, keys, properties, comment: about.comment })
}

/// What a new table is that rows are appended to.
pub(crate) fn append_definition(schema: &SchemaRef, about: About) -> TableDefinition {
    let About { properties, comment, .. } = about;
    TableDefinition { schema: Arc::clone(schema), keys: Vec::new(), properties, comment }
}

/// What a new table of a materialized view is.
pub(crate) fn view_definition(schema: &SchemaRef, about: About) -> TableDefinition {
    let About { mut properties, comment, .. } = about;
    properties.insert(VIEW.to_owned(), true.to_string());
    TableDefinition { schema: Arc::clone(schema), keys: Vec::new(), properties, comment }
}

/// Opens or creates the table of a materialized view.
pub(crate) async fn view_target(
    format: &dyn TableFormat,
    name: &str,
    definition: &TableDefinition,
) -> Result<Arc<dyn Table>> {
    let Some(table) = format.open(name).await? else {
        return create(format, name, definition.clone()).await;
    };
    if !table.snapshot().await?.properties().contains_key(VIEW) {
        let message = "the table exists and is no materialized view: its rows would be replaced";
        return Err(Error::new(ErrorKind::State, message)
            .with("table", name)
            .help("give the view another name, or drop the table"));
    }
    format.check_schema(&definition.schema)?;
    Ok(table)
}

async fn create(format: &dyn TableFormat, name: &str, definition: TableDefinition) -> Result<Arc<dyn Table>> {
    format.check_schema(&definition.schema)?;
    Ok(format.create(name, &definition).await?)
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use strandline_cdc_core::{CdcOptions, ColumnSelection};

    use super::*;

    fn spec(stored_as: StoredAs, track_history: ColumnSelection) -> CdcSpec {
        let options =
            CdcOptions { keys: vec!["k".to_owned()], stored_as, track_history, ..CdcOptions::default() };
        let columns = ["k", "a", "b"].map(|name| Field::new(name, DataType::Utf8, true));
        CdcSpec::new(&options, &Schema::new(columns.to_vec()), &DataType::Int64).unwrap()
    }

    fn first(stored_as: &str, tracked: &str) -> BTreeMap<String, String> {
        let text = format!(
            r#"{{"format":1,"keys":[["k","Utf8"]],"stored_as":"{stored_as}","sequence_type":"Int64","tracked":{tracked},"sequence_column":"__SEQUENCE_AT"}}"#
        );
        [(PROPERTY.to_owned(), text)].into()
    }

    #[test]
    fn what_was_recorded_in_the_first_format_still_holds() {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let except = ColumnSelection::Except(names(&["b"]));
        for (stored_as, written, tracked, recorded) in [
            (StoredAs::Scd1, "SCD TYPE 1", ColumnSelection::All, "null"),
            (StoredAs::Scd2, "SCD TYPE 2", ColumnSelection::All, "null"),
            (StoredAs::Scd2, "SCD TYPE 2", except.clone(), r#"["a"]"#),
            (StoredAs::Scd2, "SCD TYPE 2", ColumnSelection::Only(names(&["a"])), r#"["a"]"#),
        ] {
            let spec = spec(stored_as, tracked);
            let recorded = Recorded::of(&first(written, recorded), &spec).unwrap();
            recorded.check(&Recorded::new(&spec.definition())).unwrap();
        }
        let spec = spec(StoredAs::Scd2, except);
        for (recorded, condition) in [
            (first("SCD TYPE 1", r#"["a"]"#), "SCD_TYPE_DRIFT"),
            (first("SCD TYPE 2", r#"["a","b"]"#), "TRACK_HISTORY_DRIFT"),
            (first("SCD TYPE 2", "null"), "TRACK_HISTORY_DRIFT"),
        ] {
            let recorded = Recorded::of(&recorded, &spec).unwrap();
            let error = recorded.check(&Recorded::new(&spec.definition())).unwrap_err();
            assert!(error.full_text().contains(condition), "{}", error.full_text());
        }
    }
}
