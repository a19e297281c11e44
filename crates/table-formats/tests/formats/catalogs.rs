//! Every catalog keeps the contract of the port, and the one in SQLite is what other programs take it for.

use std::{collections::HashMap, path::Path as FsPath, sync::Arc};

use iceberg::{
    TableRequirement, TableUpdate,
    spec::{
        MAIN_BRANCH, NestedField, NullOrder, Operation, PrimitiveType, Schema, Snapshot, SnapshotReference,
        SnapshotRetention, SortDirection, SortField, SortOrder, Summary, Transform, Type,
        UnboundPartitionSpec,
    },
};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use rusqlite::Connection;
use strandline_table_formats::{
    ErrorKind,
    iceberg::{Catalog, Creation, Loaded, SqlCatalog, SqlOptions, Swap, Warehouse},
};

/// A table of two columns, partitioned by the bucket of one.
pub(crate) fn creation(properties: &[(&str, &str)]) -> Creation {
    let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long));
    let text = NestedField::optional(2, "text", Type::Primitive(PrimitiveType::String));
    let schema = Schema::builder().with_fields([Arc::new(id), Arc::new(text)]).with_identifier_field_ids([1]);
    let partitioning =
        UnboundPartitionSpec::builder().add_partition_field(1, "id_bucket", Transform::Bucket(4)).unwrap();
    Creation {
        schema: schema.build().unwrap(),
        partitioning: partitioning.build(),
        sort_order: SortOrder::unsorted_order(),
        properties: properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
    }
}

pub(crate) fn set(key: &str, value: &str) -> Vec<TableUpdate> {
    vec![TableUpdate::SetProperties { updates: HashMap::from([(key.to_owned(), value.to_owned())]) }]
}

/// An empty snapshot upon the newest one, as a commit of rows makes it.
fn snapshot(base: &Loaded, id: i64, note: &str) -> (Vec<TableRequirement>, Vec<TableUpdate>) {
    let metadata = &base.metadata;
    let parent = metadata.current_snapshot_id();
    let summary = Summary {
        operation: Operation::Append,
        additional_properties: HashMap::from([("note".to_owned(), note.to_owned())]),
    };
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(parent)
        .with_sequence_number(metadata.next_sequence_number())
        .with_timestamp_ms(metadata.last_updated_ms() + 1)
        .with_manifest_list(format!("{}/metadata/snap-{id}.avro", metadata.location()))
        .with_summary(summary)
        .with_schema_id(metadata.current_schema_id())
        .build();
    let retention = SnapshotRetention::branch(None, None, None);
    let updates = vec![
        TableUpdate::AddSnapshot { snapshot },
        TableUpdate::SetSnapshotRef {
            ref_name: MAIN_BRANCH.to_owned(),
            reference: SnapshotReference::new(id, retention),
        },
    ];
    let requirements = vec![
        TableRequirement::UuidMatch { uuid: metadata.uuid() },
        TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id: parent },
    ];
    (requirements, updates)
}

fn swapped(swap: Swap) -> Loaded {
    match swap {
        Swap::Swapped(loaded) => loaded,
        Swap::Lost => panic!("nobody else committed"),
    }
}

/// The contract, on two views of one catalog that share nothing in this process. Its namespace is empty before.
pub(crate) async fn keeps_the_contract(one: Arc<dyn Catalog>, two: Arc<dyn Catalog>) {
    creation_is_exclusive(one.as_ref(), two.as_ref()).await;
    a_swap_is_seen_or_lost(one.as_ref(), two.as_ref()).await;
    wrong_updates_change_nothing(one.as_ref(), two.as_ref()).await;
    let catalogs = [one, two];
    concurrent_commits_lose_nothing(&catalogs).await;
    concurrent_creations_make_one_table(&catalogs).await;
}

