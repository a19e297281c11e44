//! A Delta table in memory: over its contract, below it, and as deltalake's own kernel reads it.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Int64Array, RecordBatch, StringArray, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use deltalake_core::{
    kernel::{
        Action, Add, DeletionVectorDescriptor, Remove, Snapshot, StorageType,
        engine::arrow_data::ArrowEngineData,
        transaction::{CommitBuilder, CommitProperties},
    },
    logstore::{LogStoreRef, StorageConfig, default_logstore},
    protocol::{DeltaOperation, SaveMode},
    table::state::DeltaTableState,
};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path, prefix::PrefixStore};
use parquet::arrow::ArrowWriter;
use roaring::RoaringTreemap;
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

/// Another program that writes to the table, by deltalake's means alone.
impl Fixture {
    /// Writes a file, and gives its action: with statistics or without any.
    pub(crate) async fn other_file(&self, name: &str, rows: &RecordBatch, with_stats: bool) -> Add {
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(rows).unwrap();
        let bytes = writer.into_inner().unwrap();
        let size = bytes.len();
        self.store.put(&Path::from(format!("lake/t/{name}")), bytes.into()).await.unwrap();
        let stats = format!(r#"{{"numRecords":{},"tightBounds":true}}"#, rows.num_rows());
        Add {
            path: name.to_owned(),
            size: i64::try_from(size).unwrap(),
            modification_time: 1,
            data_change: true,
            stats: with_stats.then_some(stats),
            ..Add::default()
        }
    }

    /// Commits on the newest version.
    pub(crate) async fn other_commit(&self, actions: Vec<Action>) {
        let log = self.log();
        let state = DeltaTableState::try_new(log.as_ref(), None).await.unwrap();
        let operation = DeltaOperation::Write { mode: SaveMode::Append, partition_by: None, predicate: None };
        let commit = CommitBuilder::from(CommitProperties::default().with_create_checkpoint(false))
            .with_actions(actions)
            .build(Some(&state), log, operation);
        let _landed = commit.into_future().await.unwrap();
    }

    /// The files of the newest version, as actions that remove them.
    pub(crate) async fn other_removes(&self, data_change: bool) -> Vec<Remove> {
        let state = DeltaTableState::try_new(self.log().as_ref(), None).await.unwrap();
        state.log_data().into_iter().map(|file| file.remove_action(data_change)).collect()
    }

    /// Moves all rows to one file, as OPTIMIZE does.
    pub(crate) async fn optimized(&self, name: &str) {
        let snapshot = self.opened().await.snapshot().await.unwrap();
        let batches: Vec<_> = snapshot.scan(None).await.unwrap().try_collect().await.unwrap();
        let all = arrow_select::concat::concat_batches(&snapshot.schema(), &batches).unwrap();
        let add = Add { data_change: false, ..self.other_file(name, &all, true).await };
        let removes = self.other_removes(false).await.into_iter().map(Action::Remove);
        self.other_commit(removes.chain([Action::Add(add)]).collect()).await;
    }

    /// Marks rows of a file as deleted, in the place of what was marked before.
    pub(crate) async fn other_mask(&self, path: &str, rows: &[u64]) {
        let state = DeltaTableState::try_new(self.log().as_ref(), None).await.unwrap();
        let view = state.log_data().into_iter().find(|file| file.path() == path).unwrap();
        #[expect(deprecated, reason = "the shortest way to an action of a file")]
        let add = Add { deletion_vector: Some(self.vector(rows).await), ..view.add_action() };
        self.other_commit(vec![Action::Remove(view.remove_action(true)), Action::Add(add)]).await;
    }

    async fn vector(&self, rows: &[u64]) -> DeletionVectorDescriptor {
        let (bytes, size) = vector_file(rows);
        self.store.put(&Path::from(format!("lake/t/{VECTOR_PATH}")), bytes.into()).await.unwrap();
        DeletionVectorDescriptor {
            storage_type: StorageType::UuidRelativePath,
            path_or_inline_dv: VECTOR_NAME.to_owned(),
            offset: Some(1),
            size_in_bytes: i32::try_from(size).unwrap(),
            cardinality: i64::try_from(rows.len()).unwrap(),
        }
    }
}

/// The protocol's own example of a deletion vector's name, and where it lies.
pub(crate) const VECTOR_NAME: &str = "ab^-aqEH.-t@S}K{vb[*k^";
pub(crate) const VECTOR_PATH: &str = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin";

/// A file of one deletion vector, as the protocol describes it, and the size of the vector.
pub(crate) fn vector_file(rows: &[u64]) -> (Vec<u8>, usize) {
    let mut bitmap = 1_681_511_377_u32.to_le_bytes().to_vec();
    rows.iter().copied().collect::<RoaringTreemap>().serialize_into(&mut bitmap).unwrap();
    let mut bytes = vec![1_u8];
    bytes.extend(u32::try_from(bitmap.len()).unwrap().to_be_bytes());
    bytes.extend(&bitmap);
    let mut sum = !0_u32;
    for bit in bitmap.iter().flat_map(|byte| (0..8).map(move |at| u32::from(byte >> at & 1))) {
        let low = (sum ^ bit) & 1;
        sum = (sum >> 1) ^ (0xedb8_8320 * low);
    }
    bytes.extend((!sum).to_be_bytes());
    (bytes, bitmap.len())
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
