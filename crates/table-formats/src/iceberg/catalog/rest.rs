//! A catalog behind Iceberg's REST protocol: Polaris, Lakekeeper, Gravitino, Nessie, Unity Catalog and others.

mod auth;
mod http;
mod secret;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
};

use async_trait::async_trait;
use iceberg::{
    TableRequirement, TableUpdate,
    spec::{MAIN_BRANCH, TableMetadata},
};
use reqwest::{Method, StatusCode};
use url::Url;

use self::{
    auth::Tokens,
    http::{Answer, Call, Http},
};
pub use self::{
    auth::{Auth, Client},
    http::Timeouts,
    secret::Secret,
};
use super::{Catalog, Creation, Loaded, Swap};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// The most tables that a namespace lists.
const MOST_TABLES: usize = 1_000_000;

/// Where a REST catalog is, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct RestOptions {
    /// The catalog's URL, without `/v1`.
    pub uri: String,
    /// Which of the server's warehouses, by the name that it knows; some have only one.
    pub warehouse: Option<String>,
    /// What comes between `/v1/` and the rest of a path. The server says it, if there is to be one.
    pub prefix: Option<String>,
    /// The namespace of the tables; its levels are joined by dots.
    pub namespace: String,
    /// How we show who we are.
    pub auth: Auth,
    /// Headers of every request to the catalog.
    pub headers: Vec<(String, Secret)>,
    /// How many tables a page of a list has; the server decides without it.
    pub page_size: Option<u32>,
    /// How long the server may take.
    pub timeouts: Timeouts,
}

impl RestOptions {
    /// The catalog at a URL, its namespace `default`, without authentication.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            warehouse: None,
            prefix: None,
            namespace: "default".to_owned(),
            auth: Auth::None,
            headers: Vec::new(),
            page_size: None,
            timeouts: Timeouts::default(),
        }
    }
}

/// Tables of Iceberg that a server lists.
///
/// The server swaps metadata, and compares no more of the base than a commit's requirements: those that the caller leaves
/// out are added here, so that of two commits on one base that both add a snapshot to the main branch, or change columns,
/// partitions or order, one is [`Swap::Lost`]. Two that only set properties may both be taken, one upon the other.
///
/// Data files are read and written with the store's own credentials; none are asked of the catalog.
#[derive(Debug)]
pub struct RestCatalog {
    http: Http,
    tokens: Tokens,
    /// URL up to the namespaces, without a slash.
    root: String,
    namespace: Vec<String>,
    separator: String,
    page_size: Option<u32>,
}

impl RestCatalog {
    /// Asks the server for its settings.
    ///
    /// # Errors
    /// `Invalid` for a URL, header or credential that is wrong, `Unavailable` when there is no answer.
    pub async fn connect(options: RestOptions) -> Result<Self> {
        let uri = parse_url(&options.uri, "uri")?;
        let http = Http::new(&options.headers, secrets(&options), options.timeouts)?;
        let tokens = Tokens::new(options.auth, join(&uri, "/v1/oauth/tokens")?);
        let mut url = join(&uri, "/v1/config")?;
        if let Some(warehouse) = &options.warehouse {
            url.query_pairs_mut().append_pair("warehouse", warehouse);
        }
        let answer = send(&http, &tokens, &Call::new(Method::GET, url)).await?;
        let config: wire::Config = expect(&answer)?.json("a REST catalog's settings: check `uri`")?;
        let of_server = |name: &str, ours: Option<String>| {
            let overriding = config.overrides.get(name).cloned().flatten();
            overriding.or(ours).or_else(|| config.defaults.get(name).cloned().flatten())
        };
        let uri = match config.overrides.get("uri").cloned().flatten() {
            Some(moved) => parse_url(&moved, "uri, as the catalog gives it")?,
            None => uri,
        };
        let prefix = of_server("prefix", options.prefix).unwrap_or_default();
        let prefix = prefix.trim_matches('/');
        let path = if prefix.is_empty() { "/v1".to_owned() } else { format!("/v1/{prefix}") };
        let namespace: Vec<_> = options.namespace.split('.').map(str::to_owned).collect();
        if namespace.iter().any(String::is_empty) {
            let message = "a namespace is a name, or names joined by dots";
            return Err(Error::new(ErrorKind::Invalid, message).with("namespace", &options.namespace));
        }
        // The levels of a namespace are joined by this, which is encoded already.
        let separator = of_server("namespace-separator", None).unwrap_or_else(|| "%1F".to_owned());
        let root = join(&uri, &path)?.as_str().trim_end_matches('/').to_owned();
        Ok(Self { http, tokens, root, namespace, separator, page_size: options.page_size })
    }

    fn namespace_url(&self, levels: &[String]) -> Result<Url> {
        let levels: Vec<_> = levels.iter().map(|level| encoded(level)).collect();
        parse_url(&format!("{}/namespaces/{}", self.root, levels.join(&self.separator)), "uri")
    }

