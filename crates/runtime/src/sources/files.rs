//! Files as a source: each is taken once, by its path.
//!
//! A slice is a list of files. The progress is the set of paths taken so far. The folder is listed once, when the source
//! is opened; files are taken in the order of their paths, which for dated names is the order of their making.

use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, local::LocalFileSystem};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FileOptions, Source, SourceStream, decode, infer};
use crate::error::{Error, ErrorKind, Result, store_error};

/// A file as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRef {
    /// Path within the source's root.
    pub(super) path: String,
    /// Bytes.
    pub(super) size: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Files {
    root: String,
    files: Vec<FileRef>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Taken {
    /// The folder that the paths start from: a flow that is pointed elsewhere has another source.
    root: String,
    taken: BTreeSet<String>,
}

/// Files below a folder that match a pattern.
#[derive(Debug, Clone)]
pub struct FileSource {
    store: Arc<dyn ObjectStore>,
    /// The folder that is listed.
    root: String,
    options: FileOptions,
    schema: SchemaRef,
    /// What was there when the source was opened, sorted by path.
    listed: Vec<FileRef>,
}

impl FileSource {
    /// Lists the files of `pattern`: an absolute path of a file, a folder (with all that is below it), or a glob with
    /// `*`, `?`, `[..]` and `**`. Without a declared schema it is inferred from the files.
    ///
    /// # Errors
    /// `NotFound` when the folder does not exist; `Definition` for a pattern that is none, or a schema that can't be
    /// inferred.
    pub async fn open(pattern: &str, options: FileOptions, declared: Option<SchemaRef>) -> Result<Self> {
        let glob = Glob::new(pattern)?;
        let store: Arc<dyn ObjectStore> =
            Arc::new(LocalFileSystem::new_with_prefix(&glob.root).map_err(|e| {
                Error::new(ErrorKind::NotFound, "the folder can't be read")
                    .with("path", &glob.root)
                    .because(e)
            })?);
        let mut listed: Vec<FileRef> = store
            .list(None)
            .map_err(|e| store_error(e, &glob.root))
            .try_filter_map(async |object| {
                let path = object.location.as_ref().to_owned();
                Ok(glob.matches(&path).then_some(FileRef { path, size: object.size }))
            })
            .try_collect()
            .await?;
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        if listed.is_empty() && glob.names_one_file {
            return Err(Error::new(ErrorKind::NotFound, "there is no such file").with("path", pattern));
        }
        let schema = match declared {
            Some(schema) => schema,
            None => infer::schema(&store, &listed, &options, pattern).await?,
        };
        Ok(Self { store, root: glob.root, options, schema, listed })
    }

    fn full_path(&self, file: &FileRef) -> String {
        format!("{}/{}", self.root.trim_end_matches('/'), file.path)
    }

    /// Refuses what was recorded of files below another folder.
    fn check_root(&self, recorded: &str) -> Result<()> {
        if recorded == self.root {
            return Ok(());
        }
        Err(Error::new(ErrorKind::State, "the flow read files of another folder before")
            .with("before", recorded)
            .with("now", &self.root)
            .help("give the flow a new name; or keep the folder, and change only the pattern below it"))
    }
}

#[async_trait]
impl Source for FileSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn start(&self) -> Value {
        encode(&Taken { root: self.root.clone(), taken: BTreeSet::new() })
    }

    async fn next(&self, progress: &Value) -> Result<Option<Value>> {
        let progress: Taken = decode_value(progress)?;
        self.check_root(&progress.root)?;
        let mut files = Vec::new();
        let mut bytes: u64 = 0;
        for file in self.listed.iter().filter(|file| !progress.taken.contains(&file.path)) {
            let full = bytes.saturating_add(file.size) > self.options.max_bytes;
            if files.len() >= self.options.max_files || (full && !files.is_empty()) {
                break;
            }
            bytes = bytes.saturating_add(file.size);
            files.push(file.clone());
        }
        Ok((!files.is_empty()).then(|| encode(&Files { root: self.root.clone(), files })))
    }

    fn advance(&self, progress: Value, slice: &Value) -> Result<Value> {
        let mut progress: Taken = decode_value(&progress)?;
        let slice: Files = decode_value(slice)?;
        self.check_root(&progress.root)?;
        progress.taken.extend(slice.files.into_iter().map(|file| file.path));
        Ok(encode(&progress))
    }

    async fn read(&self, slice: &Value) -> Result<SourceStream> {
        let slice: Files = decode_value(slice)?;
        self.check_root(&slice.root)?;
        let source = self.clone();
        let rows = stream::iter(slice.files).then(move |file| {
            let source = source.clone();
            async move {
                let name = source.full_path(&file);
                decode::read(&source.store, &file, &name, &source.options, &source.schema).await
            }
        });
        Ok(rows.try_flatten().boxed())
    }

    async fn available(&self) -> Result<Value> {
        Ok(encode(&Files { root: self.root.clone(), files: self.listed.clone() }))
    }

    fn fixed(&self, available: &Value) -> Result<Box<dyn Source>> {
        let available: Files = decode_value(available)?;
        self.check_root(&available.root)?;
        Ok(Box::new(Self { listed: available.files, ..self.clone() }))
    }
}

fn encode<T: Serialize>(value: &T) -> Value {
    // Strings, numbers and lists of them always encode.
    serde_json::to_value(value).unwrap_or_default()
}

fn decode_value<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(value).map_err(|e| {
        Error::new(ErrorKind::State, "what is recorded of this flow's source is not of a file source")
            .help("the flow read something else before; give it a new name")
            .because(e)
    })
}

/// A pattern, split into the folder to list and what to look for in it.
struct Glob {
    root: String,
    pattern: Option<glob::Pattern>,
    names_one_file: bool,
}

impl Glob {
    /// The folder to list is the deepest one that exists as it is written, so that a folder may have brackets in its name;
    /// what follows is the pattern. A file that exists as it is written is that file.
    fn new(pattern: &str) -> Result<Self> {
        let whole = std::path::Path::new(pattern);
        if whole.is_dir() {
            return Ok(Self { root: pattern.to_owned(), pattern: None, names_one_file: false });
        }
        let is_magic = |part: &str| part.contains(['*', '?', '[']);
        let mut root = if pattern.starts_with('/') { "/".to_owned() } else { ".".to_owned() };
        let mut parts = pattern.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.peek() {
            let deeper = std::path::Path::new(&root).join(part);
            if !deeper.is_dir() && is_magic(part) || parts.clone().count() == 1 {
                break;
            }
            root = deeper.to_string_lossy().into_owned();
            parts.next();
        }
        let rest = parts.collect::<Vec<_>>().join("/");
        let names_one_file = whole.is_file() || !is_magic(&rest);
        let rest = if names_one_file { glob::Pattern::escape(&rest) } else { rest };
        let compiled = glob::Pattern::new(&rest).map_err(|e| {
            Error::new(ErrorKind::Definition, "the path is no valid pattern").with("path", pattern).because(e)
        })?;
        Ok(Self { root, pattern: Some(compiled), names_one_file })
    }

    /// Hidden files and folders, and those that begin with `_`, are left out, as Spark does.
    fn matches(&self, path: &str) -> bool {
        let visible = path.split('/').all(|part| !part.starts_with(['.', '_']));
        let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
        visible && self.pattern.as_ref().is_none_or(|pattern| pattern.matches_with(path, options))
    }
}
