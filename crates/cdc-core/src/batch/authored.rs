//! Which leaves of its row does each upsert set?

use std::collections::BTreeMap;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, cast::AsArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_cast::cast;
use arrow_schema::DataType;

use super::ChangeInput;
use crate::{
    columnar::{leaves::Leaves, print},
    error::CdcError,
    spec::{CdcSpec, Partial},
};

/// Per leaf, the rows that set it; `None` when every row sets all of them. `rows` are the kept columns.
pub(super) fn authored(
    spec: &CdcSpec,
    input: &ChangeInput<'_>,
    rows: &RecordBatch,
    upserts: &BooleanBuffer,
) -> Result<Option<Vec<BooleanBuffer>>, CdcError> {
    if !spec.is_partial() {
        return Ok(None);
    }
    let leaves = spec.leaves();
    let all = BooleanBuffer::new_set(rows.num_rows());
    let none = BooleanBuffer::new_unset(rows.num_rows());
    let mut set = vec![all; leaves.len()];
    let partial = spec.partial.as_ref();
    let listed = partial.and_then(|partial| partial.mask.as_deref()).map(|column| Lists {
        column,
        spec,
        input,
        upserts,
    });
    let listed = listed.map(|lists| lists.read()).transpose()?;
    let columns = spec.payload_by_name.iter().map(|&at| ArrayRef::clone(rows.column(at))).collect::<Vec<_>>();
    let values = leaves.split(&columns)?;
    for (column, &at) in spec.payload_by_name.iter().enumerate() {
        let name = rows.schema_ref().field(at).name().clone();
        let mut column_set = BooleanBuffer::new_set(rows.num_rows());
        if let Some(listed) = listed.as_ref().and_then(|listed| listed.get(&name)) {
            column_set = &column_set & listed;
        }
        let null_is_unset = partial.is_some_and(|Partial { ignored, .. }| ignored.contains(&at));
        for leaf in leaves.of_column(column) {
            let Some(slot) = set.get_mut(leaf) else { continue };
            let nulls = values.get(leaf).and_then(Array::logical_nulls);
            *slot = match nulls {
                Some(nulls) if null_is_unset => &column_set & nulls.inner(),
                _ => column_set.clone(),
            };
        }
    }
    for leaf in spec.unset_leaves(&leaves) {
        if let Some(slot) = set.get_mut(leaf) {
            *slot = none.clone();
        }
    }
    for (name, mask) in input.authored {
        let mask = true_bits(mask);
        for leaf in spec.masked(&leaves, name)? {
            if let Some(slot) = set.get_mut(leaf) {
                *slot = &*slot & &mask;
            }
        }
    }
    settle_presence(&leaves, &values, &mut set, rows.num_rows());
    Ok(Some(set))
}

impl CdcSpec {
    /// The leaves that no event sets: those of absent columns, and of fields that the source's structs lack.
    pub(crate) fn unset_leaves(&self, leaves: &Leaves) -> Vec<usize> {
        let absent = self.payload_by_name.iter().enumerate().filter(|(_, at)| **at >= self.present);
        let columns = absent.flat_map(|(column, _)| leaves.of_column(column));
        columns.chain(self.absent_leaves.iter().flat_map(|name| leaves.named_alone(name))).collect()
    }

    /// The leaves that a mask speaks of: a column, or one leaf of a struct.
    fn masked(&self, leaves: &Leaves, name: &str) -> Result<Vec<usize>, CdcError> {
        let names = self.payload_by_name.iter().filter_map(|&at| self.kept.fields().get(at));
        let column = names.clone().position(|field| field.name() == name);
        let found = column.map_or_else(|| leaves.named(name), |column| leaves.of_column(column).collect());
        if found.is_empty() || self.partial.is_none() {
            return Err(CdcError::SchemaMismatch {
                what: "a mask of set columns",
                expected: match self.partial {
                    None => "no mask, as the options do not allow any".to_owned(),
                    Some(_) => names.map(|field| field.name().as_str()).collect::<Vec<_>>().join(", "),
                },
                found: name.to_owned(),
            });
        }
        Ok(found)
    }
}

