//! A table as a source: the rows that commits append, each once.
//!
//! A slice is a list of files of one version of the table. Rows that were updated or deleted in place are refused: what
//! became of them can't be told from files alone.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strandline_table_formats::contract::{Table, TableSnapshot, TableVersion};

use super::{Source, SourceStream};
use crate::error::{Error, ErrorKind, Result};

/// Rows in a batch, unless one file has more.
const MAX_ROWS: u64 = 1_000_000;
const MAX_FILES: usize = 1000;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Slice {
    table: String,
    version: u64,
    files: Vec<String>,
    /// Files of the same version that later batches take.
    rest: Vec<(String, u64)>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Progress {
    table: String,
    version: Option<u64>,
    rest: Vec<(String, u64)>,
}

/// The appended rows of a table.
#[derive(Debug, Clone)]
pub struct TableSource {
    name: String,
    table: Arc<dyn Table>,
    /// The version when the source was opened: what comes later is the next update's.
    head: Arc<dyn TableSnapshot>,
}

impl TableSource {
    /// The table as it is now.
    ///
    /// # Errors
    /// The table's.
    pub async fn open(name: &str, table: Arc<dyn Table>) -> Result<Self> {
        let head = table.snapshot().await?;
        Ok(Self { name: name.to_owned(), table, head })
    }

    /// Refuses what was recorded of another table.
    fn check_table(&self, recorded: &str) -> Result<()> {
        if recorded == self.name {
            return Ok(());
        }
        Err(Error::new(ErrorKind::State, "the flow read another table before")
            .with("before", recorded)
            .with("now", &self.name)
            .help("give the flow a new name"))
    }

    fn decode<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
        T::deserialize(value).map_err(|e| {
            Error::new(ErrorKind::State, "what is recorded of this flow's source is not of a table")
                .help("the flow read something else before; give it a new name")
                .because(e)
        })
    }
}

#[async_trait]
impl Source for TableSource {
    fn schema(&self) -> SchemaRef {
        self.head.schema()
    }

    fn start(&self) -> Value {
        serde_json::to_value(Progress { table: self.name.clone(), ..Progress::default() }).unwrap_or_default()
    }

    async fn next(&self, progress: &Value) -> Result<Option<Value>> {
        let progress: Progress = Self::decode(progress)?;
        self.check_table(&progress.table)?;
        let (version, waiting) = if progress.rest.is_empty() {
            let head = self.head.version();
            let since = progress.version.map(TableVersion);
            if since.is_some_and(|since| since > head) {
                return Err(Error::new(
                    ErrorKind::State,
                    "the table was dropped and made anew since the flow read it",
                )
                .with("table", &self.name)
                .help("give the flow a new name"));
            }
            if since == Some(head) {
                return Ok(None);
            }
            let files = self.head.appended_since(since).await.map_err(|error| {
                Error::from(error)
                    .with("table", &self.name)
                    .help("only tables whose rows are appended can be read as a stream")
            })?;
            (head.0, files.into_iter().map(|file| (file.path, file.rows)).collect())
        } else {
            (progress.version.unwrap_or_default(), progress.rest)
        };
        let mut rows: u64 = 0;
        let fits = waiting.iter().take_while(|(_, n)| {
            let first = rows == 0;
            rows = rows.saturating_add(*n);
            first || rows <= MAX_ROWS
        });
        let taken = fits.count().min(MAX_FILES);
        let mut files = waiting;
        let rest = files.split_off(taken);
        if files.is_empty() {
            return Ok(None);
        }
        let slice = Slice {
            table: self.name.clone(),
            version,
            files: files.into_iter().map(|(path, _)| path).collect(),
            rest,
        };
        Ok(Some(serde_json::to_value(slice)?))
    }

    fn advance(&self, _: Value, slice: &Value) -> Result<Value> {
        let slice: Slice = Self::decode(slice)?;
        Ok(serde_json::to_value(Progress {
            table: slice.table,
            version: Some(slice.version),
            rest: slice.rest,
        })?)
    }

    async fn read(&self, slice: &Value) -> Result<SourceStream> {
        let slice: Slice = Self::decode(slice)?;
        self.check_table(&slice.table)?;
        let version = TableVersion(slice.version);
        let snapshot = if self.head.version() == version {
            Arc::clone(&self.head)
        } else {
            self.table.at(version).await?
        };
        let rows = stream::iter(slice.files).then(move |file| {
            let snapshot = Arc::clone(&snapshot);
            async move {
                snapshot.read_file(&file).await.map(|rows| rows.map_err(Error::from)).map_err(Error::from)
            }
        });
        Ok(rows.try_flatten().boxed())
    }

    async fn available(&self) -> Result<Value> {
        let files = self.head.appended_since(None).await?;
        let rest = files.into_iter().map(|file| (file.path, file.rows)).collect();
        Ok(serde_json::to_value(Progress {
            table: self.name.clone(),
            version: Some(self.head.version().0),
            rest,
        })?)
    }

    fn fixed(&self, available: &Value) -> Result<Box<dyn Source>> {
        let available: Progress = Self::decode(available)?;
        Ok(Box::new(FixedTable { table: self.clone(), available }))
    }
}

/// A table as it was at one version, whatever came since.
#[derive(Debug, Clone)]
struct FixedTable {
    table: TableSource,
    available: Progress,
}

#[async_trait]
impl Source for FixedTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn start(&self) -> Value {
        serde_json::to_value(&self.available).unwrap_or_default()
    }

    async fn next(&self, progress: &Value) -> Result<Option<Value>> {
        let left: Progress = TableSource::decode(progress)?;
        if left.rest.is_empty() { Ok(None) } else { self.table.next(progress).await }
    }

    fn advance(&self, progress: Value, slice: &Value) -> Result<Value> {
        self.table.advance(progress, slice)
    }

    async fn read(&self, slice: &Value) -> Result<SourceStream> {
        self.table.read(slice).await
    }

    async fn available(&self) -> Result<Value> {
        Ok(serde_json::to_value(&self.available)?)
    }

    fn fixed(&self, available: &Value) -> Result<Box<dyn Source>> {
        self.table.fixed(available)
    }
}
