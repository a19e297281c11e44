//! What do the properties of a table (`TBLPROPERTIES`) mean here?
//!
//! A property that would change what the table holds is either obeyed or refused by name: none is silently ignored.

use std::collections::BTreeMap;

use strandline_cdc_core::OnTie;
use strandline_pipeline_sql::{PipelineDefinition, StreamingTable};

use crate::error::{Error, ErrorKind, Result};

/// `larger` (default) or `error`: what becomes of two different upserts of a key at one sequence.
const ON_TIE: &str = "strandline.onTie";
/// Accepted as in published examples; they have no effect on a triggered update of this release.
const WITHOUT_EFFECT: [&str; 2] = ["pipelines.channel", "pipelines.reset.allowed"];

/// The properties of a table, understood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Properties {
    pub(crate) on_tie: OnTie,
    /// What the table is created with, verbatim.
    pub(crate) verbatim: BTreeMap<String, String>,
}

impl Properties {
    pub(crate) fn new(table: Option<&StreamingTable>) -> Result<Self> {
        let mut properties = Self::default();
        for (name, value) in table.into_iter().flat_map(|table| &table.properties) {
            let refused = |why: &str| {
                Error::new(ErrorKind::Unsupported, why).with("property", name).with("value", value)
            };
            match name.as_str() {
                ON_TIE => {
                    properties.on_tie = match value.as_str() {
                        "larger" => OnTie::LargerWins,
                        "error" => OnTie::Error,
                        _ => return Err(refused("the property must be `larger` or `error`")),
                    }
                }
                known if WITHOUT_EFFECT.contains(&known) => {}
                engine if engine.starts_with("strandline.") || engine.starts_with("pipelines.") => {
                    return Err(refused("the property is not known"));
                }
                format if format.starts_with("delta.") || format.starts_with("write.") => {
                    return Err(refused("not supported yet: properties of the table format"));
                }
                _ => drop(properties.verbatim.insert(name.clone(), value.clone())),
            }
        }
        Ok(properties)
    }
}

/// Settings of a pipeline (`SET`) that the runtime knows.
pub(crate) const RETRIES: &str = "pipelines.maxFlowRetryAttempts";

/// Refuses settings of the engine that it does not know, a misspelt one for example. Others are the user's own.
pub(crate) fn check_settings(definition: &PipelineDefinition) -> Result<()> {
    let unknown = definition.settings.iter().find(|(name, _)| {
        name.starts_with("pipelines.") && name.as_str() != RETRIES && !WITHOUT_EFFECT.contains(&name.as_str())
    });
    match unknown {
        None => Ok(()),
        Some((name, value)) => Err(Error::new(ErrorKind::Unsupported, "the setting is not known")
            .with("setting", name)
            .with("value", value)
            .help(format!("known is {RETRIES}"))),
    }
}
