//! The source of a snapshot flow: a slice is the version of one image, the progress is the version that was taken last.
//!
//! A version stands in a plan as a table of one row and one column, so that its name and type are there too: both stay the
//! same for as long as the flow lives.

mod called;
mod initial;
mod queried;

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::common::ScalarValue;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strandline_cdc_core::OnStale;
use strandline_pipeline_sql::{FlowDefinition, FlowKind, SnapshotSource};
use strandline_table_formats::parquet;

use crate::{
    analysis::{FlowAnalysis, SnapshotInput},
    error::{Error, ErrorKind, Result},
    snapshots::{SnapshotVersion, condition},
    sources::{Source, SourceStream},
    state::FlowState,
    types::cast_exactly,
    update::Context,
};

/// Where images come from.
///
/// # Contract
/// 1. `next` gives the version after `last`, `None` when there is nothing new.
/// 2. `read` gives the image of the version that `next` gave last; of one whose versions are `fixed`, of any that it gave.
#[async_trait]
trait Gallery: Send + Sync {
    /// The version of the next image, in whatever type.
    async fn next(&self, last: Option<&SnapshotVersion>) -> Result<Option<ArrayRef>>;
    /// The rows of an image.
    async fn read(&self, version: &SnapshotVersion) -> Result<SourceStream>;
    /// Whether a version that an earlier process planned holds whatever `next` would give now.
    fn is_fixed(&self) -> bool {
        false
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Slice {
    version: String,
    /// The version for people.
    shown: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Progress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<String>,
}

/// What [`Source::available`] says: which versions there will be is not known before they were asked for.
#[derive(Debug, Serialize, Deserialize)]
struct Available {
    snapshots: String,
}

/// The images of a snapshot flow.
#[derive(Clone)]
pub(super) struct Images {
    gallery: Arc<dyn Gallery>,
    /// The version that `next` gave last.
    given: Arc<Mutex<Option<String>>>,
    /// The column of versions.
    column: FieldRef,
    schema: SchemaRef,
    /// Of a ONCE flow: there must be a first image.
    once: bool,
    on_stale: OnStale,
}

impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Images").field("column", &self.column).finish_non_exhaustive()
    }
}

/// Opens the images of a flow.
pub(super) fn open(
    context: &Context,
    flow: &FlowDefinition,
    analysis: &FlowAnalysis,
    input: &SnapshotInput,
) -> Result<Images> {
    let FlowKind::Snapshot(snapshot) = &flow.kind else {
        return Err(Error::new(ErrorKind::Internal, "a flow that is no snapshot flow has images"));
    };
    let gallery: Arc<dyn Gallery> = match &snapshot.source {
        SnapshotSource::Callback => {
            let provider = context.snapshots.get(&flow.name);
            let provider = provider.ok_or_else(|| {
                Error::new(ErrorKind::Definition, "there is no code that gives the snapshots of the flow")
            })?;
            Arc::new(called::Called::new(Arc::clone(provider)))
        }
        SnapshotSource::Query { image, version } => {
            let image = queried::WholeQuery::new(context, image, &input.image_inputs);
            match version {
                Some(version) => {
                    let version = queried::WholeQuery::new(context, version, &input.version_inputs);
                    Arc::new(queried::Queried::new(image, version, Arc::clone(&input.version)))
                }
                None => Arc::new(initial::Initial::new(image, Arc::clone(&context.clock))),
            }
        }
    };
    Ok(Images {
        gallery,
        given: Arc::default(),
        column: Arc::clone(&input.version),
        schema: Arc::clone(&analysis.rows),
        once: flow.once,
        on_stale: analysis.properties.snapshot_rules().on_stale,
    })
}

/// The version that a slice of a snapshot flow stands for.
pub(super) fn version_of(input: &SnapshotInput, slice: &Value) -> Result<SnapshotVersion> {
    read_version(&input.version, &decoded::<Slice>(slice)?.version)
}

fn read_version(column: &FieldRef, text: &str) -> Result<SnapshotVersion> {
    let rows = parquet::from_text(text)
        .map_err(|e| Error::from(e).with("version of a snapshot in a plan, bytes", text.len()))?;
    let schema = rows.schema();
    let (Some(value), Some(field)) = (rows.columns().first(), schema.fields().first()) else {
        return Err(Error::new(ErrorKind::State, "the version of a snapshot in a plan is no value"));
    };
    if field.name() != column.name() || field.data_type() != column.data_type() {
        let shown = |field: &FieldRef| format!("{} {}", field.name(), field.data_type());
        return Err(condition(
            ErrorKind::State,
            "AUTO_CDC_FROM_SNAPSHOT_VERSION_SCHEMA_CHANGED",
            "the versions of the flow have another name or type than before",
        )
        .with("before", shown(field))
        .with("now", shown(column))
        .help("write the version as it was; a full refresh of the target takes up the new one"));
    }
    SnapshotVersion::new(Arc::clone(value))
}

impl Images {
    /// Refuses versions of another name or type than those that the flow took before.
    pub(super) async fn check_recorded(&self, state: &FlowState) -> Result<()> {
        match state.newest(self).await? {
            Some((newest, _)) => self.version_in(&decoded::<Slice>(&newest.plan.slice)?.version).map(drop),
            None => Ok(()),
        }
    }