async fn creation_is_exclusive(one: &dyn Catalog, two: &dyn Catalog) {
    assert!(one.list().await.unwrap().is_empty());
    assert!(one.load("orders").await.unwrap().is_none());
    let created = one.create("orders", creation(&[("owner", "tests")])).await.unwrap();
    assert_eq!(created.metadata.properties().get("owner").unwrap(), "tests");
    assert_eq!(created.metadata.current_schema().as_struct().fields().len(), 2);
    assert_eq!(created.metadata.default_partition_spec().fields()[0].transform, Transform::Bucket(4));
    assert!(created.metadata.current_snapshot().is_none());
    let refused = two.create("orders", creation(&[])).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    let loaded = two.load("orders").await.unwrap().unwrap();
    assert_eq!(loaded.metadata_location, created.metadata_location);
    assert_eq!(loaded.metadata, created.metadata);
    for name in ["b", "a b", "ä", "a"] {
        two.create(name, creation(&[])).await.unwrap();
    }
    assert_eq!(one.list().await.unwrap(), ["a", "a b", "b", "orders", "ä"]);
    assert_eq!(two.list().await.unwrap(), one.list().await.unwrap());
    assert_ne!(
        one.load("a b").await.unwrap().unwrap().metadata.location(),
        one.load("b").await.unwrap().unwrap().metadata.location()
    );
    assert!(one.create("", creation(&[])).await.is_err());
}

async fn a_swap_is_seen_or_lost(one: &dyn Catalog, two: &dyn Catalog) {
    let base = one.create("swaps", creation(&[])).await.unwrap();
    let (requirements, updates) = snapshot(&base, 11, "first");
    let first = swapped(one.commit("swaps", &base, requirements, updates).await.unwrap());
    assert_eq!(first.metadata.current_snapshot_id(), Some(11));
    assert_ne!(first.metadata_location, base.metadata_location);

    // Built on the same base, and so lost: with requirements, and without any.
    for required in [true, false] {
        let (requirements, updates) = snapshot(&base, 12, "second");
        let requirements = if required { requirements } else { Vec::new() };
        let lost = two.commit("swaps", &base, requirements, updates).await.unwrap();
        assert!(matches!(lost, Swap::Lost), "{lost:?}");
    }
    let seen = two.load("swaps").await.unwrap().unwrap();
    assert_eq!(seen.metadata, first.metadata);
    assert_eq!(seen.metadata_location, first.metadata_location);
    assert_eq!(seen.metadata.snapshots().count(), 1);

    // On the fresh base it lands.
    let (requirements, mut updates) = snapshot(&seen, 12, "second");
    updates.extend(set("marker", "2"));
    let second = swapped(two.commit("swaps", &seen, requirements, updates).await.unwrap());
    let seen = one.load("swaps").await.unwrap().unwrap();
    assert_eq!(seen.metadata, second.metadata);
    let newest = seen.metadata.current_snapshot().unwrap();
    assert_eq!((newest.snapshot_id(), newest.parent_snapshot_id()), (12, Some(11)));
    assert_eq!(newest.summary().additional_properties.get("note").unwrap(), "second");
    assert_eq!(seen.metadata.properties().get("marker").unwrap(), "2");

    // A requirement that does not hold is a lost swap, not an error.
    let wrong =
        vec![TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id: Some(11) }];
    let lost = one.commit("swaps", &seen, wrong, set("marker", "3")).await.unwrap();
    assert!(matches!(lost, Swap::Lost));
    let other = vec![TableRequirement::UuidMatch { uuid: uuid::Uuid::from_u128(7) }];
    let lost = one.commit("swaps", &seen, other, set("marker", "3")).await.unwrap();
    assert!(matches!(lost, Swap::Lost));
    let after = two.load("swaps").await.unwrap().unwrap();
    assert_eq!(after.metadata.properties().get("marker").unwrap(), "2");

    // A column that comes changes the schema of those that read from then on.
    let more = NestedField::optional(3, "more", Type::Primitive(PrimitiveType::Double));
    let mut fields = after.metadata.current_schema().as_struct().fields().to_vec();
    fields.push(Arc::new(more));
    let schema = Schema::builder().with_fields(fields).with_schema_id(1).with_identifier_field_ids([1]);
    let updates = vec![
        TableUpdate::AddSchema { schema: schema.build().unwrap() },
        TableUpdate::SetCurrentSchema { schema_id: -1 },
    ];
    let widened = one.commit("swaps", &after, Vec::new(), updates.clone()).await.unwrap();
    assert!(matches!(widened, Swap::Swapped(_)));
    let wider = two.load("swaps").await.unwrap().unwrap();
    assert_eq!(wider.metadata.current_schema().field_by_name("more").unwrap().id, 3);
    let lost = two.commit("swaps", &after, Vec::new(), updates).await.unwrap();
    assert!(matches!(lost, Swap::Lost), "a schema upon one that is not the newest any more");
}

