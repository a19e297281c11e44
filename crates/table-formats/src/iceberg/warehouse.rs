//! Which object of our store does a URL in Iceberg's metadata name?
//!
//! Iceberg names files by absolute URLs; a table's files are read and written through one store, whose root has a URL.

use std::sync::Arc;

use object_store::{ObjectStore, path::Path};

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// A store, and the URL of its root.
#[derive(Debug, Clone)]
pub struct Warehouse {
    store: Arc<dyn ObjectStore>,
    url: String,
}

impl Warehouse {
    /// The store whose root has this URL, such as `file:///lake`, `s3://bucket/prefix` or `memory://`.
    pub fn new(store: Arc<dyn ObjectStore>, url: &str) -> Self {
        let url = if url.ends_with("://") { url } else { url.trim_end_matches('/') };
        Self { store, url: url.to_owned() }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// The URL of an object.
    pub fn url(&self, path: &Path) -> String {
        format!("{}/{path}", self.url)
    }

    /// The object that a URL names.
    ///
    /// # Errors
    /// `Unsupported` when it lies outside of the store.
    pub fn path(&self, url: &str) -> Result<Path> {
        let ((scheme, file), (ours, root)) = (parts(url), parts(&self.url));
        let rest = if root.is_empty() {
            Some(file)
        } else {
            file.strip_prefix(root).and_then(|r| r.strip_prefix('/'))
        };
        let within =
            rest.filter(|rest| scheme == ours && !rest.is_empty()).and_then(|rest| Path::parse(rest).ok());
        within.ok_or_else(|| {
            let message = "a file of the table lies outside of the warehouse, where it can't be read";
            Error::new(ErrorKind::Unsupported, message).with("file", url).with("warehouse", &self.url)
        })
    }
}

/// Scheme and the rest. Other writers write `file:/lake` for `file:///lake`, and `s3a` for `s3`.
fn parts(url: &str) -> (&str, &str) {
    let (scheme, rest) = url.split_once(':').unwrap_or(("file", url));
    let scheme = match scheme {
        "s3a" | "s3n" => "s3",
        other => other,
    };
    (scheme, rest.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn urls_of_the_warehouse_are_paths_however_they_are_written() {
        let lake = Warehouse::new(Arc::new(InMemory::new()), "file:///my/lake/");
        let path = Path::from("t/data/a.parquet");
        assert_eq!(lake.url(&path), "file:///my/lake/t/data/a.parquet");
        for url in [
            "file:///my/lake/t/data/a.parquet",
            "file:/my/lake/t/data/a.parquet",
            "/my/lake/t/data/a.parquet",
        ] {
            assert_eq!(lake.path(url).unwrap(), path, "{url}");
        }
        for url in ["file:///my/lakes/t", "s3://my/lake/t", "file:///my/lake", "file:///my/lake/../x"] {
            assert_eq!(lake.path(url).unwrap_err().kind(), ErrorKind::Unsupported, "{url}");
        }
        let bucket = Warehouse::new(Arc::new(InMemory::new()), "s3://bucket");
        assert_eq!(bucket.path("s3a://bucket/t/x").unwrap(), Path::from("t/x"));
        let memory = Warehouse::new(Arc::new(InMemory::new()), "memory://");
        assert_eq!(memory.path(&memory.url(&path)).unwrap(), path);
    }
}
