//! What the REST catalog makes of answers that a good server seldom gives: refusals, silence, nonsense.
//!
//! What answers here is a few lines that say what a test tells them, and no catalog. Against a real one `rest_catalog` runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use strandline_table_formats::{
    ErrorKind,
    iceberg::{
        Catalog, Loaded, RestCatalog, RestOptions, SqlCatalog, SqlOptions, Swap, Warehouse,
        catalog::rest::{Auth, Client, Secret, Timeouts},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::catalogs::{creation, set};

#[derive(Debug, Clone)]
struct Asked {
    /// Method and path with its query.
    line: String,
    token: Option<String>,
    body: String,
}

enum Reply {
    Say(u16, String),
    /// Headers too.
    Tell(u16, &'static str, String),
    /// The connection ends without an answer.
    Hang,
    Silence,
}

fn say(status: u16, body: impl Into<String>) -> Reply {
    Reply::Say(status, body.into())
}

fn refuse(status: u16, message: &str) -> Reply {
    let error =
        serde_json::json!({ "error": { "message": message, "type": "SomeException", "code": status } });
    say(status, error.to_string())
}

type Script = dyn Fn(&Asked, usize) -> Reply + Send + Sync;

/// What was asked of a responder, and where it is.
struct Responder {
    uri: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Responder {
    /// Answers by a script, which gets each request and how many came before it. Settings are answered with none.
    async fn new(script: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (script, seen): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                tokio::spawn(async move { serve(stream, script.as_ref(), &seen).await });
            }
        });
        Self { uri, asked }
    }

    /// Requests whose first line has this in it.
    fn asked(&self, part: &str) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.line.contains(part)).cloned().collect()
    }

    fn options(&self) -> RestOptions {
        RestOptions { namespace: "ns".to_owned(), ..RestOptions::new(&self.uri) }
    }

    async fn connect(&self) -> RestCatalog {
        RestCatalog::connect(self.options()).await.unwrap()
    }
}

