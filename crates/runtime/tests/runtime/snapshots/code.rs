//! Images that code of a Rust program gives.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use futures::{StreamExt, stream};
use object_store::memory::InMemory;
use serde_json::json;
use strandline_runtime::{ErrorKind, FlowStatus, Result, Snapshot, SnapshotProvider, SnapshotVersion};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use super::{flow, history_after_three, scd2};
use crate::pipeline::{Bench, FORMATS, Format};

/// Rows of (id, tier), and their version.
type Image = (i64, Vec<(i64, &'static str)>);

struct Code {
    images: Mutex<Vec<Image>>,
    calls: AtomicUsize,
    version_type: DataType,
}

impl Code {
    fn new(images: Vec<Image>) -> Arc<Self> {
        Arc::new(Self {
            images: Mutex::new(images),
            calls: AtomicUsize::new(0),
            version_type: DataType::Int64,
        })
    }

    fn worked() -> Arc<Self> {
        Self::new(vec![
            (1, vec![(1, "basic"), (2, "gold"), (3, "basic")]),
            (2, vec![(1, "gold"), (3, "basic")]),
            (3, vec![(1, "gold"), (2, "basic"), (3, "basic"), (4, "basic")]),
        ])
    }
}

#[async_trait]
impl SnapshotProvider for Code {
    fn schema(&self) -> SchemaRef {
        let columns = [("id", DataType::Int64), ("tier", DataType::Utf8)];
        Arc::new(Schema::new(columns.map(|(name, kind)| Field::new(name, kind, true)).to_vec()))
    }

    fn version_type(&self) -> DataType {
        self.version_type.clone()
    }

    async fn next(&self, last: Option<SnapshotVersion>) -> Result<Option<Snapshot>> {
        use arrow_array::{cast::AsArray, types::Int64Type};
        self.calls.fetch_add(1, Ordering::Relaxed);
        let last = last.map_or(i64::MIN, |last| last.value().as_primitive::<Int64Type>().value(0));
        let images = self.images.lock().unwrap();
        let Some((version, rows)) = images.iter().find(|(version, _)| *version > last) else {
            return Ok(None);
        };
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(id, _)| *id)));
        let tiers: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, tier)| *tier)));
        let rows = RecordBatch::try_new(self.schema(), vec![ids, tiers]).unwrap();
        let rows = stream::iter([Ok(rows)]).boxed();
        Ok(Some(Snapshot { version: SnapshotVersion::from(*version), rows }))
    }
}

const CALLED: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE t;
    CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT CALLBACK KEYS (id) STORED AS SCD TYPE 2;";

#[tokio::test]
async fn code_of_a_program_gives_one_image_after_another() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let code = Code::worked();
        let project =
            bench.project(CALLED).with_snapshots("f", Arc::clone(&code) as Arc<dyn SnapshotProvider>);
        let report = project.run().await.unwrap();
        assert_eq!((flow(&report).status, flow(&report).batches), (FlowStatus::Completed, 3), "{report:?}");
        assert_eq!(code.calls.load(Ordering::Relaxed), 4, "three images, and nothing new");
        assert_eq!(scd2(&bench).await, history_after_three());
        let report = project.run().await.unwrap();
        assert_eq!((flow(&report).batches, code.calls.load(Ordering::Relaxed)), (0, 5));
    }
    let errors = Bench::new(Format::Delta).run(CALLED).await.unwrap_err();
    assert!(errors[0].help_text().unwrap().contains("with_snapshots"), "{errors:?}");
}

#[tokio::test]
async fn code_that_gives_another_version_after_a_crash_is_planned_anew() {
    let store = FaultStore::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    let code = Code::worked();
    let project = bench.project(CALLED).with_snapshots("f", Arc::clone(&code) as Arc<dyn SnapshotProvider>);
    // Version 1 is planned, and nothing of it lands.
    store.faults().add(Rule::nth(1, Fault::After).of("put").on("/plan/").and_dies());
    drop(project.run().await);
    store.faults().revive();
    code.images.lock().unwrap().remove(0);
    let report = project.run().await.unwrap();
    assert_eq!((flow(&report).status, flow(&report).batches), (FlowStatus::Completed, 2), "{report:?}");
    assert!(flow(&report).notice.as_ref().unwrap().contains("planned version 1"), "{report:?}");
    let starts = bench.rows("SELECT DISTINCT __START_AT AS s FROM t ORDER BY s").await;
    assert_eq!(json!(starts), json!([{"s": 2}, {"s": 3}]));
}

#[tokio::test]
async fn code_that_breaks_its_contract_is_told_so_by_name() {
    let bench = Bench::new(Format::Delta);
    let code = Code {
        images: Mutex::new(vec![(1, vec![(1, "a")])]),
        calls: AtomicUsize::new(0),
        version_type: DataType::Utf8,
    };
    let report = bench.project(CALLED).with_snapshots("f", Arc::new(code)).run().await.unwrap();
    let reason = flow(&report).reason.clone().unwrap();
    assert!(reason.contains("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE"), "{reason}");
    let once = CALLED.replace("AUTO CDC INTO", "AUTO CDC ONCE INTO");
    let bench = Bench::new(Format::Delta);
    let report = bench.project(&once).with_snapshots("f", Code::new(vec![])).run().await.unwrap();
    assert!(flow(&report).reason.as_ref().unwrap().contains("FIRST_SNAPSHOT_EMPTY"), "{report:?}");
    let none: ArrayRef = Arc::new(Int64Array::from(vec![None::<i64>]));
    let error = SnapshotVersion::new(none).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Data && error.to_string().contains("NULL_SNAPSHOT_VERSION"),
        "{error}"
    );
}
