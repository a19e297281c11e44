//! How are the rows of a query printed?

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::{args::Output, failure::Failure, show::say};

pub(crate) fn print(schema: &SchemaRef, batches: &[RecordBatch], output: Output) -> Result<(), Failure> {
    let failed =
        |e: arrow_schema::ArrowError| Failure::wrong(format!("error: the rows can't be printed: {e}"));
    match output {
        Output::Table => {
            let options = arrow_cast::display::FormatOptions::default().with_null("NULL");
            let empty = RecordBatch::new_empty(SchemaRef::clone(schema));
            let batches = if batches.is_empty() { std::slice::from_ref(&empty) } else { batches };
            let table =
                arrow_cast::pretty::pretty_format_batches_with_options(batches, &options).map_err(failed)?;
            say(&table.to_string());
        }
        Output::Json => {
            let mut writer = arrow_json::WriterBuilder::new()
                .with_explicit_nulls(true)
                .build::<_, arrow_json::writer::LineDelimited>(Vec::new());
            for batch in batches {
                writer.write(batch).map_err(failed)?;
            }
            writer.finish().map_err(failed)?;
            print_bytes(&writer.into_inner());
        }
        Output::Csv => {
            let mut writer = arrow_csv::Writer::new(Vec::new());
            writer.write(&RecordBatch::new_empty(SchemaRef::clone(schema))).map_err(failed)?;
            for batch in batches {
                writer.write(batch).map_err(failed)?;
            }
            print_bytes(&writer.into_inner());
        }
    }
    Ok(())
}

fn print_bytes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\n');
    if !text.is_empty() {
        say(text);
    }
}
