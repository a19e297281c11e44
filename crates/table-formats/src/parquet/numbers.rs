//! Columns of a file by the numbers of their fields, where a table's names have changed meanwhile.
//!
//! A format whose fields have numbers may give a column another name, or a name to another column: a file keeps the names of
//! when it was written. Where that happened, the adapter puts the numbers into the table's schema, and they decide.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{Field, Fields, Schema, SchemaRef};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::contract::Result;

/// What a column is called that the table has no more: no column's name begins so.
const GONE: char = '\0';

/// The columns of a file under the names that a table has for them; `None` where names decide.
pub(super) fn renamed(file: &Schema, table: &Schema) -> Option<SchemaRef> {
    let number = |field: &Field| field.metadata().get(PARQUET_FIELD_ID_META_KEY).cloned();
    let named: BTreeMap<String, &str> =
        table.fields().iter().filter_map(|field| Some((number(field)?, field.name().as_str()))).collect();
    let numbered = file.fields().iter().any(|field| number(field).is_some());
    if named.is_empty() || !numbered {
        return None;
    }
    let rename = |field: &Arc<Field>| {
        let name = number(field).and_then(|number| named.get(&number).copied());
        let name = name.map_or_else(|| format!("{GONE}{}", field.name()), str::to_owned);
        Arc::new(field.as_ref().clone().with_name(name))
    };
    Some(Arc::new(Schema::new(file.fields().iter().map(rename).collect::<Fields>())))
}

/// Rows of some columns of a file, under their new names.
pub(super) fn rename(batch: &RecordBatch, file: &Schema, names: &Schema) -> Result<RecordBatch> {
    let of = batch.schema();
    let rename = |field: &Arc<Field>| {
        let place = file.index_of(field.name())?;
        Ok(Arc::new(field.as_ref().clone().with_name(names.field(place).name())))
    };
    let fields = of.fields().iter().map(rename).collect::<Result<Fields>>()?;
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec())?)
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::*;

    fn schema(fields: &[(&str, Option<i32>)]) -> Schema {
        let field = |(name, number): &(&str, Option<i32>)| {
            let number = number.map(|n| (PARQUET_FIELD_ID_META_KEY.to_owned(), n.to_string()));
            Field::new(*name, DataType::Int64, true).with_metadata(number.into_iter().collect())
        };
        Schema::new(fields.iter().map(field).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_decide_where_both_sides_have_them() {
        let file = schema(&[("a", Some(1)), ("b", Some(2)), ("c", Some(3))]);
        assert_eq!(renamed(&file, &schema(&[("a", None)])), None);
        assert_eq!(renamed(&schema(&[("a", None)]), &file), None);
        // `b` is called `a` now, and the `a` of before is gone.
        let names = renamed(&file, &schema(&[("a", Some(2)), ("c", Some(3)), ("d", Some(4))])).unwrap();
        let names: Vec<_> = names.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["\0a", "a", "c"]);
    }
}
