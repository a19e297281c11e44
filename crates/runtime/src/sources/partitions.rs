//! Which columns do the folders of a file give its rows?
//!
//! `year=2024/month=05/` gives two. Their values are text whose type is that of the column; the path's value counts where
//! the records have a field of the name too, as in Spark.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::scalar::ScalarValue;

use super::{
    columns::{Columns, Look, Misfit, Rest},
    kinds::Kind,
    scalars::{self, Formats},
};
use crate::{
    error::{Error, ErrorKind, Result},
    state::decoded,
};

/// What a folder of rows without a value is called.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// A column that a folder names, and its value.
type Named = (String, Option<String>);

/// The columns that the folders of a path name, from the outermost in.
pub(super) fn of_path(path: &str) -> impl Iterator<Item = Named> {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/').filter_map(|folder| {
        let (name, value) = folder.split_once('=')?;
        let value = decoded(value);
        (!name.is_empty()).then(|| (decoded(name), (value != NO_VALUE && !value.is_empty()).then_some(value)))
    })
}

/// The columns that the folders of all paths name, with the type that holds their values.
pub(super) fn infer<'p>(paths: impl Iterator<Item = &'p str>, typed: bool) -> Vec<FieldRef> {
    let mut known: Vec<(String, Option<DataType>)> = Vec::new();
    let mut folders = "";
    for path in paths {
        // Files of one folder say the same.
        let own = path.rsplit_once('/').map_or("", |(folders, _)| folders);
        if own == folders {
            continue;
        }
        folders = own;
        for (name, value) in of_path(path) {
            let found = value.as_deref().map(|value| if typed { type_of(value) } else { DataType::Utf8 });
            match known.iter_mut().find(|(own, _)| *own == name) {
                None => known.push((name, found)),
                Some((_, known)) => *known = common(known.take(), found),
            }
        }
    }
    known
        .into_iter()
        .map(|(name, found)| Arc::new(Field::new(name, found.unwrap_or(DataType::Utf8), true)))
        .collect()
}

fn type_of(value: &str) -> DataType {
    if scalars::integer::<i32>(value).is_ok() && is_whole(value) {
        DataType::Int32
    } else if scalars::integer::<i64>(value).is_ok() && is_whole(value) {
        DataType::Int64
    } else if Kind::of_text(value, &Formats::default()) == Kind::Date {
        DataType::Date32
    } else {
        DataType::Utf8
    }
}

fn is_whole(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

fn common(a: Option<DataType>, b: Option<DataType>) -> Option<DataType> {
    use DataType::{Int32, Int64};
    match (a, b) {
        (None, one) | (one, None) => one,
        (Some(a), Some(b)) if a == b => Some(a),
        (Some(Int32 | Int64), Some(Int32 | Int64)) => Some(Int64),
        _ => Some(DataType::Utf8),
    }
}

/// The values that the folders of one file give its rows.
#[derive(Debug, Clone)]
pub(super) struct Constants(Vec<(FieldRef, ScalarValue)>);

impl Constants {
    /// The values of `columns`, which `named` may name.
    ///
    /// # Errors
    /// `Data` for a value that does not fit its column.
    pub(super) fn new(columns: Vec<FieldRef>, named: &[Named], file: &str) -> Result<Self> {
        let mut values = Vec::with_capacity(columns.len());
        for column in columns {
            let text = named.iter().rev().find(|(name, _)| name == column.name());
            let text = text.and_then(|(_, value)| value.as_deref());
            let mut rest = Rest::default();
            let mut builder = Columns::new(&vec![Arc::clone(&column)].into())?;
            builder.append_texts(std::iter::once((0, text)), &Look::default(), &mut rest);
            if let Some(Misfit::Mismatch { column, value, why }) = rest.misfits.into_iter().next() {
                return Err(Error::new(
                    ErrorKind::Data,
                    format!("the folder of a file does not fit a column: {why}"),
                )
                .with("column", column)
                .with("value", value)
                .with("file", file)
                .help("declare the column as STRING, or move the file"));
            }
            let array = builder.finish()?.pop();
            let array = array.unwrap_or_else(|| new_null_array(column.data_type(), 1));
            values.push((column, ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(Self(values))
    }

    /// Names of the columns.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(field, _)| field.name().as_str())
    }

    /// Adds a column of one value.
    pub(super) fn push(&mut self, field: FieldRef, value: ScalarValue) {
        self.0.push((field, value));
    }

    /// The rows with these columns beside their own.
    pub(super) fn beside(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if self.0.is_empty() {
            return Ok(batch.clone());
        }
        let mut fields: Vec<FieldRef> = batch.schema_ref().fields().iter().cloned().collect();
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        for (field, value) in &self.0 {
            let column = value.to_array_of_size(batch.num_rows())?;
            fields.push(Arc::new(Field::new(field.name(), column.data_type().clone(), true)));
            columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str) -> Vec<Named> {
        of_path(path).collect()
    }

    #[test]
    fn r19_folders_name_columns() {
        let some = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(
            named("year=2024/x/city=S%C3%A3o%20Paulo/f=1.json"),
            [some("year", "2024"), some("city", "São Paulo")]
        );
        assert_eq!(
            named("a=__HIVE_DEFAULT_PARTITION__/b=/c=x=y/f"),
            [("a".to_owned(), None), ("b".to_owned(), None), some("c", "x=y")]
        );
        assert!(named("=1/f").is_empty() && named("f=1").is_empty());
        assert_eq!(decoded("100%25%zz%"), "100%%zz%");
    }

    #[test]
    fn r19_their_types_hold_all_values() {
        let paths = ["n=1/d=2024-01-31/s=a/z=05/f", "n=3000000000/d=__HIVE_DEFAULT_PARTITION__/s=1/z=x/f"];
        let types: Vec<_> = infer(paths.into_iter(), true).iter().map(|f| f.data_type().clone()).collect();
        assert_eq!(types, [DataType::Int64, DataType::Date32, DataType::Utf8, DataType::Utf8]);
        assert!(infer(paths.into_iter(), false).iter().all(|f| f.data_type() == &DataType::Utf8));
    }
}
