//! A Delta table in memory: over its contract, below it, and as deltalake's own kernel reads it.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Int64Array, RecordBatch, StringArray, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use deltalake_core::{
    kernel::{Snapshot, engine::arrow_data::ArrowEngineData},
    logstore::{LogStoreRef, StorageConfig, default_logstore},
};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path, prefix::PrefixStore};
use strandline_table_formats::{
    CommitOutcome, CommitStamp, DeltaFormat, LakeOptions, LookupPlan, StateVersion, Table, TableChange,
    TableDefinition, TableFormat, WriterId, delta::DeltaMetadata, metadata::TableMetadata,
};
use url::Url;

/// A table in memory, over the contract and below it.
pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) format: DeltaFormat,
    pub(crate) table: Arc<dyn Table>,
}

impl Fixture {
    pub(crate) async fn new(properties: &[(&str, &str)]) -> Self {
        Self::with_options(properties, LakeOptions::default()).await
    }

    pub(crate) async fn with_options(properties: &[(&str, &str)], options: LakeOptions) -> Self {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let format = DeltaFormat::new(Arc::clone(&store), Path::from("lake")).with_options(options);
        let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let definition = TableDefinition {
            schema: rows(0..0).schema(),
            keys: vec!["id".into()],
            properties: properties.collect::<BTreeMap<_, _>>(),
            comment: None,
        };
        let table = format.create("t", &definition).await.unwrap();
        Self { store, format, table }
    }

    /// The table below its contract, as another process would open it.
    pub(crate) fn metadata(&self) -> DeltaMetadata {
        self.format.metadata("t").unwrap()
    }

    /// The table's log, as deltalake opens it.
    pub(crate) fn log(&self) -> LogStoreRef {
        let folder = Arc::new(PrefixStore::new(Arc::clone(&self.store), Path::from("lake/t")));
        let root = Url::parse("memory:///").unwrap();
        default_logstore(
            Arc::clone(&folder) as Arc<dyn ObjectStore>,
            folder,
            &root,
            &StorageConfig::default(),
        )
    }

    pub(crate) async fn append(&self, batch: u64, ids: std::ops::Range<i64>) {
        let base = self.table.snapshot().await.unwrap();
        let change = TableChange::Append(stream::iter([Ok(rows(ids))]).boxed());
        let outcome = self.table.commit(base.as_ref(), change, &stamp(batch)).await.unwrap();
        assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
    }

    pub(crate) async fn opened(&self) -> Arc<dyn Table> {
        self.format.open("t").await.unwrap().unwrap()
    }

    /// The ids of all rows, as this crate reads them.
    pub(crate) async fn ids(&self) -> Vec<i64> {
        let snapshot = self.opened().await.snapshot().await.unwrap();
        ids(&snapshot.scan(None).await.unwrap().try_collect::<Vec<_>>().await.unwrap())
    }

    /// The ids of all rows, as deltalake's kernel reads them.
    pub(crate) async fn kernel_ids(&self) -> Vec<i64> {
        let log = self.log();
        let snapshot = Snapshot::try_new(log.as_ref(), None).await.unwrap();
        let scan = snapshot.scan_builder().build().unwrap();
        let scan = Arc::clone(scan.snapshot()).scan_builder().build().unwrap();
        let engine = log.engine(None);
        let read = tokio::task::spawn_blocking(move || {
            let data = scan.execute(engine).unwrap().map(|data| {
                RecordBatch::from(*ArrowEngineData::try_from_engine_data(data.unwrap()).unwrap())
            });
            data.collect::<Vec<_>>()
        });
        ids(&read.await.unwrap())
    }

    /// Rows of some ids go, and these come, in one commit on a version.
    pub(crate) async fn change(
        &self,
        batch: u64,
        gone: std::ops::Range<i64>,
        inserts: Vec<RecordBatch>,
    ) -> CommitOutcome {
        let base = self.table.snapshot().await.unwrap();
        let plan = LookupPlan { keys: Some(rows(gone).project(&[0]).unwrap()), columns: None, bound: None };
        let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
        let deletes = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
        let change = TableChange::Rows { deletes, inserts };
        self.table.commit(base.as_ref(), change, &stamp(batch)).await.unwrap()
    }

    /// The newest log entry, as text.
    pub(crate) async fn entry(&self) -> String {
        let version = self.metadata().head(None).await.unwrap().version;
        let path = Path::from(format!("lake/t/_delta_log/{:020}.json", version.0));
        let bytes = self.store.get(&path).await.unwrap().bytes().await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }
}

pub(crate) fn stamp(batch: u64) -> CommitStamp {
    let writer = WriterId { pipeline: "p".into(), flow: "f".into(), incarnation: 0 };
    CommitStamp { writer, batch, state: StateVersion(batch), epoch: 1 }
}

pub(crate) fn rows(ids: std::ops::Range<i64>) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    let values: StringArray = ids.clone().map(|id| Some(format!("v{id}"))).collect();
    RecordBatch::try_new(
        Arc::new(schema),
        vec![Arc::new(Int64Array::from_iter_values(ids)), Arc::new(values)],
    )
    .unwrap()
}

pub(crate) fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    let column = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    let mut ids: Vec<i64> = batches.iter().flat_map(column).collect();
    ids.sort_unstable();
    ids
}
