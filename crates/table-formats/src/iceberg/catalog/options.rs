//! A catalog by its settings, under the names that users of `PyIceberg` and Spark know.

use std::{
    collections::BTreeMap,
    path::{Path as FsPath, PathBuf},
    sync::Arc,
};

use object_store::path::Path;

use super::{
    Catalog, RestCatalog, RestOptions, SqlCatalog, SqlOptions,
    rest::{Auth, Client, Secret},
};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    iceberg::Warehouse,
};

/// What can be set.
const KNOWN: [&str; 12] = [
    "type",
    "name",
    "namespace",
    "uri",
    "warehouse",
    "prefix",
    "credential",
    "token",
    "scope",
    "oauth2-server-uri",
    "rest-page-size",
    "header.*",
];
/// Those that are handed on to a token server.
const FOR_TOKENS: [&str; 2] = ["audience", "resource"];

/// Settings of a catalog that make sense together.
#[derive(Debug, Clone)]
pub enum CatalogOptions {
    /// One in an SQLite database.
    Sql {
        /// Its file; without one `catalog.db` in the folder of the target.
        database: Option<PathBuf>,
        /// The catalog's name in it.
        name: String,
        /// The namespace of the tables.
        namespace: String,
        /// Where under the target the tables lie.
        folder: Path,
    },
    /// One behind a URL.
    Rest(Box<RestOptions>),
}

impl Default for CatalogOptions {
    fn default() -> Self {
        let default = || "default".to_owned();
        Self::Sql { database: None, name: default(), namespace: default(), folder: Path::from("warehouse") }
    }
}

impl CatalogOptions {
    /// From settings by name, each with or without `catalog.` before it. See `docs/adapters/catalogs.md`.
    ///
    /// # Errors
    /// `Invalid` for names that don't exist, and for values that can't be.
    pub fn parse(settings: &BTreeMap<String, String>) -> Result<Self> {
        let mut settings: BTreeMap<&str, &str> = settings
            .iter()
            .map(|(name, value)| (name.strip_prefix("catalog.").unwrap_or(name), value.as_str()))
            .collect();
        let uri = settings.remove("uri");
        let over_http = uri.is_some_and(|uri| uri.starts_with("http://") || uri.starts_with("https://"));
        let kind = settings.remove("type").unwrap_or(if over_http { "rest" } else { "sql" });
        let namespace = settings.remove("namespace").unwrap_or("default").to_owned();
        let options = match kind {
            "sql" => Self::Sql {
                database: uri.map(database).transpose()?,
                name: settings.remove("name").unwrap_or("default").to_owned(),
                namespace,
                folder: folder(settings.remove("warehouse").unwrap_or("warehouse"))?,
            },
            "rest" => {
                // A name is for the one who reads the settings.
                settings.remove("name");
                let Some(uri) = uri else {
                    return Err(Error::new(
                        ErrorKind::Invalid,
                        "a REST catalog needs `catalog.uri`, its URL",
                    ));
                };
                Self::Rest(Box::new(rest(uri, namespace, &mut settings)?))
            }
            other => {
                let message = "there is no such kind of catalog: `catalog.type` is `sql` or `rest`";
                return Err(Error::new(ErrorKind::Invalid, message).with("catalog.type", other));
            }
        };
        match settings.keys().next() {
            None => Ok(options),
            Some(name) => {
                let message = format!("a catalog of type `{kind}` has no such setting");
                let error =
                    Error::new(ErrorKind::Invalid, message).with("setting", format!("catalog.{name}"));
                Err(error.with("settings are", KNOWN.join(", ")))
            }
        }
    }

    /// Opens the catalog for tables in a store. `folder` is where that store is on this machine, if it is.
    ///
    /// # Errors
    /// `Invalid` when a database has no place, and those of opening.
    pub async fn open(self, warehouse: &Warehouse, folder: Option<&FsPath>) -> Result<Arc<dyn Catalog>> {
        match self {
            Self::Rest(options) => Ok(Arc::new(RestCatalog::connect(*options).await?)),
            Self::Sql { database, name, namespace, folder: tables } => {
                let beside = || folder.map(|folder| folder.join("catalog.db"));
                let Some(database) = database.or_else(beside) else {
                    let message = "an SQL catalog is a file of this machine, and the tables are elsewhere: \
                                   name the file by `catalog.uri`, or use a REST catalog";
                    return Err(Error::new(ErrorKind::Invalid, message));
                };
                let warehouse = warehouse.clone();
                let options = SqlOptions { catalog: name, namespace, warehouse, folder: tables };
                Ok(Arc::new(SqlCatalog::open(database, options).await?))
            }
        }
    }
}

fn rest(uri: &str, namespace: String, settings: &mut BTreeMap<&str, &str>) -> Result<RestOptions> {
    // Refused now: a password in it would be shown.
    super::rest::parse_url(uri, "uri")?;
    let mut owned = |name: &str| settings.remove(name).map(str::to_owned);
    let (warehouse, prefix) = (owned("warehouse"), owned("prefix"));
    let (credential, token) = (owned("credential"), owned("token"));
    let (scope, server) = (owned("scope"), owned("oauth2-server-uri"));
    let page_size = owned("rest-page-size").map(|size| {
        let number = size.parse().ok().filter(|size| *size > 0);
        number.ok_or_else(|| Error::new(ErrorKind::Invalid, "`catalog.rest-page-size` is a number above 0"))
    });
    let more: Vec<_> =
        FOR_TOKENS.iter().filter_map(|name| Some(((*name).to_owned(), owned(name)?))).collect();
    let auth = match (credential, token) {
        (Some(_), Some(_)) => {
            let message = "give `catalog.credential` or `catalog.token`, not both";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        (None, None) => Auth::None,
        (None, Some(token)) => Auth::Bearer(Secret::from(token)),
        (Some(credential), None) => {
            let (id, secret) = match credential.split_once(':') {
                Some((id, secret)) => (Some(id.to_owned()), secret),
                None => (None, credential.as_str()),
            };
            let scope = scope.unwrap_or_else(|| "catalog".to_owned());
            Auth::Client(Box::new(Client { id, secret: Secret::from(secret), scope, server, more }))
        }
    };
    let headers: Vec<(String, Secret)> = settings
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("header.")?.to_owned(), Secret::from(*value))))
        .collect();
    settings.retain(|name, _| !name.starts_with("header."));
    let page_size = page_size.transpose()?;
    Ok(RestOptions { warehouse, prefix, namespace, auth, headers, page_size, ..RestOptions::new(uri) })
}

/// A file, or its URL as `SQLAlchemy` and JDBC write them.
fn database(uri: &str) -> Result<PathBuf> {
    // `sqlite:///a.db` is relative, and `sqlite:////a.db` is not.
    let path = uri.strip_prefix("sqlite:///").or_else(|| uri.strip_prefix("jdbc:sqlite:")).unwrap_or(uri);
    if path.is_empty() || path.contains("://") {
        let message = "an SQL catalog is an SQLite file: `catalog.uri` is its path";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(PathBuf::from(path))
}

fn folder(folder: &str) -> Result<Path> {
    let parsed = Path::parse(folder.trim_matches('/')).ok().filter(|_| !folder.contains(':'));
    let message = "`catalog.warehouse` of an SQL catalog is a folder under the target";
    parsed.ok_or_else(|| Error::new(ErrorKind::Invalid, message).with("catalog.warehouse", folder))
}