    fn tables_url(&self) -> Result<Url> {
        join(&self.namespace_url(&self.namespace)?, "/tables")
    }

    fn table_url(&self, table: &str) -> Result<Url> {
        if table.is_empty() || table == "." || table == ".." {
            let message = "a table can't have this name";
            return Err(Error::new(ErrorKind::Invalid, message).with("table", table));
        }
        join(&self.tables_url()?, &format!("/{}", encoded(table)))
    }

    async fn send(&self, call: &Call) -> Result<Answer> {
        send(&self.http, &self.tokens, call).await
    }

    /// Makes the namespace, and those that it lies in.
    async fn make_namespace(&self) -> Result<()> {
        for depth in 1..=self.namespace.len() {
            let levels = self.namespace.get(..depth).unwrap_or(&self.namespace);
            let found = self.send(&Call::new(Method::GET, self.namespace_url(levels)?)).await?;
            if found.status.is_success() {
                continue;
            }
            let creation = wire::CreateNamespace { namespace: levels, properties: BTreeMap::new() };
            let url = parse_url(&format!("{}/namespaces", self.root), "uri")?;
            // To ask twice does no harm: the second time it exists.
            let call = Call::new(Method::POST, url).json(&creation)?.repeatable();
            let made = self.send(&call).await?;
            if made.status != StatusCode::CONFLICT {
                expect(&made)?;
            }
        }
        Ok(())
    }

    async fn try_create(&self, table: &str, creation: &Creation) -> Result<Answer> {
        let mut spec = creation.partitioning.clone();
        if spec.spec_id().is_none() {
            spec = spec.with_spec_id(0);
        }
        let mut order = creation.sort_order.clone();
        if order.order_id == 0 {
            order.order_id = 1;
        }
        let properties = creation.properties.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let body = wire::CreateTable {
            name: table,
            schema: &creation.schema,
            partition_spec: &spec,
            write_order: Some(&order).filter(|order| !order.fields.is_empty()),
            properties,
        };
        self.send(&Call::new(Method::POST, self.tables_url()?).json(&body)?).await
    }
}

#[async_trait]
impl Catalog for RestCatalog {
    async fn list(&self) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        let mut page = String::new();
        loop {
            let mut url = self.tables_url()?;
            url.query_pairs_mut().append_pair("pageToken", &page);
            if let Some(size) = self.page_size {
                url.query_pairs_mut().append_pair("pageSize", &size.to_string());
            }
            let answer = self.send(&Call::new(Method::GET, url)).await?;
            if answer.status == StatusCode::NOT_FOUND {
                return Ok(Vec::new());
            }
            let tables: wire::Tables = expect(&answer)?.json("a list of tables")?;
            let before = names.len();
            names.extend(tables.identifiers.into_iter().map(|identifier| identifier.name));
            let next = tables.next_page_token.filter(|token| !token.is_empty());
            let Some(next) = next else {
                return Ok(names.into_iter().collect());
            };
            // A server that turns in a circle, or never ends.
            if next == page || names.len() == before || names.len() > MOST_TABLES {
                return Err(answer.error(
                    ErrorKind::Corrupt,
                    "the catalog's list of tables does not end",
                    None,
                ));
            }
            page = next;
        }
    }

    async fn load(&self, table: &str) -> Result<Option<Loaded>> {
        let mut url = self.table_url(table)?;
        url.query_pairs_mut().append_pair("snapshots", "all");
        let answer = self.send(&Call::new(Method::GET, url)).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        loaded(expect(&answer)?).map(Some)
    }

    async fn create(&self, table: &str, creation: Creation) -> Result<Loaded> {
        // An empty or odd name is refused here.
        self.table_url(table)?;
        let mut answer = self.try_create(table, &creation).await?;
        if answer.status == StatusCode::NOT_FOUND {
            self.make_namespace().await?;
            answer = self.try_create(table, &creation).await?;
        }
        if answer.status == StatusCode::CONFLICT {
            let message = "a table of this name, or one at its place, exists already";
            return Err(answer.error(ErrorKind::Conflict, message, said(&answer)).with("table", table));
        }
        let answer = expect(&answer).map_err(|e| unknown(e, "it is not known if the table was created"))?;
        loaded(answer)
    }

    async fn commit(
        &self,
        table: &str,
        base: &Loaded,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<Swap> {
        let requirements = pinned(&base.metadata, requirements);
        let identifier = wire::Identifier { namespace: self.namespace.clone(), name: table.to_owned() };
        let body = wire::CommitTable { identifier, requirements: &requirements, updates: &updates };
        let call = Call::new(Method::POST, self.table_url(table)?).json(&body)?;
        let unknown = |e| unknown(e, "it is not known if the commit landed");
        let answer = self.send(&call).await.map_err(unknown)?;
        if answer.status == StatusCode::CONFLICT {
            return Ok(Swap::Lost);
        }
        Ok(Swap::Swapped(loaded(expect(&answer).map_err(unknown)?)?))
    }
}