async fn wrong_updates_change_nothing(one: &dyn Catalog, two: &dyn Catalog) {
    let base = one.create("wrong", creation(&[])).await.unwrap();
    let nowhere = TableUpdate::SetSnapshotRef {
        ref_name: MAIN_BRANCH.to_owned(),
        reference: SnapshotReference::new(99, SnapshotRetention::branch(None, None, None)),
    };
    let refused = one.commit("wrong", &base, Vec::new(), vec![nowhere]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    let after = two.load("wrong").await.unwrap().unwrap();
    assert_eq!(after.metadata_location, base.metadata_location);
}

/// Commits until it lands, on what is the newest each time.
async fn commit_until_it_lands(catalog: &dyn Catalog, table: &str, id: i64) -> usize {
    for lost in 0..500 {
        let base = catalog.load(table).await.unwrap().unwrap();
        let (requirements, mut updates) = snapshot(&base, id, &id.to_string());
        updates.extend(set(&format!("writer-{id}"), &id.to_string()));
        match catalog.commit(table, &base, requirements, updates).await.unwrap() {
            Swap::Swapped(_) => return lost,
            Swap::Lost => tokio::task::yield_now().await,
        }
    }
    panic!("commit {id} never landed");
}

async fn concurrent_commits_lose_nothing(catalogs: &[Arc<dyn Catalog>; 2]) {
    const TASKS: i64 = 8;
    const EACH: i64 = 4;
    catalogs[0].create("many", creation(&[])).await.unwrap();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let catalog = Arc::clone(&catalogs[usize::from(task % 2 == 1)]);
            tokio::spawn(async move {
                let mut lost = 0;
                for number in 0..EACH {
                    lost += commit_until_it_lands(catalog.as_ref(), "many", 100 + task * EACH + number).await;
                }
                lost
            })
        })
        .collect();
    let mut lost = 0;
    for task in tasks {
        lost += task.await.unwrap();
    }
    assert!(lost > 0, "the commits never met");
    let end = catalogs[1].load("many").await.unwrap().unwrap().metadata;
    // Every snapshot once, each upon the one before it.
    let mut line = Vec::new();
    let mut next = end.current_snapshot_id();
    while let Some(snapshot) = next.and_then(|id| end.snapshot_by_id(id)) {
        line.push(snapshot.snapshot_id());
        next = snapshot.parent_snapshot_id();
    }
    line.sort_unstable();
    assert_eq!(line, (100..100 + TASKS * EACH).collect::<Vec<_>>());
    for id in line {
        assert_eq!(end.properties().get(&format!("writer-{id}")), Some(&id.to_string()));
    }
    assert_eq!(end.last_sequence_number(), TASKS * EACH);
}

async fn concurrent_creations_make_one_table(catalogs: &[Arc<dyn Catalog>; 2]) {
    let tasks: Vec<_> = (0..6)
        .map(|task: usize| {
            let catalog = Arc::clone(&catalogs[task % 2]);
            tokio::spawn(async move { catalog.create("one", creation(&[("by", &task.to_string())])).await })
        })
        .collect();
    let mut made = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            Ok(created) => made.push(created),
            Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}, {e:?}"),
        }
    }
    assert_eq!(made.len(), 1, "one of them made it");
    let loaded = catalogs[0].load("one").await.unwrap().unwrap();
    assert_eq!(loaded.metadata, made[0].metadata);
}

