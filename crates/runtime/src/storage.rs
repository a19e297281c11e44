//! Where does a pipeline keep its tables? In a local folder, in memory, or in an object store, by URL.
//!
//! | place | |
//! | --- | --- |
//! | `lake`, `/data/lake`, `file:///data/lake` | a folder of this machine; writes are on disk before they are acknowledged |
//! | `memory:///` | gone with the process |
//! | `s3://bucket/prefix`, `s3a://..` | Amazon S3 and what speaks its protocol (feature `s3`) |
//! | `az://container/prefix`, `abfss://container@account.dfs.core.windows.net/prefix` | Azure (feature `azure`) |
//! | `gs://bucket/prefix` | Google Cloud Storage (feature `gcs`) |
//!
//! How a store is reached is said by the usual variables of the environment (`AWS_..`, `AZURE_..`, `GOOGLE_..`) and by
//! options, which win: [`StoreOptions`].

mod options;
mod probe;
mod remote;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    path::{Path as FsPath, PathBuf},
    sync::Arc,
};

use object_store::{ObjectStore, memory::InMemory};
use strandline_table_formats::{DurableLocal, contract::TableFormat};
use url::Url;

pub use options::StoreOptions;

use crate::error::{Error, ErrorKind, Result};

/// Where a pipeline keeps its tables and what it remembers.
#[derive(Clone)]
pub struct Storage {
    /// Store of everything that is the engine's own.
    pub store: Arc<dyn ObjectStore>,
    /// The tables.
    pub format: Arc<dyn TableFormat>,
    /// The folder, where the storage is local: a second process is locked out of it.
    pub folder: Option<PathBuf>,
    /// URL of the store's root, without a slash at its end, where it has one that others could use too. A storage with a
    /// URL and no folder is shared with other machines: the right to write it is a lease that expires.
    pub url: Option<String>,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage")
            .field("format", &self.format.name())
            .field("folder", &self.folder)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Storage {
    /// Whether processes on other machines may write to it.
    pub(crate) fn is_shared(&self) -> bool {
        self.folder.is_none() && self.url.is_some()
    }

    /// Asks one small question: that the bucket is not there or the keys are wrong is said once, not for each flow.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn check_reachable(&self) -> Result<()> {
        if self.is_shared() { is_empty(&self.store, self.url.as_deref()).await.map(drop) } else { Ok(()) }
    }

    /// Refuses a store in which an object can be created twice, before anything is written there.
    ///
    /// # Errors
    /// `Unsupported` for such a store; else the store's.
    pub(crate) async fn check_guarantees(&self) -> Result<()> {
        // What a folder can do is known.
        if self.folder.is_none() {
            probe::create_only(&self.store, self.url.as_deref()).await
        } else {
            Ok(())
        }
    }
}

/// A place for a storage: its store is there to be used, its format is not chosen.
#[derive(Clone)]
pub struct Location {
    /// The store; its root is the storage's.
    pub store: Arc<dyn ObjectStore>,
    /// The folder, where it is local.
    pub folder: Option<PathBuf>,
    /// See [`Storage::url`].
    pub url: Option<String>,
}

impl fmt::Debug for Location {
    /// Not the store: it may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Location")
            .field("folder", &self.folder)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Location {
    /// Opens a place by its path or URL. A local folder is made where it is missing; of others nothing is read or
    /// written yet.
    ///
    /// Use the store of a URL on a multi-threaded runtime of tokio that lives as long as the store does: its connections are
    /// driven there.
    ///
    /// # Errors
    /// `Definition` for a URL or options that can't be meant; `Unsupported` for a scheme that is not known or a feature
    /// that is off; `Unavailable` for a folder that can't be made.
    pub fn open(place: &str, options: &StoreOptions) -> Result<Self> {
        let Some((scheme, _)) = place.split_once("://") else { return local(FsPath::new(place)) };
        let wrong = |why: &str| {
            Error::new(ErrorKind::Definition, why.to_owned()).with("storage", without_user(place))
        };
        let url = Url::parse(place).map_err(|e| wrong("this is no URL").because(e))?;
        match scheme.to_ascii_lowercase().as_str() {
            "file" => {
                let folder = url.to_file_path().map_err(|()| {
                    wrong("the URL names no folder of this machine")
                        .help("write file:///path/to/folder, or the path alone")
                })?;
                local(&folder)
            }
            "memory" => Ok(Self {
                store: Arc::new(InMemory::new()),
                folder: None,
                // Nobody else can reach it: there is no URL that would mean it to them.
                url: None,
            }),
            _ => remote::open(&url, options),
        }
    }

    /// Whether anything lies there.
    ///
    /// # Errors
    /// The store's.
    pub async fn is_empty(&self) -> Result<bool> {
        is_empty(&self.store, self.url.as_deref()).await
    }

    /// What an error of the first question to the store means.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let is_of_the_store = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound);
        if self.folder.is_none() && is_of_the_store {
            unusable(error.kind(), self.url.as_deref()).because(error)
        } else {
            error
        }
    }

    /// The storage with its tables in this format.
    pub fn with_format(self, format: Arc<dyn TableFormat>) -> Storage {
        Storage { store: self.store, format, folder: self.folder, url: self.url }
    }
}

/// Whether `place` is a URL rather than a path.
pub fn is_url(place: &str) -> bool {
    place.contains("://")
}

async fn is_empty(store: &Arc<dyn ObjectStore>, url: Option<&str>) -> Result<bool> {
    let listed = store.list_with_delimiter(None).await.map_err(|e| unreachable(e, url))?;
    Ok(listed.objects.is_empty() && listed.common_prefixes.is_empty())
}

fn local(folder: &FsPath) -> Result<Location> {
    let failed = |e: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(ErrorKind::Unavailable, "the folder can't be used as storage")
            .with("folder", folder.display())
            .because(e)
    };
    let folder = std::path::absolute(folder).map_err(|e| failed(e.into()))?;
    let store = DurableLocal::new(&folder).map_err(|e| failed(e.into()))?;
    let url = Url::from_file_path(&folder).ok().map(|url| url.as_str().trim_end_matches('/').to_owned());
    Ok(Location { store: Arc::new(store), folder: Some(folder), url })
}

/// A URL as it may be shown: without what stands before `@`, but for the container of Azure's.
fn without_user(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) if !scheme.to_ascii_lowercase().starts_with("abfs") => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
            match authority.rsplit_once('@') {
                Some((user, _)) => format!("{scheme}://..{}", rest.get(user.len()..).unwrap_or_default()),
                None => url.to_owned(),
            }
        }
        _ => url.to_owned(),
    }
}

/// What the first answer of a store means when it is an error: that is where wrong credentials and endpoints show.
fn unreachable(error: object_store::Error, url: Option<&str>) -> Error {
    let kind = match error {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            ErrorKind::Definition
        }
        _ => ErrorKind::Unavailable,
    };
    unusable(kind, url).because(error)
}

fn unusable(kind: ErrorKind, url: Option<&str>) -> Error {
    Error::new(kind, "the storage can't be used")
        .with("storage", url.unwrap_or("in memory"))
        .help(
            "check the bucket, the endpoint and the credentials: variables of the environment, `storage_options` in pipeline.yml, \
             or --storage-option KEY=VALUE",
        )
}