async fn serve(mut stream: TcpStream, script: &Script, seen: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let header = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    let length: usize = header("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    let line = text.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let body = String::from_utf8(bytes[head..].to_vec()).unwrap();
    let asked = Asked { line, token: header("authorization"), body };
    let before = seen.lock().unwrap().len();
    seen.lock().unwrap().push(asked.clone());
    let (status, headers, body) = match script(&asked, before) {
        Reply::Say(status, body) => (status, "", body),
        Reply::Tell(status, headers, body) => (status, headers, body),
        Reply::Hang => return None,
        Reply::Silence => {
            tokio::time::sleep(Duration::from_mins(10)).await;
            return None;
        }
    };
    let length = if headers.contains("content-length") {
        String::new()
    } else {
        format!("content-length: {}\r\n", body.len())
    };
    let answer = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{length}{headers}\r\n{body}");
    stream.write_all(answer.as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

fn is_config(asked: &Asked) -> bool {
    asked.line.starts_with("GET /v1/config")
}

/// A responder that answers all but settings with this.
async fn always(reply: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Responder {
    Responder::new(move |asked, before| if is_config(asked) { say(200, "{}") } else { reply(asked, before) })
        .await
}

/// A table to commit on, and what a server says of it.
async fn table() -> (Loaded, String) {
    let warehouse = Warehouse::new(Arc::new(object_store::memory::InMemory::new()), "memory://");
    let sql =
        SqlCatalog::in_memory(SqlOptions::new(warehouse, object_store::path::Path::from("w"))).await.unwrap();
    let loaded = sql.create("t", creation(&[])).await.unwrap();
    let answer = serde_json::json!({
        "metadata-location": loaded.metadata_location,
        "metadata": loaded.metadata.as_ref(),
        "config": { "s3.secret-access-key": "vended" },
    });
    (loaded, answer.to_string())
}

#[tokio::test]
async fn what_the_server_refuses_is_told_with_its_words() {
    for (status, kind) in [
        (400, ErrorKind::Invalid),
        (401, ErrorKind::Invalid),
        (403, ErrorKind::Invalid),
        (406, ErrorKind::Unsupported),
        (501, ErrorKind::Unsupported),
        (302, ErrorKind::Invalid),
    ] {
        let server = always(move |_, _| refuse(status, "the reason\nof it")).await;
        let catalog = server.connect().await;
        let error = catalog.load("t").await.unwrap_err();
        assert_eq!(error.kind(), kind, "{status}: {error}");
        assert!(error.to_string().contains("SomeException: the reason of it"), "{error}");
        assert!(error.to_string().contains("/v1/namespaces/ns/tables/t"), "{error}");
        assert_eq!(server.asked("/tables").len(), 1, "nothing is gained by asking again");
    }
}

#[tokio::test]
async fn a_table_that_is_not_there_is_none_and_a_namespace_is_made() {
    let (base, answer) = table().await;
    let server = always(move |asked, _| match asked.line.split(' ').next().unwrap() {
        "GET" => refuse(404, "no such thing"),
        _ if asked.line == "POST /v1/namespaces" => refuse(409, "somebody else made it"),
        _ if asked.body.contains("\"taken\"") => refuse(409, "taken"),
        _ => say(200, answer.clone()),
    })
    .await;
    let catalog = server.connect().await;
    assert!(catalog.load("t").await.unwrap().is_none());
    assert!(catalog.list().await.unwrap().is_empty());
    let taken = catalog.create("taken", creation(&[])).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);

    let missing = always(|asked, before| match asked.line.as_str() {
        "POST /v1/namespaces" => say(200, "{}"),
        "GET /v1/namespaces/a" | "GET /v1/namespaces/a%1Fb" => refuse(404, "no namespace"),
        _ if before < 2 => refuse(404, "no namespace"),
        _ => refuse(400, "this far"),
    })
    .await;
    let options = RestOptions { namespace: "a.b".to_owned(), ..missing.options() };
    let catalog = RestCatalog::connect(options).await.unwrap();
    assert_eq!(catalog.create("t", creation(&[])).await.unwrap_err().kind(), ErrorKind::Invalid);
    let made: Vec<_> = missing.asked("POST /v1/namespaces").into_iter().map(|asked| asked.body).collect();
    assert_eq!(made.len(), 4, "{made:?}");
    assert_eq!(made[1], r#"{"namespace":["a"],"properties":{}}"#);
    assert_eq!(made[2], r#"{"namespace":["a","b"],"properties":{}}"#);
    assert_eq!(base.metadata.properties().len(), 0);
}

#[tokio::test]
async fn a_commit_is_lost_landed_or_unknown_and_never_sent_twice() {
    let (base, answer) = table().await;
    let good = answer.clone();
    let server = always(move |_, _| say(200, good.clone())).await;
    let landed = server.connect().await.commit("t", &base, Vec::new(), set("a", "b")).await.unwrap();
    assert!(matches!(landed, Swap::Swapped(_)));
    let sent: serde_json::Value = serde_json::from_str(&server.asked("POST")[0].body).unwrap();
    assert_eq!(sent["identifier"], serde_json::json!({ "namespace": ["ns"], "name": "t" }));
    assert_eq!(sent["updates"][0]["action"], "set-properties");
    let kinds: Vec<_> =
        sent["requirements"].as_array().unwrap().iter().map(|r| r["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"assert-table-uuid") && kinds.contains(&"assert-ref-snapshot-id"), "{kinds:?}");
    assert!(sent["requirements"][1]["snapshot-id"].is_null(), "the table has no snapshot");

    let server = always(|_, _| refuse(409, "another was first")).await;
    let lost = server.connect().await.commit("t", &base, Vec::new(), set("a", "b")).await.unwrap();
    assert!(matches!(lost, Swap::Lost));

    for status in [500, 502, 503, 504, 408, 429] {
        let server = always(move |_, _| refuse(status, "who knows")).await;
        let error = server.connect().await.commit("t", &base, Vec::new(), set("a", "b")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{status}");
        assert!(error.to_string().contains("not known if the commit landed"), "{error}");
        assert_eq!(server.asked("POST").len(), 1, "{status}");
    }
    let server = always(|_, _| Reply::Hang).await;
    let error = server.connect().await.commit("t", &base, Vec::new(), set("a", "b")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("not known if the commit landed"), "{error}");
    assert_eq!(server.asked("POST").len(), 1);
    // Half of an answer is none.
    let server =
        always(|_, _| Reply::Tell(200, "content-length: 5000\r\n", "{\"metadata\":".to_owned())).await;
    let error = server.connect().await.commit("t", &base, Vec::new(), set("a", "b")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(server.asked("POST").len(), 1);
}

#[tokio::test]
async fn what_is_only_read_is_asked_for_again() {
    let (_, answer) = table().await;
    let server = always(move |_, before| match before {
        1 => refuse(503, "later"),
        2 => Reply::Hang,
        3 => Reply::Tell(429, "retry-after: 0\r\n", String::new()),
        _ => say(200, answer.clone()),
    })
    .await;
    assert!(server.connect().await.load("t").await.unwrap().is_some());
    assert_eq!(server.asked("/tables/t").len(), 4);
    let down = always(|_, _| Reply::Tell(500, "retry-after: 0\r\n", String::new())).await;
    let error = down.connect().await.load("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(down.asked("/tables/t").len(), 4);
}

#[tokio::test]
async fn a_server_that_is_silent_or_away_is_not_waited_for_without_end() {
    let server = always(|_, _| Reply::Silence).await;
    let short = Timeouts { connect: Duration::from_secs(2), answer: Duration::from_millis(300) };
    let catalog = RestCatalog::connect(RestOptions { timeouts: short, ..server.options() }).await.unwrap();
    let (base, _) = table().await;
    let error = catalog.commit("t", &base, Vec::new(), set("a", "b")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("in time"), "{error}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let away = RestCatalog::connect(RestOptions::new(uri)).await.unwrap_err();
    assert_eq!(away.kind(), ErrorKind::Unavailable);
    assert!(away.to_string().contains("can't be reached"), "{away}");
}

fn client(secret: &str) -> Auth {
    let (id, secret) = (Some("me".to_owned()), Secret::from(secret));
    Auth::Client(Box::new(Client { id, secret, scope: "catalog".to_owned(), server: None, more: Vec::new() }))
}

/// Gives tokens that are numbered, with this life in seconds.
fn tokens(number: usize, life: Option<u32>) -> Reply {
    let mut token = serde_json::json!({ "access_token": format!("token-{number}"), "token_type": "bearer" });
    if let Some(life) = life {
        token["expires_in"] = life.into();
    }
    say(200, token.to_string())
}

#[tokio::test]
async fn a_token_is_fetched_anew_when_it_ends_and_once_when_it_is_refused() {
    // One that is over at once, one that holds.
    for (life, fetched) in [(Some(0), 3), (Some(3600), 1), (None, 1)] {
        let server = Responder::new(move |asked, before| match asked.line.as_str() {
            "POST /v1/oauth/tokens" => tokens(before, life),
            _ if is_config(asked) => say(200, "{}"),
            _ => refuse(404, "none"),
        })
        .await;
        let options = RestOptions { auth: client("pass&word"), ..server.options() };
        let catalog = RestCatalog::connect(options).await.unwrap();
        for _ in 0..2 {
            assert!(catalog.load("t").await.unwrap().is_none());
        }
        let asked = server.asked("oauth");
        assert_eq!(asked.len(), fetched, "{life:?}");
        let form = "grant_type=client_credentials&client_secret=pass%26word&client_id=me&scope=catalog";
        assert_eq!(asked[0].body, form);
        assert!(asked[0].token.is_none());
        assert!(
            server.asked("GET").iter().all(|asked| asked
                .token
                .as_ref()
                .unwrap()
                .starts_with("Bearer token-"))
        );
    }

    let server = Responder::new(|asked, before| match asked.line.as_str() {
        "POST /v1/oauth/tokens" => tokens(before, None),
        _ if is_config(asked) => say(200, "{}"),
        // The first token is not taken any more, and no token is for this one.
        line if line.contains("/tables/secret") => refuse(401, "no"),
        _ if asked.token.as_deref() == Some("Bearer token-0") => refuse(401, "ended"),
        _ => refuse(404, "none"),
    })
    .await;
    let catalog = RestCatalog::connect(RestOptions { auth: client("s"), ..server.options() }).await.unwrap();
    assert!(catalog.load("t").await.unwrap().is_none());
    assert_eq!(server.asked("oauth").len(), 2);
    assert_eq!(catalog.load("secret").await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(server.asked("/tables/secret").len(), 2);
    assert_eq!(server.asked("oauth").len(), 3);
}

#[tokio::test]
async fn secrets_are_in_no_error_and_no_debug_output() {
    let server = Responder::new(|asked, _| match asked.line.as_str() {
        "POST /v1/oauth/tokens" => say(
            401,
            format!(r#"{{"error":"invalid_client","error_description":"refused, you sent {}"}}"#, asked.body),
        ),
        _ => refuse(401, &format!("bad token {:?}", asked.token)),
    })
    .await;
    let with_client = RestOptions { auth: client("hush-hush &?"), ..server.options() };
    let shown = format!("{with_client:?}");
    let refused = RestCatalog::connect(with_client).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("invalid_client"), "{refused}");
    let with_token = RestOptions {
        auth: Auth::Bearer(Secret::from("hush-hush")),
        headers: vec![("X-Key".to_owned(), Secret::from("hush-hush"))],
        ..server.options()
    };
    let shown = format!("{shown} {with_token:?}");
    let told = RestCatalog::connect(with_token).await.unwrap_err();
    let user = RestOptions::new("http://me:hush-hush@127.0.0.1:1/");
    let user = RestCatalog::connect(user).await.unwrap_err();
    assert_eq!(user.kind(), ErrorKind::Invalid);
    // Nonsense from the token server may be anything, a token too.
    let server = Responder::new(|_, _| say(200, r#"{"access_token": ["hush-hush"]}"#)).await;
    let nonsense =
        RestCatalog::connect(RestOptions { auth: client("x"), ..server.options() }).await.unwrap_err();
    assert_eq!(nonsense.kind(), ErrorKind::Corrupt);
    for text in [
        shown,
        format!("{refused} {refused:?}"),
        format!("{told} {told:?}"),
        format!("{user} {user:?}"),
        format!("{nonsense} {nonsense:?}"),
    ] {
        assert!(!text.contains("hush-hush"), "{text}");
    }
    // One that works does not show them either.
    let server = always(|_, _| refuse(404, "none")).await;
    let options = RestOptions { auth: Auth::Bearer(Secret::from("hush-hush")), ..server.options() };
    let catalog = RestCatalog::connect(options).await.unwrap();
    assert_eq!(server.asked("config")[0].token.as_deref(), Some("Bearer hush-hush"));
    assert!(!format!("{catalog:?}").contains("hush-hush"));
}

#[tokio::test]
async fn settings_of_the_server_are_followed() {
    let (_, answer) = table().await;
    let there = Responder::new(move |_, _| say(200, answer.clone())).await;
    let uri = there.uri.clone();
    let server = Responder::new(move |asked, _| {
        assert!(is_config(asked));
        let config = serde_json::json!({
            "defaults": { "prefix": "no", "other": null },
            "overrides": { "prefix": "of/server", "uri": uri, "namespace-separator": "%2E" },
        });
        say(200, config.to_string())
    })
    .await;
    let options = RestOptions {
        warehouse: Some("my house".to_owned()),
        prefix: Some("ours".to_owned()),
        namespace: "a.b ü".to_owned(),
        ..server.options()
    };
    let catalog = RestCatalog::connect(options).await.unwrap();
    assert_eq!(server.asked("config")[0].line, "GET /v1/config?warehouse=my+house");
    catalog.load("t/1 %").await.unwrap().unwrap();
    let line = "GET /v1/of/server/namespaces/a%2Eb%20%C3%BC/tables/t%2F1%20%25?snapshots=all";
    assert_eq!(there.asked("")[0].line, line);
    assert_eq!(server.asked("").len(), 1);
}

#[tokio::test]
async fn nonsense_is_an_error_and_nothing_is_read_without_end() {
    let (base, answer) = table().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let without_place = answer.replace("metadata-location", "elsewhere");
    let cut = answer[..answer.len() / 2].to_owned();
    let wrong = answer.replace("\"current-schema-id\":0", "\"current-schema-id\":77");
    for body in ["", "{}", "null", "<html>", &deep, &without_place, &cut, &wrong] {
        let body = body.to_owned();
        let server = always(move |_, _| say(200, body.clone())).await;
        let catalog = server.connect().await;
        assert_eq!(catalog.load("t").await.unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(catalog.list().await.unwrap_err().kind(), ErrorKind::Corrupt);
        let landed = catalog.commit("t", &base, Vec::new(), set("a", "b")).await.unwrap_err();
        assert_eq!(landed.kind(), ErrorKind::Corrupt);
    }
    for body in ["<html>", "3", r#"{"defaults": 3}"#] {
        let server = Responder::new(move |_, _| say(200, body)).await;
        assert_eq!(RestCatalog::connect(server.options()).await.unwrap_err().kind(), ErrorKind::Corrupt);
    }
    let huge = always(|_, _| Reply::Tell(200, "content-length: 999999999999\r\n", String::new())).await;
    assert_eq!(huge.connect().await.load("t").await.unwrap_err().kind(), ErrorKind::Corrupt);
    let long = always(|_, _| refuse(400, &"long ".repeat(1_000_000))).await;
    let error = long.connect().await.load("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().len() < 1_000);
    for next in ["again", "more"] {
        let endless = always(move |_, before| {
            let name = if next == "again" { 0 } else { before };
            let page = serde_json::json!({
                "identifiers": [{ "namespace": ["ns"], "name": name.to_string() }],
                "next-page-token": if next == "again" { next.to_owned() } else { "same".to_owned() },
            });
            say(200, page.to_string())
        })
        .await;
        assert_eq!(endless.connect().await.list().await.unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn settings_by_name_are_checked() {
    use strandline_table_formats::iceberg::CatalogOptions;
    let parse = |settings: &[(&str, &str)]| {
        let settings: BTreeMap<_, _> =
            settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        CatalogOptions::parse(&settings)
    };
    let CatalogOptions::Sql { database, name, namespace, folder } = parse(&[]).unwrap() else { panic!() };
    assert_eq!((database, name.as_str(), namespace.as_str()), (None, "default", "default"));
    assert_eq!(folder.as_ref(), "warehouse");
    let full = [
        ("catalog.type", "sql"),
        ("catalog.uri", "sqlite:////x/y.db"),
        ("catalog.name", "n"),
        ("namespace", "a.b"),
    ];
    let CatalogOptions::Sql { database, name, namespace, .. } = parse(&full).unwrap() else { panic!() };
    assert_eq!(database.unwrap(), std::path::Path::new("/x/y.db"));
    assert_eq!((name.as_str(), namespace.as_str()), ("n", "a.b"));

    // A URL of HTTP says what it is.
    let rest = [
        ("catalog.uri", "https://lake.example/api/catalog"),
        ("catalog.credential", "id:se:cret"),
        ("catalog.scope", "PRINCIPAL_ROLE:ALL"),
        ("catalog.warehouse", "house"),
        ("catalog.header.X-Iceberg-Access-Delegation", "none"),
        ("catalog.audience", "lake"),
    ];
    let CatalogOptions::Rest(options) = parse(&rest).unwrap() else { panic!() };
    let Auth::Client(client) = options.auth else { panic!() };
    assert_eq!((client.id.as_deref(), client.scope.as_str()), (Some("id"), "PRINCIPAL_ROLE:ALL"));
    assert!(client.secret == Secret::from("se:cret"));
    assert_eq!(client.more, [("audience".to_owned(), "lake".to_owned())]);
    assert_eq!(options.warehouse.as_deref(), Some("house"));
    assert_eq!(options.headers[0].0, "X-Iceberg-Access-Delegation");

    for (wrong, said) in [
        (vec![("catalog.type", "hive")], "`sql` or `rest`"),
        (vec![("catalog.type", "rest")], "catalog.uri"),
        (vec![("catalog.type", "sql"), ("catalog.token", "x")], "catalog.token"),
        (vec![("catalog.uri", "postgresql://db/x")], "SQLite"),
        (vec![("catalog.uri", "http://u:p@h/")], "credential"),
        (vec![("catalog.uri", "http://h/"), ("catalog.tokn", "x")], "catalog.tokn"),
        (vec![("catalog.uri", "http://h/"), ("catalog.token", "x"), ("catalog.credential", "y")], "not both"),
        (vec![("catalog.uri", "http://h/"), ("catalog.rest-page-size", "0")], "above 0"),
        (vec![("catalog.warehouse", "s3://b/w")], "under the target"),
    ] {
        let error = parse(&wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(said), "{error}");
    }
}