fn memory() -> SqlOptions {
    SqlOptions::new(Warehouse::new(Arc::new(InMemory::new()), "memory://"), Path::from("lake"))
}

/// Files under a folder of a store, by name.
async fn files(warehouse: &Warehouse, folder: &str) -> Vec<String> {
    use futures::TryStreamExt;
    let found = warehouse.store().list(Some(&Path::from(folder)));
    let mut names: Vec<_> = found.map_ok(|meta| meta.location.to_string()).try_collect().await.unwrap();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_in_memory_keeps_the_contract() {
    let catalog: Arc<dyn Catalog> = Arc::new(SqlCatalog::in_memory(memory()).await.unwrap());
    keeps_the_contract(Arc::clone(&catalog), catalog).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_on_disk_keeps_the_contract_over_two_connections() {
    let folder = tempfile::tempdir().unwrap();
    let one = Arc::new(SqlCatalog::in_folder(folder.path()).await.unwrap());
    let two = Arc::new(SqlCatalog::in_folder(folder.path()).await.unwrap());
    let warehouse = one.warehouse().clone();
    keeps_the_contract(one, two).await;
    // What lost left nothing behind: one metadata file for each version of the table.
    assert_eq!(files(&warehouse, "warehouse/default/many").await.len(), 33);
    assert_eq!(files(&warehouse, "warehouse/default/one").await.len(), 1);
    assert!(folder.path().join("catalog.db").is_file());
}

#[tokio::test]
async fn sql_tables_are_laid_out_as_other_programs_do() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = SqlCatalog::in_folder(folder.path()).await.unwrap();
    let base = catalog.create("orders", creation(&[])).await.unwrap();
    let next = swapped(catalog.commit("orders", &base, Vec::new(), set("a", "b")).await.unwrap());
    let place = format!("file://{}/warehouse/default/orders", folder.path().display());
    assert_eq!(base.metadata.location(), place);
    assert!(base.metadata_location.starts_with(&format!("{place}/metadata/00000-")));
    assert!(next.metadata_location.starts_with(&format!("{place}/metadata/00001-")));
    let path = FsPath::new(next.metadata_location.strip_prefix("file://").unwrap());
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(&base.metadata_location), "the log of metadata files names the one before");

    let database = Connection::open(folder.path().join("catalog.db")).unwrap();
    let row = database.query_row("SELECT * FROM iceberg_tables", [], |row| {
        Ok((0..6).map(|i| row.get::<_, Option<String>>(i).unwrap()).collect::<Vec<_>>())
    });
    let expected =
        ["default", "default", "orders", &next.metadata_location, &base.metadata_location, "TABLE"];
    assert_eq!(row.unwrap(), expected.map(|value| Some(value.to_owned())));
    let namespace = database.query_row("SELECT * FROM iceberg_namespace_properties", [], |row| {
        Ok((0..4).map(|i| row.get::<_, String>(i).unwrap()).collect::<Vec<_>>())
    });
    assert_eq!(namespace.unwrap(), ["default", "default", "exists", "true"]);
}

/// The tables as Iceberg's first JDBC catalogs and older `PyIceberg` make them.
const OLD: &str = "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, \
    table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), \
    previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name))";

