//! What do the properties of a table (`TBLPROPERTIES`) mean here?
//!
//! A property that would change what the table holds is either obeyed or refused by name: none is silently ignored.

use std::{collections::BTreeMap, time::Duration};

use strandline_cdc_core::{NullSequenceFields, OnStale, OnTie, SnapshotRules, SystemTime};
use strandline_pipeline_sql::TableDeclaration;

use crate::{
    error::{Error, ErrorKind, Result},
    settings,
};

/// `larger` (default) or `error`: what becomes of two different upserts of a key at one sequence.
const ON_TIE: &str = "strandline.onTie";
/// `declared` (default) or `monotonic`: what becomes of an event that claims an older system sequence than was received
/// before.
const SYSTEM_TIME: &str = "strandline.systemTime";
/// `refused` (default) or `first`: what a NULL in a field of a struct sequence means.
const NULL_SEQUENCE_FIELDS: &str = "strandline.nullSequenceFields";
/// Seconds after which the tombstone of a delete is collected; without it tombstones are kept for ever.
pub(crate) const TOMBSTONE_SECONDS: &str = "pipelines.cdc.tombstoneGCThresholdInSeconds";
/// `error` (default) or `skip`: what becomes of a snapshot whose version is not above the last one.
const ON_STALE: &str = "strandline.onStaleSnapshot";
/// From 0 to 1, 0.9 without it: a snapshot that deletes a greater part of the target's rows is refused.
const MAX_DELETE_FRACTION: &str = "strandline.snapshot.maxDeleteFraction";
/// 100 without it: a snapshot that deletes fewer rows is never refused for that.
const GUARD_FROM_ROWS: &str = "strandline.snapshot.guardFromRows";
/// `true` or `false` (default): whether a ONCE flow or a snapshot may come to a target whose old tombstones were collected.
pub(crate) const ACCEPT_HORIZON: &str = "strandline.acceptHorizon";
/// A table for the rows that constraints drop; the engine makes it.
pub(crate) const QUARANTINE: &str = "strandline.quarantine";
/// How long a flow of a continuous pipeline waits before it looks for more: `5 seconds`, `1 minute`.
pub(crate) const TRIGGER_INTERVAL: &str = "pipelines.trigger.interval";
/// `false` refuses full refreshes of the table; the graph knows it.
const RESET_ALLOWED: &str = "pipelines.reset.allowed";
/// How deleted rows are written; `SET` of the same name says it for all tables of a pipeline that don't say it themselves.
pub(crate) const WRITE_MODE: &str = strandline_table_formats::lake::WRITE_MODE;
/// Properties of formats that are obeyed.
const FORMAT_PROPERTIES: [&str; 6] = [
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.logRetentionDuration",
    "delta.deletedFileRetentionDuration",
    "write.metadata.delete-after-commit.enabled",
    "write.metadata.previous-versions-max",
];
/// Properties that mean something to tables of one format only begin so.
const OF_FORMATS: [(&str, &str); 2] = [("delta.", "delta"), ("write.", "iceberg")];
/// Accepted as in published examples, without effect.
const WITHOUT_EFFECT: [&str; 1] = ["pipelines.channel"];

/// The properties of a table, understood.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Properties {
    pub(crate) on_tie: OnTie,
    pub(crate) system_time: SystemTime,
    pub(crate) null_sequence_fields: NullSequenceFields,
    /// How long a delete that nothing shows is remembered; `None` for ever.
    pub(crate) tombstones_expire_after: Option<Duration>,
    pub(crate) accept_horizon: bool,
    pub(crate) quarantine: Option<String>,
    pub(crate) trigger_interval: Option<Duration>,
    /// What only snapshot flows obey.
    snapshots: SnapshotProperties,
    /// What the table is created with, verbatim.
    pub(crate) verbatim: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct SnapshotProperties {
    skip_stale: bool,
    max_delete_fraction: Option<f64>,
    guard_from_rows: Option<usize>,
}

impl Properties {
    /// When a snapshot is refused.
    pub(crate) fn snapshot_rules(&self) -> SnapshotRules {
        let SnapshotProperties { skip_stale, max_delete_fraction, guard_from_rows } = self.snapshots;
        let default = SnapshotRules::default();
        SnapshotRules {
            max_delete_fraction: max_delete_fraction.unwrap_or(default.max_delete_fraction),
            guard_from_rows: guard_from_rows.unwrap_or(default.guard_from_rows),
            accept_horizon: self.accept_horizon,
            on_stale: if skip_stale { OnStale::Skip } else { OnStale::Refuse },
        }
    }

