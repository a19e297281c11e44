//! Which pipeline does a storage belong to, and in which format are its tables? Recorded by the first update.

use std::sync::Arc;

use object_store::ObjectStore;
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, ErrorKind, Result},
    state::{Register, engine_path},
    storage::Location,
};

/// The format of storages that were made before formats were recorded.
const FIRST_FORMAT: &str = "delta";

#[derive(Serialize, Deserialize)]
struct Record {
    name: String,
    table_format: Option<String>,
}

impl Location {
    /// The format of the tables here; `None` when no update ran yet.
    ///
    /// # Errors
    /// The store's.
    pub async fn recorded_format(&self) -> Result<Option<String>> {
        let record = record(&self.store).await.map_err(|error| self.explain(error))?;
        Ok(record.map(|record| format_of(&record).to_owned()))
    }
}

/// The name that the commits of a storage are stamped with: the one that its first update had. A pipeline whose file is
/// renamed must find its own stamps.
///
/// # Errors
/// `Definition` when the storage's tables are in another format; the store's.
pub(crate) async fn pipeline_name(store: &Arc<dyn ObjectStore>, name: &str, format: &str) -> Result<String> {
    if let Some(record) = record(store).await? {
        if format_of(&record) != format {
            return Err(Error::new(ErrorKind::Definition, "the storage has its tables in another format")
                .with("recorded", format_of(&record))
                .with("asked for", format)
                .help("run the pipeline in the recorded format, or give it another storage"));
        }
        return Ok(record.name);
    }
    let record = Record { name: name.to_owned(), table_format: Some(format.to_owned()) };
    register(store).create(1, &record).await?;
    Ok(name.to_owned())
}

async fn record(store: &Arc<dyn ObjectStore>) -> Result<Option<Record>> {
    Ok(register(store).newest::<Record>().await?.map(|(_, record)| record))
}

fn register(store: &Arc<dyn ObjectStore>) -> Register {
    Register::new(Arc::clone(store), engine_path(&["pipeline"]))
}

fn format_of(record: &Record) -> &str {
    record.table_format.as_deref().unwrap_or(FIRST_FORMAT)
}