#[tokio::test(flavor = "multi_thread")]
async fn sql_takes_a_database_without_types_and_leaves_it_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.db");
    Connection::open(&file).unwrap().execute_batch(OLD).unwrap();
    let one = Arc::new(SqlCatalog::in_folder(folder.path()).await.unwrap());
    let two = Arc::new(SqlCatalog::in_folder(folder.path()).await.unwrap());
    keeps_the_contract(one, two).await;
    let database = Connection::open(&file).unwrap();
    let columns: i64 = database
        .query_row("SELECT count(*) FROM pragma_table_info('iceberg_tables')", [], |r| r.get(0))
        .unwrap();
    assert_eq!(columns, 5);
    // Another program may add the column at any time; its views are not tables.
    let one = SqlCatalog::in_folder(folder.path()).await.unwrap();
    let count = one.list().await.unwrap().len();
    database.execute_batch("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)").unwrap();
    database
        .execute_batch("INSERT INTO iceberg_tables VALUES ('default', 'default', 'v', 'x', NULL, 'VIEW')")
        .unwrap();
    assert_eq!(one.list().await.unwrap().len(), count);
    assert!(one.load("v").await.unwrap().is_none());
    assert_eq!(one.create("v", creation(&[])).await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn sql_catalogs_and_namespaces_of_one_database_are_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.db");
    let warehouse = memory().warehouse;
    let open = async |catalog: &str, namespace: &str| {
        let options = SqlOptions {
            catalog: catalog.to_owned(),
            namespace: namespace.to_owned(),
            ..SqlOptions::new(warehouse.clone(), Path::from("w"))
        };
        SqlCatalog::open(&file, options).await.unwrap()
    };
    let (a, b, c) = (open("one", "x.y").await, open("one", "z").await, open("two", "z").await);
    let made = a.create("t", creation(&[])).await.unwrap();
    assert_eq!(made.metadata.location(), "memory:///w/x/y/t");
    assert!(b.load("t").await.unwrap().is_none() && c.load("t").await.unwrap().is_none());
    b.create("t", creation(&[])).await.unwrap();
    assert!(c.list().await.unwrap().is_empty());
    // A namespace with a place of its own, as other programs set it.
    let database = Connection::open(&file).unwrap();
    let own = "INSERT INTO iceberg_namespace_properties VALUES ('one', 'z', 'location', ?1)";
    database.execute(own, ["memory:///elsewhere/z"]).unwrap();
    assert_eq!(b.create("u", creation(&[])).await.unwrap().metadata.location(), "memory:///elsewhere/z/u");
    database.execute_batch("UPDATE iceberg_namespace_properties SET property_value = 's3://far/z'").unwrap();
    let outside = b.create("v", creation(&[])).await.unwrap_err();
    assert_eq!(outside.kind(), ErrorKind::Unsupported, "{outside}");
}

#[tokio::test]
async fn a_sorted_table_also_knows_the_order_that_is_none() {
    let catalog = SqlCatalog::in_memory(memory()).await.unwrap();
    let field = SortField {
        source_id: 1,
        transform: Transform::Identity,
        direction: SortDirection::Ascending,
        null_order: NullOrder::First,
    };
    let sort_order = SortOrder { order_id: 1, fields: vec![field] };
    let table = catalog.create("t", Creation { sort_order, ..creation(&[]) }).await.unwrap();
    assert_eq!(table.metadata.default_sort_order_id(), 1);
    assert!(table.metadata.sort_order_by_id(0).is_some_and(|order| order.is_unsorted()));
}

#[tokio::test]
async fn sql_keeps_old_metadata_files_unless_the_table_says_otherwise() {
    let catalog = SqlCatalog::in_memory(memory()).await.unwrap();
    for (name, deletes, left) in [("kept", "false", 6), ("bounded", "true", 3)] {
        let properties = [
            ("write.metadata.delete-after-commit.enabled", deletes),
            ("write.metadata.previous-versions-max", "2"),
        ];
        let mut base = catalog.create(name, creation(&properties)).await.unwrap();
        for i in 0..5 {
            let swap = catalog.commit(name, &base, Vec::new(), set("i", &i.to_string())).await.unwrap();
            base = swapped(swap);
        }
        assert_eq!(base.metadata.metadata_log().len(), 2);
        assert_eq!(files(catalog.warehouse(), &format!("lake/default/{name}")).await.len(), left, "{name}");
    }
}

