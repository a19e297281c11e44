//! Files as a source: each is taken once, by its path.
//!
//! A slice is a list of files. The folder is listed once, when the source is opened; files are taken in the order of their
//! paths, which for dated names is the order of their making. What a batch finds to be a new column ends it: the flow goes
//! on once the columns are recorded, see [`NewColumns`].

use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, local::LocalFileSystem};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strandline_pipeline_sql::ReadFiles;

use super::{
    FileFormat, FileOptions, Source, SourceStream,
    decode::{self, Reading},
    infer::{self, Depth},
    metadata,
    partitions::{self, Constants},
    patterns::Pattern,
    taken,
};
use crate::{
    error::{Error, ErrorKind, Result, store_error},
    types::schema_of,
};

/// A file as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRef {
    /// Path within the source's root.
    pub(super) path: String,
    /// Bytes.
    pub(super) size: u64,
    /// When it was changed, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) modified: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Slice {
    root: String,
    files: Vec<FileRef>,
    /// They were there before the flow was, and are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    skipped: bool,
    /// What they were is remembered: the option `allowOverwrites` as it was when the slice was made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stamped: bool,
}

/// The columns of a source after a batch brought new ones: the cause of an error of the kind
/// [`ErrorKind::SchemaEvolved`].
#[derive(Debug, Clone)]
pub struct NewColumns {
    /// The columns to record.
    pub schema: SchemaRef,
    /// Names of the new ones.
    pub names: Vec<String>,
}

impl std::fmt::Display for NewColumns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "new columns: {}", self.names.join(", "))
    }
}

impl std::error::Error for NewColumns {}

/// Files below a folder that match a pattern.
#[derive(Debug, Clone)]
pub struct FileSource {
    store: Arc<dyn ObjectStore>,
    /// The folder that is listed.
    root: String,
    options: Arc<FileOptions>,
    schema: SchemaRef,
    /// What was there when the source was opened, sorted by path.
    listed: Arc<Vec<FileRef>>,
    /// All of it is taken, whatever the options say of files that were there before the flow.
    fixed: bool,
}

impl FileSource {
    /// Lists the files of `pattern`: an absolute path of a file, a folder (with all that is below it), or a glob with
    /// `*`, `?`, `[..]`, `{a,b}` and `**`. Without a schema it is inferred from the files.
    ///
    /// # Errors
    /// `NotFound` when the folder does not exist; `Definition` for a pattern that is none, or a schema that can't be
    /// inferred.
    pub async fn open(pattern: &str, options: FileOptions, schema: Option<SchemaRef>) -> Result<Self> {
        let wanted = Pattern::new(pattern, options.name_filter.as_deref())?;
        let store: Arc<dyn ObjectStore> =
            Arc::new(LocalFileSystem::new_with_prefix(&wanted.root).map_err(|e| {
                Error::new(ErrorKind::NotFound, "the folder can't be read")
                    .with("path", &wanted.root)
                    .because(e)
            })?);
        let mut listed: Vec<FileRef> = store
            .list(None)
            .map_err(|e| store_error(e, &wanted.root))
            .try_filter_map(async |object| {
                let modified = object.last_modified.timestamp_millis();
                let path = object.location.as_ref();
                let in_time = options.modified_after.is_none_or(|after| modified > after)
                    && options.modified_before.is_none_or(|before| modified < before);
                let is_meant = in_time && wanted.matches(path);
                let file = || FileRef { path: path.to_owned(), size: object.size, modified: Some(modified) };
                Ok(is_meant.then(file))
            })
            .try_collect()
            .await?;
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        if listed.is_empty() && wanted.names_one_file && options.modified_after.is_none() {
            return Err(Error::new(ErrorKind::NotFound, "there is no such file").with("path", pattern));
        }
        let empty = Arc::new(Schema::empty());
        let mut source = Self {
            store,
            root: wanted.root,
            options: Arc::new(options),
            schema: empty,
            listed: Arc::new(listed),
            fixed: false,
        };
        source.schema = match schema {
            Some(schema) => schema,
            None => source.inferred(pattern).await?,
        };
        Ok(source)
    }

    /// The columns of the rows of a `read_files` call: the declared ones, those that were inferred and recorded before, or
    /// what can be inferred now; with the rescue column, if there is one.
    ///
    /// # Errors
    /// `Definition` for options or columns that contradict one another; as [`FileSource::open`].
    pub async fn columns(call: &ReadFiles, recorded: Option<&SchemaRef>) -> Result<SchemaRef> {
        let options = FileOptions::new(call)?;
        match (&options.declared, recorded) {
            (Some(columns), _) => complete(&options, schema_of(columns).fields()),
            (None, Some(recorded)) => complete(&options, recorded.fields()),
            (None, None) => Ok(Self::open(&call.path, options, None).await?.schema()),
        }
    }

