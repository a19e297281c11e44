//! The REST catalog, against Apache Iceberg's own server: `tests/rest-catalog/run` starts it and runs these.

use std::{
    collections::BTreeMap,
    path::Path as FsPath,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use object_store::{local::LocalFileSystem, path::Path};
use strandline_table_formats::{
    ErrorKind, IcebergFormat,
    iceberg::{Catalog, CatalogOptions, SqlCatalog, SqlOptions, Swap, Warehouse},
};

use super::{
    catalogs::{creation, keeps_the_contract, set},
    conformance::{MODES, holds, tiny_in},
};

#[expect(clippy::disallowed_methods, reason = "the script that starts the server says where it is")]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run tests/rest-catalog/run"))
}

/// The folder that the server's files lie in.
fn home() -> String {
    variable("STRANDLINE_REST_CATALOG_HOME")
}

/// The files of the server's tables, to a client that opens them itself.
fn warehouse() -> Warehouse {
    let home = home();
    Warehouse::new(Arc::new(LocalFileSystem::new_with_prefix(&home).unwrap()), &format!("file://{home}"))
}

/// A namespace that no other test has.
fn namespace(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{name}_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The catalog as a user sets it.
async fn catalog(settings: &[(&str, &str)]) -> strandline_table_formats::Result<Arc<dyn Catalog>> {
    let uri = variable("STRANDLINE_REST_CATALOG");
    let mut all =
        BTreeMap::from([("catalog.type".to_owned(), "rest".to_owned()), ("catalog.uri".to_owned(), uri)]);
    all.extend(settings.iter().map(|(name, value)| (format!("catalog.{name}"), (*value).to_owned())));
    CatalogOptions::parse(&all)?.open(&warehouse(), None).await
}

#[ignore = "needs the server of tests/rest-catalog/run"]
#[tokio::test(flavor = "multi_thread")]
async fn rest_catalog_keeps_the_contract() {
    for levels in ["", ".deeper.still"] {
        let namespace = namespace("contract") + levels;
        let settings = [("credential", "tests:secret"), ("namespace", namespace.as_str())];
        let (one, two) = (catalog(&settings).await.unwrap(), catalog(&settings).await.unwrap());
        keeps_the_contract(one, two).await;
    }
}

/// The contract of tables, over tables that the server lists.
#[ignore = "needs the server of tests/rest-catalog/run"]
#[tokio::test(flavor = "multi_thread")]
async fn rest_catalog_lists_tables_that_keep_the_contract() {
    for mode in MODES {
        let namespace = namespace("tables");
        let settings = [("credential", "tests:secret"), ("namespace", namespace.as_str())];
        let catalog = catalog(&settings).await.unwrap();
        holds(IcebergFormat::new(catalog, warehouse()).with_options(tiny_in(mode))).await;
    }
}

#[ignore = "needs the server of tests/rest-catalog/run"]
#[tokio::test]
async fn rest_catalog_lists_tables_page_by_page() {
    let namespace = namespace("pages");
    let settings = [("credential", "tests:secret"), ("namespace", namespace.as_str())];
    let small = catalog(&[settings[0], settings[1], ("rest-page-size", "2")]).await.unwrap();
    assert!(small.list().await.unwrap().is_empty(), "a namespace that is not there has no tables");
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        small.create(name, creation(&[])).await.unwrap();
    }
    assert_eq!(small.list().await.unwrap(), names);
    assert_eq!(catalog(&settings).await.unwrap().list().await.unwrap(), names);
}