    /// Refuses what only snapshot flows obey, for a table that has none.
    pub(crate) fn check_no_snapshots(&self) -> Result<()> {
        if self.snapshots == SnapshotProperties::default() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            "a property of the table means something to snapshot flows only, and none writes it",
        )
        .with("properties", [ON_STALE, MAX_DELETE_FRACTION, GUARD_FROM_ROWS].join(", "))
        .help("leave it out"))
    }

    /// Refuses what only change flows obey, for a table that rows are appended to.
    pub(crate) fn check_append(&self) -> Result<()> {
        let Self { quarantine, trigger_interval, verbatim, .. } = self.clone();
        if *self == (Self { quarantine, trigger_interval, verbatim, ..Self::default() }) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            "a property of the table means something to change flows only",
        )
        .with(
            "properties",
            [
                ON_TIE,
                SYSTEM_TIME,
                NULL_SEQUENCE_FIELDS,
                TOMBSTONE_SECONDS,
                ACCEPT_HORIZON,
                ON_STALE,
                MAX_DELETE_FRACTION,
                GUARD_FROM_ROWS,
            ]
            .join(", "),
        )
        .help("leave it out: rows are appended to this table as they come"))
    }

    /// The same with what the pipeline sets for all its tables.
    pub(crate) fn with_settings(mut self, settings: &BTreeMap<String, String>) -> Result<Self> {
        if let Some(mode) = settings.get(WRITE_MODE) {
            let mode = write_mode(mode)?;
            self.verbatim.entry(WRITE_MODE.to_owned()).or_insert(mode);
        }
        Ok(self)
    }

    /// Refuses properties of another format than the table is kept in.
    pub(crate) fn check_format(&self, format: &str) -> Result<()> {
        let of_another = |name: &str| {
            OF_FORMATS.iter().find(|(prefix, of)| name.starts_with(prefix) && *of != format).map(|(_, of)| of)
        };
        match self.verbatim.iter().find_map(|(name, _)| Some((name, of_another(name)?))) {
            // In memory there is nothing that a format could keep in another way.
            Some((name, of)) if format != "memory" => Err(Error::new(
                ErrorKind::Unsupported,
                format!("the property means something to {of} tables only"),
            )
            .with("property", name)
            .with("format", format)
            .help("leave it out, or run the pipeline with the other --format")),
            _ => Ok(()),
        }
    }

    pub(crate) fn new(table: Option<&TableDeclaration>) -> Result<Self> {
        let mut properties = Self::default();
        for (name, value) in table.into_iter().flat_map(|table| &table.properties) {
            let refused = |why: &str| {
                Error::new(ErrorKind::Unsupported, why).with("property", name).with("value", value)
            };
            let chosen = |no: &str, yes: &str| match value.as_str() {
                value if value == no => Ok(false),
                value if value == yes => Ok(true),
                _ => Err(refused(&format!("the property must be `{no}` or `{yes}`"))),
            };
            match name.as_str() {
                ON_TIE => {
                    properties.on_tie = match value.as_str() {
                        "larger" => OnTie::LargerWins,
                        "error" => OnTie::Error,
                        _ => return Err(refused("the property must be `larger` or `error`")),
                    }
                }
                SYSTEM_TIME => {
                    properties.system_time = match value.as_str() {
                        "declared" => SystemTime::Declared,
                        "monotonic" => SystemTime::Monotonic,
                        _ => return Err(refused("the property must be `declared` or `monotonic`")),
                    }
                }
                NULL_SEQUENCE_FIELDS => {
                    properties.null_sequence_fields = match value.as_str() {
                        "refused" => NullSequenceFields::Refused,
                        "first" => NullSequenceFields::First,
                        _ => return Err(refused("the property must be `refused` or `first`")),
                    }
                }
                TOMBSTONE_SECONDS => {
                    let seconds = value.trim().parse();
                    let seconds = seconds.map_err(|_| refused("the property must be a number of seconds"))?;
                    properties.tombstones_expire_after = Some(Duration::from_secs(seconds));
                }
                QUARANTINE if value.trim().is_empty() => {
                    return Err(refused("the property must name a table"));
                }
                QUARANTINE => properties.quarantine = Some(value.clone()),
                ACCEPT_HORIZON => properties.accept_horizon = chosen("false", "true")?,
                TRIGGER_INTERVAL => {
                    let interval = settings::interval(value);
                    let interval =
                        interval.ok_or_else(|| refused("the property must be a span of time: 5 seconds"))?;
                    properties.trigger_interval = Some(interval);
                }
                RESET_ALLOWED if matches!(value.as_str(), "true" | "false") => {}
                RESET_ALLOWED => return Err(refused("the property must be `true` or `false`")),
                ON_STALE => properties.snapshots.skip_stale = chosen("error", "skip")?,
                MAX_DELETE_FRACTION => {
                    let fraction = value.trim().parse().ok().filter(|part| (0.0..=1.0).contains(part));
                    let fraction = fraction.ok_or_else(|| refused("the property must be from 0 to 1"))?;
                    properties.snapshots.max_delete_fraction = Some(fraction);
                }
                GUARD_FROM_ROWS => {
                    let rows = value.trim().parse();
                    let rows = rows.map_err(|_| refused("the property must be a number of rows"))?;
                    properties.snapshots.guard_from_rows = Some(rows);
                }
                WRITE_MODE => drop(properties.verbatim.insert(name.clone(), write_mode(value)?)),
                known if WITHOUT_EFFECT.contains(&known) => {}
                engine if engine.starts_with("strandline.") || engine.starts_with("pipelines.") => {
                    return Err(refused("the property is not known"));
                }
                format
                    if OF_FORMATS.iter().any(|(prefix, _)| format.starts_with(prefix))
                        && !FORMAT_PROPERTIES.contains(&format) =>
                {
                    let refused = refused("the property of the table's format is not obeyed");
                    return Err(refused.help(format!("known are {}", FORMAT_PROPERTIES.join(", "))));
                }
                _ => drop(properties.verbatim.insert(name.clone(), value.clone())),
            }
        }
        Ok(properties)
    }
}

fn write_mode(value: &str) -> Result<String> {
    let mode = value.parse::<strandline_table_formats::WriteMode>();
    Ok(mode.map_err(|e| Error::from(e).with("property", WRITE_MODE))?.to_string())
}
