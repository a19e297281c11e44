//! Which rows have the same key?
//!
//! [`KeyIndex`] numbers the distinct keys of some rows in the order of their first appearance, and finds other rows
//! under those numbers. Equality is that of canonical values: NULL equals NULL, one NaN, -0.0 is 0.0, decimals at their
//! column's scale, timestamps as instants, strings byte by byte.

use std::hash::BuildHasher;

use arrow_array::{
    Array, ArrayRef, PrimitiveArray, StringArray, UInt32Array, cast::AsArray, downcast_primitive_array,
    types::ArrowPrimitiveType,
};
use arrow_buffer::{NullBuffer, ToByteSlice};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::canonical::{Role, canonical};

/// Number for a row whose key is not in the index.
pub const UNKNOWN: u32 = u32::MAX;

/// The distinct keys of some rows, numbered from 0 in order of first appearance.
pub struct KeyIndex {
    types: Vec<DataType>,
    converter: Option<RowConverter>,
    encoded: Encoded,
    table: HashTable<u32>,
    firsts: Vec<u32>,
    groups: Vec<u32>,
}

impl std::fmt::Debug for KeyIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyIndex").field("keys", &self.firsts.len()).finish_non_exhaustive()
    }
}

impl KeyIndex {
    /// Indexes rows by their key columns: arrays of one length, in the order of the key.
    ///
    /// # Errors
    /// An Arrow error for a type that has no row encoding, or for no column at all.
    pub fn new(columns: &[ArrayRef]) -> Result<Self, ArrowError> {
        let types: Vec<DataType> = columns.iter().map(|c| c.data_type().clone()).collect();
        let converter = match types.as_slice() {
            [] => return Err(ArrowError::InvalidArgumentError("a key needs a column".to_owned())),
            [DataType::Utf8] => None,
            [one] if is_word(one) => None,
            several => Some(RowConverter::new(several.iter().cloned().map(SortField::new).collect())?),
        };
        let encoded = encode(converter.as_ref(), columns)?;
        let mut index = Self {
            types,
            converter,
            encoded,
            table: HashTable::new(),
            firsts: Vec::new(),
            groups: Vec::new(),
        };
        index.number_rows();
        Ok(index)
    }

    fn number_rows(&mut self) {
        let Self { encoded, table, firsts, groups, .. } = self;
        let hasher = FixedState::default();
        groups.reserve(encoded.len());
        firsts.reserve(encoded.len());
        for row in 0..encoded.len() {
            let hash = encoded.hash(row, &hasher);
            let known =
                table.find(hash, |&group| encoded.same(first_of(firsts, group), encoded, row)).copied();
            let group = known.unwrap_or_else(|| {
                let group = super::row_number(firsts.len());
                firsts.push(super::row_number(row));
                table.insert_unique(hash, group, |&other| encoded.hash(first_of(firsts, other), &hasher));
                group
            });
            groups.push(group);
        }
    }

    /// Number of distinct keys.
    pub fn len(&self) -> usize {
        self.firsts.len()
    }

    /// True when there is no key.
    pub fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// The key number of each indexed row.
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// The first row of each key, in the order of the key numbers.
    pub fn first_rows(&self) -> UInt32Array {
        UInt32Array::from(self.firsts.clone())
    }

    /// The first row of a key.
    pub fn first_row(&self, group: u32) -> usize {
        first_of(&self.firsts, group)
    }

    /// The key number of each row of other key columns of the same types; [`UNKNOWN`] where the key is not indexed.
    ///
    /// # Errors
    /// An Arrow error for columns of other types.
    pub fn probe(&self, columns: &[ArrayRef]) -> Result<Vec<u32>, ArrowError> {
        if !columns.iter().map(Array::data_type).eq(self.types.iter()) {
            return Err(ArrowError::InvalidArgumentError("key columns of other types".to_owned()));
        }
        let canonical =
            columns.iter().map(|c| canonical(c, Role::Identity)).collect::<Result<Vec<_>, _>>()?;
        let encoded = encode(self.converter.as_ref(), &canonical)?;
        let hasher = FixedState::default();
        let find = |row| {
            let hash = encoded.hash(row, &hasher);
            self.table.find(hash, |&group| self.encoded.same(first_of(&self.firsts, group), &encoded, row))
        };
        Ok((0..encoded.len()).map(|row| find(row).copied().unwrap_or(UNKNOWN)).collect())
    }
}