#[ignore = "needs the server of tests/rest-catalog/run"]
#[tokio::test]
async fn rest_catalog_lets_in_who_shows_a_token() {
    let namespace = namespace("tokens");
    let of = |more: &[(&'static str, &'static str)]| {
        let mut settings = vec![("namespace", namespace.clone())];
        settings.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        async move {
            let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
            catalog(&settings).await
        }
    };
    let none = of(&[]).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Invalid, "{none}");
    let wrong = of(&[("token", "made-up")]).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Invalid, "{wrong}");
    // The server gives this one tokens, and does not take them: it is asked twice, and no more.
    let stranger = of(&[("credential", "stranger:secret")]).await.unwrap_err();
    assert_eq!(stranger.kind(), ErrorKind::Invalid, "{stranger}");
    assert!(stranger.to_string().contains("no token"), "{stranger}");
    let given = of(&[("token", "client-credentials-token:sub=tests")]).await.unwrap();
    given.create("t", creation(&[])).await.unwrap();
    let server = variable("STRANDLINE_REST_CATALOG") + "/v1/oauth/tokens";
    let server: &'static str = server.leak();
    let got = of(&[("credential", "tests:secret"), ("oauth2-server-uri", server), ("scope", "all")]);
    assert_eq!(got.await.unwrap().list().await.unwrap(), ["t"]);
}

#[ignore = "needs the server of tests/rest-catalog/run"]
#[tokio::test]
async fn rest_catalog_writes_files_that_lie_where_it_says() {
    let namespace = namespace("files");
    let settings = [("credential", "tests:secret"), ("namespace", namespace.as_str())];
    let rest = catalog(&settings).await.unwrap();
    for version in ["1", "2", "3"] {
        let made =
            rest.create(&format!("v{version}"), creation(&[("format-version", version)])).await.unwrap();
        assert_eq!((made.metadata.format_version() as u8).to_string(), version);
        assert!(warehouse().path(made.metadata.location()).is_ok());
        assert!(FsPath::new(made.metadata_location.trim_start_matches("file:")).is_file());
    }
}

/// What Iceberg's JDBC catalog writes behind the server, our SQL catalog reads, and the other way round.
#[ignore = "needs the server of tests/rest-catalog/run"]
#[tokio::test]
async fn rest_catalog_and_sql_catalog_share_a_database() {
    let namespace = namespace("shared");
    let settings = [("credential", "tests:secret"), ("namespace", namespace.as_str())];
    let rest = catalog(&settings).await.unwrap();
    let made = rest.create("t", creation(&[("owner", "java")])).await.unwrap();
    let options =
        SqlOptions { namespace: namespace.clone(), ..SqlOptions::new(warehouse(), Path::from("warehouse")) };
    let sql = SqlCatalog::open(FsPath::new(&home()).join("catalog.db"), options).await.unwrap();
    assert_eq!(sql.list().await.unwrap(), ["t"]);
    let seen = sql.load("t").await.unwrap().unwrap();
    assert_eq!(seen.metadata, made.metadata);
    // A commit of ours, then one of Java's upon it.
    let ours = sql.commit("t", &seen, Vec::new(), set("by", "rust")).await.unwrap();
    assert!(matches!(ours, Swap::Swapped(_)));
    let seen = rest.load("t").await.unwrap().unwrap();
    assert_eq!(seen.metadata.properties().get("by").unwrap(), "rust");
    let theirs = rest.commit("t", &seen, Vec::new(), set("then", "java")).await.unwrap();
    assert!(matches!(theirs, Swap::Swapped(_)));
    let end = sql.load("t").await.unwrap().unwrap();
    let of = |name: &str| end.metadata.properties().get(name).cloned().unwrap();
    assert_eq!((of("owner"), of("by"), of("then")), ("java".into(), "rust".into(), "java".into()));
    assert_eq!(end.metadata.metadata_log().len(), 2);
    // And a table that we made, to Java.
    let ours = sql.create("u", creation(&[("owner", "rust")])).await.unwrap();
    let theirs = rest.load("u").await.unwrap().unwrap();
    assert_eq!(theirs.metadata.uuid(), ours.metadata.uuid());
    assert_eq!(theirs.metadata.current_schema(), ours.metadata.current_schema());
    assert_eq!(rest.list().await.unwrap(), ["t", "u"]);
}
