//! How does the content of a file become rows, and what is said of content that is no rows?
//!
//! JSON and CSV are decoded in batches. When a batch can't be decoded, the file is gone through once more line by line,
//! so that the error names the first bad line, shows it, and counts how many there are.

use std::{io::Cursor, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use strandline_table_formats::parquet::Input;

use super::{FileFormat, FileOptions, SourceStream, exact, files::FileRef};
use crate::error::{Error, ErrorKind, Result, store_error};

const BATCH_ROWS: usize = 8192;
const SAMPLE: usize = 160;
/// Some tools begin a text file with it.
const BOM: &[u8] = b"\xef\xbb\xbf";
/// JSON that nests deeper is no record of anything; the decoder follows it with its stack.
const DEEPEST: usize = 128;

/// Refuses JSON that nests too deep.
fn check_depth(content: &[u8], name: &str) -> Result<()> {
    let (mut depth, mut line, mut quoted, mut escaped) = (0_usize, 1_usize, false, false);
    for &byte in content {
        match (quoted, byte) {
            (_, b'\n') => {
                // A string does not go over a line: whatever was open is a broken record, told by the decoder.
                (line, quoted, escaped) = (line + 1, false, false);
            }
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => quoted = !quoted,
            (false, b'[' | b'{') => depth += 1,
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(Error::new(ErrorKind::Data, format!("a record nests more than {DEEPEST} deep"))
                .with("file", name)
                .with("line", line));
        }
    }
    Ok(())
}

/// The rows of one file. `name` is what messages call it.
pub(super) async fn read(
    store: &Arc<dyn ObjectStore>,
    file: &FileRef,
    name: &str,
    options: &FileOptions,
    schema: &SchemaRef,
) -> Result<SourceStream> {
    let path = Path::parse(&file.path)
        .map_err(|e| Error::new(ErrorKind::State, "a recorded path is none").because(e))?;
    if options.format == FileFormat::Parquet {
        return parquet(store, path, name, schema).await;
    }
    let content = store
        .get(&path)
        .await
        .map_err(|e| gone(e, name))?
        .bytes()
        .await
        .map_err(|e| store_error(e, &path))?;
    let content = content.strip_prefix(BOM).map_or(content.clone(), |rest| content.slice_ref(rest));
    let batches = if options.format == FileFormat::Json {
        check_depth(&content, name)?;
        json(&content, schema)
    } else {
        check_header(options, schema, &content, name)?;
        csv(&content, options, schema)
    };
    let (name, options, schema) = (name.to_owned(), options.clone(), Arc::clone(schema));
    let explained =
        batches.map(move |batch| batch.map_err(|error| explain(&content, &name, &options, &schema, &error)));
    Ok(stream::iter(explained).boxed())
}

fn gone(error: object_store::Error, name: &str) -> Error {
    match error {
        object_store::Error::NotFound { .. } => {
            Error::new(ErrorKind::Gone, "a file that was listed is gone").with("file", name)
        }
        other => store_error(other, &name),
    }
}

type Decoded = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

fn json(content: &Bytes, schema: &SchemaRef) -> Decoded {
    let reader = arrow_json::ReaderBuilder::new(exact::as_text(schema))
        .with_batch_size(BATCH_ROWS)
        .with_coerce_primitive(true)
        .build(Cursor::new(content.clone()));
    let schema = Arc::clone(schema);
    match reader {
        Ok(reader) => Box::new(reader.map(move |batch| exact::from_text(&batch?, &schema))),
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}

fn csv(content: &Bytes, options: &FileOptions, schema: &SchemaRef) -> Decoded {
    match csv_builder(options, schema) {
        Ok(builder) => match builder.with_batch_size(BATCH_ROWS).build(Cursor::new(content.clone())) {
            Ok(reader) => Box::new(reader),
            Err(error) => Box::new(std::iter::once(Err(error))),
        },
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}

fn csv_builder(options: &FileOptions, schema: &SchemaRef) -> Result<arrow_csv::ReaderBuilder, ArrowError> {
    let mut builder = arrow_csv::ReaderBuilder::new(Arc::clone(schema))
        .with_header(options.header)
        .with_delimiter(options.delimiter)
        .with_quote(options.quote);
    if let Some(null) = &options.null_value {
        let pattern = format!("^({})?$", regex_escape(null));
        let regex = regex::Regex::new(&pattern).map_err(|e| ArrowError::ParseError(e.to_string()))?;
        builder = builder.with_null_regex(regex);
    }
    Ok(builder)
}

/// Columns are taken in the order of the schema: a header in another order must not shift values silently.
fn check_header(options: &FileOptions, schema: &SchemaRef, content: &Bytes, name: &str) -> Result<()> {
    if !options.header || content.is_empty() {
        return Ok(());
    }
    let first = content.split(|&b| b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(first);
    let quote = char::from(options.quote);
    let parts = line.trim_end_matches('\r').split(char::from(options.delimiter));
    let found: Vec<&str> = parts.map(|n| n.trim().trim_matches(quote)).collect();
    let expected: Vec<&str> = schema.fields().iter().map(|f| f.name().trim()).collect();
    if found == expected {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Data,
        "the header of a file does not have the columns of the schema, in their order",
    )
    .with("file", name)
    .with("header", found.join(", "))
    .with("schema", expected.join(", ")))
}

fn regex_escape(text: &str) -> String {
    let special = |c: char| !c.is_alphanumeric() && c.is_ascii();
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Finds the lines that can't be decoded, one by one.
fn explain(
    content: &Bytes,
    name: &str,
    options: &FileOptions,
    schema: &SchemaRef,
    error: &ArrowError,
) -> Error {
    let header = options.format == FileFormat::Csv && options.header;
    let line_options = FileOptions { header: false, ..options.clone() };
    let mut bad = 0_usize;
    let mut first: Option<(usize, String, String)> = None;
    for (i, line) in content.split(|&b| b == b'\n').enumerate() {
        if line.trim_ascii().is_empty() || (header && i == 0) {
            continue;
        }
        let line_bytes = Bytes::copy_from_slice(line);
        let mut decoded = match options.format {
            FileFormat::Json => json(&line_bytes, schema),
            _ => csv(&line_bytes, &line_options, schema),
        };
        if let Some(error) = decoded.find_map(Result::err) {
            bad += 1;
            if first.is_none() {
                let text: String = String::from_utf8_lossy(line).chars().take(SAMPLE).collect();
                first = Some((i + 1, text, plain(&error)));
            }
        }
    }
    match first {
        Some((line, sample, why)) => Error::new(ErrorKind::Data, format!("a line can't be read: {why}"))
            .with("file", name)
            .with("line", line)
            .with("bad lines", bad)
            .with("sample", sample)
            .help("mend or remove the file and run again: nothing of its batch was written"),
        None => Error::new(ErrorKind::Data, format!("the file can't be read: {}", plain(error)))
            .with("file", name),
    }
}

fn plain(error: &ArrowError) -> String {
    let text = error.to_string();
    ["Json error: ", "Csv error: ", "Parser error: "]
        .iter()
        .fold(text, |text, prefix| text.strip_prefix(prefix).map_or_else(|| text.clone(), str::to_owned))
}

async fn parquet(
    store: &Arc<dyn ObjectStore>,
    path: Path,
    name: &str,
    schema: &SchemaRef,
) -> Result<SourceStream> {
    let meta = store.head(&path).await.map_err(|e| gone(e, name))?;
    let unreadable = |name: &str, error: parquet::errors::ParquetError| {
        Error::new(ErrorKind::Data, format!("the file is no readable Parquet: {error}"))
            .with("file", name)
            .help("mend or remove the file and run again: nothing of its batch was written")
    };
    let reader = Input::new(Arc::clone(store), path, meta.size);
    let builder = ParquetRecordBatchStreamBuilder::new(reader).await.map_err(|e| unreadable(name, e))?;
    let stream = builder.with_batch_size(BATCH_ROWS).build().map_err(|e| unreadable(name, e))?;
    let (name, schema) = (name.to_owned(), Arc::clone(schema));
    Ok(stream
        .map_err({
            let name = name.clone();
            move |e| unreadable(&name, e)
        })
        .and_then(move |batch| {
            let fitted = fit(&batch, &schema, &name);
            async move { fitted }
        })
        .boxed())
}

/// Brings a Parquet batch to the source's schema: by name, missing columns are NULL, lossless casts only.
fn fit(batch: &RecordBatch, schema: &SchemaRef, name: &str) -> Result<RecordBatch> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            None => Ok(arrow_array::new_null_array(field.data_type(), batch.num_rows())),
            Some(column) if crate::types::is_lossless(column.data_type(), field.data_type()) => {
                crate::types::cast_exactly(column, field).map_err(|error| error.with("file", name))
            }
            Some(column) => Err(Error::new(ErrorKind::Data, "a column has another type than before")
                .with("file", name)
                .with("column", field.name())
                .with("type", column.data_type())
                .with("expected", field.data_type())),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