/// A struct is set where some leaf within it is.
fn settle_presence(leaves: &Leaves, values: &[ArrayRef], set: &mut [BooleanBuffer], rows: usize) {
    for (presence, within) in leaves.structs().iter().cloned() {
        if within.is_empty() {
            continue;
        }
        let some = set
            .get(within.clone())
            .into_iter()
            .flatten()
            .fold(BooleanBuffer::new_unset(rows), |some, leaf| &some | leaf);
        // An event that makes a struct NULL sets all within it: nothing is inherited under a NULL.
        let makes_null = values.get(presence).map(|there| &some & &!there.as_boolean().values());
        let within = set.get_mut(within).into_iter().flatten();
        for (leaf, makes_null) in within.zip(std::iter::repeat(&makes_null)) {
            if let Some(makes_null) = makes_null {
                *leaf = &*leaf | makes_null;
            }
        }
        if let Some(slot) = set.get_mut(presence) {
            *slot = some;
        }
    }
}

/// Where a flag is TRUE.
pub(super) fn true_bits(flags: &BooleanArray) -> BooleanBuffer {
    flags.nulls().map_or_else(|| flags.values().clone(), |nulls| flags.values() & nulls.inner())
}

/// The lists of `COLUMNS TO UPDATE`.
struct Lists<'a> {
    column: &'a str,
    spec: &'a CdcSpec,
    input: &'a ChangeInput<'a>,
    upserts: &'a BooleanBuffer,
}

impl Lists<'_> {
    /// Per column, the rows that list it; a NULL list lists every column.
    fn read(&self) -> Result<BTreeMap<String, BooleanBuffer>, CdcError> {
        let source = self.input.source;
        let mismatch = |found: String| CdcError::SchemaMismatch {
            what: "source",
            expected: format!("column `{}` as a list of strings", self.column),
            found,
        };
        let column =
            source.column_by_name(self.column).ok_or_else(|| mismatch("no such column".to_owned()))?;
        let texts = DataType::new_list(DataType::Utf8, true);
        let lists = cast(column, &texts).map_err(|_| mismatch(format!("type {}", column.data_type())))?;
        let lists = lists.as_list::<i32>();
        let columns = self.columns();
        let rows = source.num_rows();
        let mut set: BTreeMap<String, BooleanBufferBuilder> = BTreeMap::new();
        for name in &columns {
            let mut bits = BooleanBufferBuilder::new(rows);
            bits.append_n(rows, false);
            set.insert(name.clone(), bits);
        }
        let mut wrong: Option<(String, usize, usize)> = None;
        for row in 0..rows {
            if !self.upserts.value(row) {
                continue;
            }
            if lists.is_null(row) {
                for bits in set.values_mut() {
                    bits.set_bit(row, true);
                }
                continue;
            }
            let list = lists.value(row);
            let mut fits = true;
            for name in list.as_string::<i32>() {
                let name = name.unwrap_or("NULL");
                match resolve(&columns, name).and_then(|name| set.get_mut(name)) {
                    Some(bits) => bits.set_bit(row, true),
                    None if fits => {
                        fits = false;
                        let (.., count) = wrong.get_or_insert_with(|| (name.to_owned(), row, 0));
                        *count = count.saturating_add(1);
                    }
                    None => {}
                }
            }
        }
        match wrong {
            None => Ok(set.into_iter().map(|(name, mut bits)| (name, bits.finish())).collect()),
            Some((listed, row, count)) => Err(CdcError::ColumnsToUpdateInvalid {
                mask: self.column.to_owned(),
                listed,
                count,
                rows,
                row,
                sample: print::row(source, row),
                available: columns,
            }),
        }
    }

    /// Names that a record may list.
    fn columns(&self) -> Vec<String> {
        let spec = self.spec;
        let present = spec.payload_by_name.iter().filter(|&&at| at < spec.present);
        present.filter_map(|&at| spec.kept.fields().get(at)).map(|field| field.name().clone()).collect()
    }
}

/// The column of this name: the exact one first, else the only one that differs in case alone.
fn resolve<'a>(columns: &'a [String], name: &str) -> Option<&'a String> {
    if let Some(exact) = columns.iter().find(|column| *column == name) {
        return Some(exact);
    }
    let folded = name.to_lowercase();
    let mut fits = columns.iter().filter(|column| column.to_lowercase() == folded);
    let only = fits.next()?;
    fits.next().is_none().then_some(only)
}