/// True for types whose values fit a word and are equal when their bits are.
fn is_word(data_type: &DataType) -> bool {
    data_type.is_integer() || (data_type.is_temporal() && !matches!(data_type, DataType::Interval(_)))
}

fn first_of(firsts: &[u32], group: u32) -> usize {
    firsts.get(group as usize).map_or(0, |&row| row as usize)
}

/// Key columns in a form that hashes and compares fast.
enum Encoded {
    /// One integer or temporal column.
    Bits(Vec<u64>, Option<NullBuffer>),
    /// One string column.
    Text(StringArray),
    /// Anything else.
    Rows(Rows),
}

fn encode(converter: Option<&RowConverter>, columns: &[ArrayRef]) -> Result<Encoded, ArrowError> {
    if let Some(converter) = converter {
        let mut rows = converter.empty_rows(columns.first().map_or(0, Array::len), 0);
        converter.append(&mut rows, columns)?;
        return Ok(Encoded::Rows(rows));
    }
    match columns {
        [text] if text.data_type() == &DataType::Utf8 => Ok(Encoded::Text(text.as_string::<i32>().clone())),
        [number] => bits(number),
        _ => Err(ArrowError::InvalidArgumentError("a composite key needs a row encoding".to_owned())),
    }
}

/// The values of an integer or temporal column as words; narrower values are extended, wider ones don't occur.
fn bits(array: &ArrayRef) -> Result<Encoded, ArrowError> {
    fn words<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Vec<u64> {
        let word = |value: &T::Native| {
            let mut bytes = [0_u8; 8];
            for (to, from) in bytes.iter_mut().zip(value.to_byte_slice()) {
                *to = *from;
            }
            u64::from_le_bytes(bytes)
        };
        array.values().iter().map(word).collect()
    }
    let nulls = array.nulls().cloned();
    let values = downcast_primitive_array!(
        array => words(array),
        other => return Err(ArrowError::InvalidArgumentError(format!("{other} is no integer key"))),
    );
    Ok(Encoded::Bits(values, nulls))
}

impl Encoded {
    fn len(&self) -> usize {
        match self {
            Self::Bits(values, _) => values.len(),
            Self::Text(values) => values.len(),
            Self::Rows(rows) => rows.num_rows(),
        }
    }

    fn hash(&self, row: usize, hasher: &FixedState) -> u64 {
        match self {
            Self::Bits(values, _) => hasher.hash_one(values.get(row).copied().unwrap_or_default()),
            Self::Text(values) => hasher.hash_one(values.value(row)),
            Self::Rows(rows) => hasher.hash_one(rows.row(row).as_ref()),
        }
    }

    fn same(&self, row: usize, other: &Self, other_row: usize) -> bool {
        match (self, other) {
            (Self::Bits(a, a_nulls), Self::Bits(b, b_nulls)) => {
                let null = |nulls: &Option<NullBuffer>, i| nulls.as_ref().is_some_and(|n| n.is_null(i));
                match (null(a_nulls, row), null(b_nulls, other_row)) {
                    (false, false) => a.get(row) == b.get(other_row),
                    (a_null, b_null) => a_null && b_null,
                }
            }
            (Self::Text(a), Self::Text(b)) => {
                a.is_null(row) == b.is_null(other_row) && a.value(row) == b.value(other_row)
            }
            (Self::Rows(a), Self::Rows(b)) => a.row(row) == b.row(other_row),
            _ => false,
        }
    }
}
