//! A value that changes by appending: numbered objects, create-only, the newest counts.

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, path::Path};
use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Error, ErrorKind, Result, store_error};

/// Version of the records' format; one that this program does not know is refused by name.
const FORMAT: u64 = 1;

/// Longest record that is read: a guard against a file that is none of ours.
const LONGEST: u64 = 256 << 20;

/// A series of numbered records of one type under one path.
///
/// # Contract
/// 1. [`Register::create`] of a number succeeds for one caller only, however many try and whatever crashes.
/// 2. What was created is durable when the call returns.
/// 3. A record that can't be read is an error that names it, never a default.
#[derive(Debug, Clone)]
pub struct Register {
    store: Arc<dyn ObjectStore>,
    root: Path,
}

#[derive(Serialize, serde::Deserialize)]
struct Record<T> {
    format: u64,
    #[serde(flatten)]
    value: T,
}

impl Register {
    /// A register at `root`; nothing is read or written yet.
    pub fn new(store: Arc<dyn ObjectStore>, root: Path) -> Self {
        Self { store, root }
    }

    fn path(&self, number: u64) -> Path {
        self.root.clone().join(format!("{number:020}.json"))
    }

    /// Writes record `number`, which must not exist. `false` when it does.
    ///
    /// # Errors
    /// The store's.
    pub async fn create<T: Serialize + Sync>(&self, number: u64, value: &T) -> Result<bool> {
        let path = self.path(number);
        let unwritable = |why: &str| {
            Error::new(ErrorKind::Internal, format!("a record can't be encoded: {why}")).with("record", &path)
        };
        let value = serde_json::to_value(value).map_err(|e| unwritable("it is no JSON").because(e))?;
        // Twice the same name could not be read again.
        if value.get("format").is_some() {
            return Err(unwritable("`format` is the name of the records' own version"));
        }
        let record = Record { format: FORMAT, value };
        let text = serde_json::to_vec(&record).map_err(|e| unwritable("it is no object").because(e))?;
        if text.len() as u64 > LONGEST {
            return Err(Error::new(ErrorKind::Unsupported, "a record would be too large to be read again")
                .with("record", &path)
                .with("bytes", text.len()));
        }
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(&path, text.into(), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(store_error(error, &path)),
        }
    }

    /// The numbers that exist, sorted.
    ///
    /// # Errors
    /// The store's, or `State` for an object that is no record.
    pub async fn numbers(&self) -> Result<Vec<u64>> {
        let objects: Vec<_> =
            self.store.list(Some(&self.root)).try_collect().await.map_err(|e| store_error(e, &self.root))?;
        let mut numbers = Vec::with_capacity(objects.len());
        for object in objects {
            let name = object.location.filename().unwrap_or_default();
            let number = name.strip_suffix(".json").and_then(|n| n.parse().ok()).ok_or_else(|| {
                Error::new(ErrorKind::State, "this file is no record of the engine")
                    .with("file", &object.location)
            })?;
            numbers.push(number);
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads one record; `None` when it does not exist.
    ///
    /// # Errors
    /// The store's, or `State` for a record that can't be read.
    pub async fn read<T: DeserializeOwned>(&self, number: u64) -> Result<Option<T>> {
        let path = self.path(number);
        let result = match self.store.get(&path).await {
            Ok(result) => result,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(store_error(error, &path)),
        };
        if result.meta.size > LONGEST {
            return Err(Error::new(ErrorKind::State, "a record is too large to be one").with("record", &path));
        }
        let bytes = result.bytes().await.map_err(|e| store_error(e, &path))?;
        let unreadable = |why: &dyn std::fmt::Display| {
            Error::new(ErrorKind::State, format!("a record can't be read: {why}"))
                .with("record", &path)
                .help("restore the file, or give the pipeline a new storage folder")
        };
        let format: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| unreadable(&e))?;
        match format.get("format").and_then(serde_json::Value::as_u64) {
            Some(FORMAT) => {}
            found => return Err(unreadable(&format!("format {found:?}, this program knows {FORMAT}"))),
        }
        let record: Record<T> = serde_json::from_value(format).map_err(|e| unreadable(&e))?;
        Ok(Some(record.value))
    }

    /// The newest record with its number.
    ///
    /// # Errors
    /// As [`Register::numbers`] and [`Register::read`].
    pub async fn newest<T: DeserializeOwned>(&self) -> Result<Option<(u64, T)>> {
        let Some(number) = self.numbers().await?.pop() else { return Ok(None) };
        Ok(self.read(number).await?.map(|value| (number, value)))
    }

    /// Removes records below `number`. A crash midway leaves some of them: the next call removes them.
    ///
    /// # Errors
    /// The store's.
    pub async fn prune_below(&self, number: u64) -> Result<()> {
        for old in self.numbers().await?.into_iter().filter(|&n| n < number) {
            let path = self.path(old);
            match self.store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(store_error(error, &path)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_record_that_could_not_be_read_again_is_not_written() {
        let register = Register::new(Arc::new(object_store::memory::InMemory::new()), Path::from("r"));
        let error =
            register.create(1, &serde_json::json!({"name": "x", "format": "delta"})).await.unwrap_err();
        assert!(error.to_string().contains("`format`"), "{error}");
        assert!(register.numbers().await.unwrap().is_empty());
        assert!(register.create(1, &serde_json::json!({"name": "x"})).await.unwrap());
        assert_eq!(register.read::<serde_json::Value>(1).await.unwrap().unwrap()["name"], "x");
    }
}