/// Requirements that leave nothing of the base open that one can require.
fn pinned(base: &TableMetadata, mut given: Vec<TableRequirement>) -> Vec<TableRequirement> {
    let main = base.snapshot_for_ref(MAIN_BRANCH).map(|snapshot| snapshot.snapshot_id());
    let all = [
        TableRequirement::UuidMatch { uuid: base.uuid() },
        TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id: main },
        TableRequirement::LastAssignedFieldIdMatch { last_assigned_field_id: base.last_column_id() },
        TableRequirement::CurrentSchemaIdMatch { current_schema_id: base.current_schema_id() },
        TableRequirement::LastAssignedPartitionIdMatch {
            last_assigned_partition_id: base.last_partition_id(),
        },
        TableRequirement::DefaultSpecIdMatch { default_spec_id: base.default_partition_spec_id() },
        TableRequirement::DefaultSortOrderIdMatch { default_sort_order_id: base.default_sort_order_id() },
    ];
    for requirement in all {
        if !given.contains(&requirement) {
            given.push(requirement);
        }
    }
    given
}

/// Sends with a token, and once more with a new one if the catalog does not take the first.
async fn send(http: &Http, tokens: &Tokens, call: &Call) -> Result<Answer> {
    let token = tokens.token(http).await?;
    let answer = http.send(call, token.as_ref()).await?;
    // 419 is what the protocol's definition names for a token that ended.
    let refused = answer.status == StatusCode::UNAUTHORIZED || answer.status.as_u16() == 419;
    if !refused || !tokens.forget(token.as_ref()).await {
        return Ok(answer);
    }
    let token = tokens.token(http).await?;
    http.send(call, token.as_ref()).await
}

/// An answer that is a success, or the error that it tells.
fn expect(answer: &Answer) -> Result<&Answer> {
    let (kind, message) = match answer.status {
        status if status.is_success() => return Ok(answer),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            (ErrorKind::Invalid, "the catalog does not allow this with these credentials")
        }
        StatusCode::NOT_FOUND => (ErrorKind::NotFound, "the catalog does not have it"),
        StatusCode::CONFLICT => (ErrorKind::Conflict, "somebody else was first"),
        StatusCode::NOT_IMPLEMENTED | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_ACCEPTABLE => {
            (ErrorKind::Unsupported, "the catalog can't do this")
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            (ErrorKind::Unavailable, "the catalog is too busy")
        }
        status if status.is_server_error() => (ErrorKind::Unavailable, "the catalog failed"),
        status if status.is_client_error() => (ErrorKind::Invalid, "the catalog refuses this"),
        _ => (ErrorKind::Invalid, "this is no REST catalog, or one that has moved: check `uri`"),
    };
    Err(answer.error(kind, message, said(answer)))
}

/// What the server says of an answer that is no success.
fn said(answer: &Answer) -> Option<String> {
    let wire::RefusalBody { message, kind } = answer.parse::<wire::Refusal>()?.error;
    let parts: Vec<_> = [kind, message].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { None } else { Some(parts.join(": ")) }
}

/// An error after which a request may have had its effect, with a word on that.
fn unknown(e: Error, outcome: &'static str) -> Error {
    if e.is_retryable() { e.with("outcome", outcome) } else { e }
}

fn loaded(answer: &Answer) -> Result<Loaded> {
    let table: wire::Table = answer.json("a table")?;
    let Some(metadata_location) = table.metadata_location else {
        let message = "the catalog does not say where a table's metadata are";
        return Err(answer.error(ErrorKind::Corrupt, message, None));
    };
    Ok(Loaded { metadata: Arc::new(table.metadata), metadata_location })
}

/// All that errors must not repeat.
fn secrets(options: &RestOptions) -> Vec<Secret> {
    let mut secrets: Vec<_> = options.headers.iter().map(|(_, value)| value.clone()).collect();
    match &options.auth {
        Auth::None => {}
        Auth::Bearer(token) => secrets.push(token.clone()),
        Auth::Client(client) => secrets.push(client.secret.clone()),
    }
    secrets
}

pub(super) fn parse_url(url: &str, option: &'static str) -> Result<Url> {
    let invalid = |why: &str| Error::new(ErrorKind::Invalid, format!("the catalog's `{option}` {why}"));
    let url = Url::parse(url).map_err(|_| invalid("is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid("is no URL of HTTP"));
    }
    // It would be shown in errors.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("has a user or a password in it: give them as `credential`"));
    }
    Ok(url)
}

/// The URL with more of a path, which is encoded already.
fn join(url: &Url, path: &str) -> Result<Url> {
    let base = url.path().trim_end_matches('/');
    let mut joined = url.clone();
    joined.set_path(&format!("{base}{path}"));
    joined.set_query(None);
    joined.set_fragment(None);
    if joined.path().starts_with(base) {
        return Ok(joined);
    }
    Err(Error::new(ErrorKind::Invalid, "a path leaves the catalog").with("path", path))
}

/// A name as one segment of a path.
fn encoded(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