    /// What is to be recorded of inferred columns: those that the files gave.
    pub(crate) fn recorded(options: &FileOptions, schema: &Schema) -> SchemaRef {
        let is_own = |field: &&FieldRef| {
            let of_envelope = options.envelope.as_ref().is_some_and(|own| own.is_metadata(field.name()));
            options.records.rescue.as_ref() != Some(field.name())
                && !metadata::is_metadata(field)
                && !of_envelope
        };
        Arc::new(Schema::new(schema.fields().iter().filter(is_own).cloned().collect::<Vec<_>>()))
    }

    async fn inferred(&self, pattern: &str) -> Result<SchemaRef> {
        let files = self.listed.iter().map(|file| (file, self.full_path(file)));
        let mut fields = infer::columns(&self.store, files, &self.options, Depth::Sample).await?;
        let is_listed = |name: &str| {
            self.options.partition_columns.as_ref().is_none_or(|listed| listed.iter().any(|own| own == name))
        };
        let named =
            partitions::infer(self.listed.iter().map(|file| file.path.as_str()), self.options.infer_types);
        for column in named.into_iter().filter(|column| is_listed(column.name())) {
            fields.retain(|field| field.name() != column.name());
            fields.push(column);
        }
        if fields.is_empty() {
            return Err(Error::new(
                ErrorKind::Definition,
                "no file matches, so the columns can't be found out",
            )
            .with("path", pattern)
            .help("declare them: read_files('..', schema => 'id BIGINT, ..')"));
        }
        complete(&self.options, &fields)
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

    /// The columns that the folders of a file give its rows, and their values.
    fn constants(&self, file: &FileRef, name: &str) -> Result<Constants> {
        let named: Vec<_> = match &self.options.partition_columns {
            Some(_) => partitions::of_path(name).collect(),
            None => partitions::of_path(&file.path).collect(),
        };
        let is_named = |field: &&FieldRef| match &self.options.partition_columns {
            Some(listed) => listed.contains(field.name()),
            None => named.iter().any(|(own, _)| own == field.name()),
        };
        let columns = self.schema.fields().iter().filter(is_named).cloned().collect();
        let mut constants = Constants::new(columns, &named, name)?;
        if let Some(field) = self.schema.fields().iter().find(|field| metadata::is_metadata(field)) {
            constants.push(Arc::clone(field), metadata::value(file, name)?);
        }
        Ok(constants)
    }

    /// The rows of one file.
    async fn read_file(&self, file: &FileRef) -> Result<SourceStream> {
        let name = self.full_path(file);
        let constants = self.constants(file, &name)?;
        let given: Vec<String> = constants.names().map(str::to_owned).collect();
        let own = self.schema.fields().iter().filter(|field| !given.contains(field.name()));
        let schema = Arc::new(Schema::new(own.cloned().collect::<Vec<_>>()));
        let reading = Reading { name, options: Arc::clone(&self.options), schema, given };
        let rows = decode::read(&self.store, file, reading).await?;
        Ok(rows.map(move |batch| constants.beside(&batch?)).boxed())
    }

    /// An error of a batch; one that says that there are new columns learns which.
    async fn evolved(&self, error: Error, files: &[FileRef]) -> Error {
        if error.kind() != ErrorKind::SchemaEvolved {
            return error;
        }
        let named = files.iter().map(|file| (file, self.full_path(file)));
        let found = match infer::columns(&self.store, named, &self.options, Depth::All).await {
            Ok(found) => found,
            Err(error) => return error,
        };
        let known = Self::recorded(&self.options, &self.schema);
        let is_new = |field: &FieldRef| {
            !self.schema.fields().iter().any(|own| own.name().eq_ignore_ascii_case(field.name()))
        };
        let mut new: Vec<FieldRef> = Vec::new();
        for field in found.into_iter().filter(is_new) {
            // Of names that differ in case only one can become a column; the others are rescued.
            if !new.iter().any(|own| own.name().eq_ignore_ascii_case(field.name())) {
                new.push(hinted(&self.options, &field));
            }
        }
        if new.is_empty() {
            return Error::new(ErrorKind::Internal, "a new column was found and found again to be none")
                .because(error);
        }
        let names = new.iter().map(|field| field.name().clone()).collect();
        let fields: Vec<FieldRef> = known.fields().iter().cloned().chain(new).collect();
        error.because(NewColumns { schema: Arc::new(Schema::new(fields)), names })
    }
}

/// The columns of a source: those that its files give, with the types that are hinted; then the rescue column.
fn complete(options: &FileOptions, fields: &[FieldRef]) -> Result<SchemaRef> {
    let mut fields: Vec<FieldRef> = fields.iter().map(|field| hinted(options, field)).collect();
    let more = options.hints.iter().map(|hint| hint.name.as_str());
    let listed = options.partition_columns.iter().flatten().map(String::as_str);
    for name in more.chain(listed) {
        if !fields.iter().any(|field| field.name() == name) {
            let text = Arc::new(Field::new(name, arrow_schema::DataType::Utf8, true));
            fields.push(hinted(options, &text));
        }
    }
    if let Some(envelope) = &options.envelope {
        fields = envelope.schema(&Schema::new(fields))?.fields().to_vec();
    }
    if let Some(name) = &options.records.rescue
        && options.format != FileFormat::Text
    {
        if fields.iter().any(|field| field.name() == name) {
            return Err(Error::new(ErrorKind::Definition, "a column has the name of the rescue column")
                .with("column", name)
                .help("give the rescue column another name with rescuedDataColumn"));
        }
        fields.push(Arc::new(Field::new(name, arrow_schema::DataType::Utf8, true)));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// A field with the type that is hinted, if one is.
fn hinted(options: &FileOptions, field: &FieldRef) -> FieldRef {
    let hint = options.hints.iter().find(|hint| hint.name == *field.name());
    hint.and_then(|hint| schema_of(std::slice::from_ref(hint)).fields().first().cloned())
        .unwrap_or_else(|| Arc::clone(field))
}

#[async_trait]
impl Source for FileSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn start(&self) -> Value {
        taken::start(&self.root)
    }

    async fn next(&self, progress: &Value) -> Result<Option<Value>> {
        self.check_root(taken::root(progress)?)?;
        let (root, stamped) = (self.root.clone(), self.options.allow_overwrites);
        if !self.options.include_existing && !self.fixed && !taken::has_begun(progress) {
            let files = self.listed.to_vec();
            return Ok(Some(encode(&Slice { root, files, skipped: true, stamped })));
        }
        let mut files = Vec::new();
        let mut bytes: u64 = 0;
        for file in taken::left(progress, &self.listed, self.options.allow_overwrites) {
            let full = bytes.saturating_add(file.size) > self.options.max_bytes;
            if files.len() >= self.options.max_files || (full && !files.is_empty()) {
                break;
            }
            bytes = bytes.saturating_add(file.size);
            files.push(file.clone());
        }
        Ok((!files.is_empty()).then(|| encode(&Slice { root, files, skipped: false, stamped })))
    }

    fn advance(&self, progress: Value, slice: &Value) -> Result<Value> {
        let mut progress = progress;
        self.check_root(taken::root(&progress)?)?;
        let slice: Slice = decode_value(slice)?;
        taken::take(&mut progress, &slice.files, slice.stamped);
        Ok(progress)
    }

    async fn read(&self, slice: &Value) -> Result<SourceStream> {
        let slice: Slice = decode_value(slice)?;
        self.check_root(&slice.root)?;
        let files = if slice.skipped { Vec::new() } else { slice.files };
        let files = Arc::new(files);
        let each = {
            let source = self.clone();
            stream::iter((0..files.len()).zip(std::iter::repeat(Arc::clone(&files)))).then(
                move |(at, files)| {
                    let source = source.clone();
                    async move {
                        match files.get(at) {
                            Some(file) => source.read_file(file).await,
                            None => Ok(stream::empty().boxed()),
                        }
                    }
                },
            )
        };
        let source = self.clone();
        let rows = each.try_flatten().or_else(move |error| {
            let (source, files) = (source.clone(), Arc::clone(&files));
            async move { Err(source.evolved(error, &files).await) }
        });
        Ok(rows.boxed())
    }

    async fn available(&self) -> Result<Value> {
        let (root, files) = (self.root.clone(), self.listed.to_vec());
        Ok(encode(&Slice { root, files, skipped: false, stamped: false }))
    }

    fn fixed(&self, available: &Value) -> Result<Box<dyn Source>> {
        let available: Slice = decode_value(available)?;
        self.check_root(&available.root)?;
        Ok(Box::new(Self { listed: Arc::new(available.files), fixed: true, ..self.clone() }))
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