    fn version_in(&self, text: &str) -> Result<SnapshotVersion> {
        read_version(&self.column, text)
    }

    fn text_of(&self, version: &SnapshotVersion) -> Result<String> {
        let schema = Arc::new(Schema::new(vec![self.column.as_ref().clone().with_nullable(true)]));
        Ok(parquet::to_text(&RecordBatch::try_new(schema, vec![Arc::clone(version.value())])?)?)
    }

    /// The version after `last`, in the column's type.
    async fn version_after(&self, last: Option<&SnapshotVersion>) -> Result<Option<SnapshotVersion>> {
        let Some(version) = self.gallery.next(last).await? else { return Ok(None) };
        let version = SnapshotVersion::new(version)?;
        let version = cast_exactly(version.value(), &self.column).map_err(|error| {
            condition(
                ErrorKind::Data,
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE",
                "the version has another type than the flow's versions",
            )
            .because(error)
        })?;
        let version = SnapshotVersion::new(version)?;
        if let Ok(mut given) = self.given.lock() {
            *given = Some(self.text_of(&version)?);
        }
        Ok(Some(version))
    }

    /// A version that an earlier process planned, and nothing of it landed, is asked for again: an export that was taken
    /// away since must not be read as an empty one.
    async fn check_still_given(&self, slice: &Slice) -> Result<()> {
        let is_given = || self.given.lock().is_ok_and(|given| given.as_ref() == Some(&slice.version));
        if self.gallery.is_fixed() || is_given() {
            return Ok(());
        }
        let last = slice.last.as_deref().map(|last| self.version_in(last)).transpose()?;
        let now = self.version_after(last.as_ref()).await?;
        if is_given() {
            return Ok(());
        }
        let now = now.map_or_else(|| "none".to_owned(), |now| now.to_string());
        Err(Error::new(ErrorKind::Gone, "the snapshot that was planned is not the next one any more")
            .with("planned version", &slice.shown)
            .with("next version now", now))
    }

    /// Refuses a version that is not above the last one. False: it is to be passed over.
    fn is_next(&self, version: &SnapshotVersion, last: Option<&SnapshotVersion>) -> Result<bool> {
        let Some(last) = last else { return Ok(true) };
        let [now, before] = [version, last].map(|version| ScalarValue::try_from_array(version.value(), 0));
        match now?.partial_cmp(&before?) {
            Some(std::cmp::Ordering::Greater) => Ok(true),
            Some(_) if self.on_stale == OnStale::Skip => Ok(false),
            Some(_) => Err(condition(
                ErrorKind::Data,
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.OUT_OF_ORDER_SNAPSHOT_VERSION",
                "the version is not above the last one that was taken",
            )
            .with("version", version)
            .with("last", last)
            .help("let WITH VERSION give versions above last_snapshot_version() only, and no row when there is none")),
            None => Err(condition(
                ErrorKind::Data,
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.SNAPSHOT_VERSION_NOT_SORTABLE",
                "two versions can't be compared",
            )
            .with("version", version)
            .with("last", last)),
        }
    }
}

#[async_trait]
impl Source for Images {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn start(&self) -> Value {
        encoded(&Progress::default())
    }

    async fn next(&self, progress: &Value) -> Result<Option<Value>> {
        let progress: Progress = decoded(progress)?;
        let last = progress.last.as_deref().map(|last| self.version_in(last)).transpose()?;
        if self.once && last.is_some() && self.gallery.is_fixed() {
            // The one image was taken, by a process that did not come to say that the flow is complete.
            return Ok(None);
        }
        let Some(version) = self.version_after(last.as_ref()).await? else {
            if self.once && last.is_none() {
                return Err(condition(
                    ErrorKind::NotFound,
                    "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.FIRST_SNAPSHOT_EMPTY",
                    "there is no snapshot for a ONCE flow to take",
                )
                .help("run it once there is one; until then it stays incomplete"));
            }
            return Ok(None);
        };
        if !self.is_next(&version, last.as_ref())? {
            return Ok(None);
        }
        let slice =
            Slice { version: self.text_of(&version)?, shown: version.to_string(), last: progress.last };
        Ok(Some(encoded(&slice)))
    }

    fn advance(&self, _: Value, slice: &Value) -> Result<Value> {
        let slice: Slice = decoded(slice)?;
        Ok(encoded(&Progress { last: Some(slice.version) }))
    }

    async fn read(&self, slice: &Value) -> Result<SourceStream> {
        let slice: Slice = decoded(slice)?;
        let version = self.version_in(&slice.version)?;
        self.check_still_given(&slice).await?;
        self.gallery.read(&version).await
    }

    async fn available(&self) -> Result<Value> {
        Ok(encoded(&Available { snapshots: self.column.name().clone() }))
    }

    fn fixed(&self, available: &Value) -> Result<Box<dyn Source>> {
        decoded::<Available>(available)?;
        Ok(Box::new(self.clone()))
    }
}

fn encoded<T: Serialize>(value: &T) -> Value {
    // Strings always encode.
    serde_json::to_value(value).unwrap_or_default()
}

fn decoded<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(value).map_err(|e| {
        Error::new(ErrorKind::State, "what is recorded of this flow's source is not of a snapshot flow")
            .help("the flow read something else before; give it a new name")
            .because(e)
    })
}