#[tokio::test]
async fn sql_creates_the_version_of_the_format_that_is_asked_for() {
    let catalog = SqlCatalog::in_memory(memory()).await.unwrap();
    for (name, version) in [("two", "2"), ("three", "3")] {
        let made = catalog.create(name, creation(&[("format-version", version)])).await.unwrap();
        assert_eq!((made.metadata.format_version() as u8).to_string(), version);
        assert!(!made.metadata.properties().contains_key("format-version"));
    }
    let refused = catalog.create("nine", creation(&[("format-version", "9")])).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let dots = catalog.create("../up", creation(&[])).await.unwrap_err();
    assert_eq!(dots.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn sql_reads_metadata_of_others_and_refuses_what_is_none() {
    let catalog = SqlCatalog::in_memory(memory()).await.unwrap();
    // Gzipped, as `write.metadata.compression-codec` has it.
    let zipped = creation(&[("write.metadata.compression-codec", "gzip")]);
    let made = catalog.create("zipped", zipped).await.unwrap();
    assert!(made.metadata_location.ends_with(".gz.metadata.json"), "{}", made.metadata_location);
    let loaded = catalog.load("zipped").await.unwrap().unwrap();
    assert_eq!(loaded.metadata, made.metadata);
    let next = swapped(catalog.commit("zipped", &loaded, Vec::new(), set("a", "b")).await.unwrap());
    assert_eq!(catalog.load("zipped").await.unwrap().unwrap().metadata, next.metadata);

    let store = catalog.warehouse().store();
    let good = store.get(&catalog.warehouse().path(&next.metadata_location).unwrap()).await.unwrap();
    let good = good.bytes().await.unwrap();
    let plain = serde_json::to_vec(next.metadata.as_ref()).unwrap();
    let place = catalog.warehouse().path(&made.metadata_location).unwrap();
    let broken = catalog.create("broken", creation(&[])).await.unwrap();
    let place_of_broken = catalog.warehouse().path(&broken.metadata_location).unwrap();
    let cut: [&[u8]; 6] =
        [b"", b"{}", b"[[[[", &good[..good.len() / 2], &plain[..plain.len() / 2], &[0x1f, 0x8b]];
    for bytes in cut {
        store.put(&place_of_broken, bytes.to_vec().into()).await.unwrap();
        let refused = catalog.load("broken").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    }
    store.delete(&place_of_broken).await.unwrap();
    assert_eq!(catalog.load("broken").await.unwrap_err().kind(), ErrorKind::Corrupt);
    store.delete(&place).await.unwrap();
    assert!(catalog.load("zipped").await.unwrap().is_some(), "an old metadata file is not needed");
}

#[tokio::test]
async fn sql_goes_on_after_a_metadata_file_of_another_name() {
    let catalog = SqlCatalog::in_memory(memory()).await.unwrap();
    let made = catalog.create("t", creation(&[])).await.unwrap();
    let foreign =
        Loaded { metadata_location: "memory:///lake/default/t/metadata/v7.metadata.json".to_owned(), ..made };
    // Nothing in the database has this pointer, and so it is lost; it is no error.
    let lost = catalog.commit("t", &foreign, Vec::new(), set("a", "b")).await.unwrap();
    assert!(matches!(lost, Swap::Lost));
    assert_eq!(files(catalog.warehouse(), "lake/default/t").await.len(), 1, "what lost is removed");
}

#[tokio::test]
async fn sql_tells_what_is_wrong_with_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no.db");
    std::fs::write(&file, "this is a text, and no database at all; long enough to be looked at").unwrap();
    let refused = SqlCatalog::open(&file, memory()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    assert!(refused.to_string().contains("no.db"), "{refused}");
    let nowhere = SqlCatalog::open(folder.path().join("a/b/c.db"), memory()).await.unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::Invalid, "{nowhere}");
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE iceberg_tables (a)").unwrap();
    let foreign = SqlCatalog::open(&other, memory()).await.unwrap();
    assert_eq!(foreign.list().await.unwrap_err().kind(), ErrorKind::Corrupt);
}
