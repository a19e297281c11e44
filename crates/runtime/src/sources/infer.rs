//! Which columns do files have whose schema was not declared?
//!
//! Parquet says it itself. For JSON and CSV the first files are looked at, a bounded number of lines of each. Integers
//! become `BIGINT`, other numbers `DOUBLE`; whoever wants more declares a schema.

use std::{io::Cursor, sync::Arc};

use arrow_schema::{Schema, SchemaRef};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use strandline_table_formats::parquet::Input;

use super::{FileFormat, FileOptions, files::FileRef};
use crate::error::{Error, ErrorKind, Result, store_error};

const LOOK_AT_FILES: usize = 16;
const LOOK_AT_ROWS: usize = 10_000;

pub(super) async fn schema(
    store: &Arc<dyn ObjectStore>,
    files: &[FileRef],
    options: &FileOptions,
    pattern: &str,
) -> Result<SchemaRef> {
    let mut found: Option<Schema> = None;
    for file in files.iter().take(LOOK_AT_FILES) {
        let path = Path::parse(&file.path)
            .map_err(|e| Error::new(ErrorKind::Internal, "a listed path is none").because(e))?;
        let schema = one(store, &path, file, options).await?;
        if options.format == FileFormat::Parquet {
            return Ok(Arc::new(crate::types::storable(&schema)));
        }
        found = Some(match found {
            None => schema,
            Some(before) => Schema::try_merge([before, schema]).map_err(|e| {
                Error::new(ErrorKind::Data, "the files disagree about a column: declare a schema")
                    .with("file", &file.path)
                    .because(e)
            })?,
        });
    }
    found.map(|schema| Arc::new(crate::types::storable(&schema))).ok_or_else(|| {
        Error::new(ErrorKind::Definition, "no file matches, so the columns can't be found out")
            .with("path", pattern)
            .help("declare them: read_files('..', schema => 'id BIGINT, ..')")
    })
}

async fn one(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    file: &FileRef,
    options: &FileOptions,
) -> Result<Schema> {
    let unreadable = |why: String| {
        Error::new(ErrorKind::Data, format!("the file can't be read: {why}")).with("file", path)
    };
    if options.format == FileFormat::Parquet {
        let reader = Input::new(Arc::clone(store), path.clone(), file.size);
        let builder =
            ParquetRecordBatchStreamBuilder::new(reader).await.map_err(|e| unreadable(e.to_string()))?;
        return Ok(builder.schema().as_ref().clone());
    }
    let content = store
        .get(path)
        .await
        .map_err(|e| store_error(e, path))?
        .bytes()
        .await
        .map_err(|e| store_error(e, path))?;
    let result = match options.format {
        FileFormat::Json => arrow_json::reader::infer_json_schema(Cursor::new(content), Some(LOOK_AT_ROWS)),
        _ => arrow_csv::reader::Format::default()
            .with_header(options.header)
            .with_delimiter(options.delimiter)
            .with_quote(options.quote)
            .infer_schema(Cursor::new(content), Some(LOOK_AT_ROWS)),
    };
    result.map(|(schema, _)| schema).map_err(|e| unreadable(e.to_string()))
}
