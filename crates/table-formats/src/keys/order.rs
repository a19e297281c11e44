//! Keys of many rows in a form that compares fast.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef, StringArray, cast::AsArray, types};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, TimeUnit};

use crate::contract::Result;

/// Turns key columns into [`KeyRows`]; only rows of one codec compare with each other.
#[derive(Debug)]
pub(crate) struct KeyCodec {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Int,
    Str,
    Rows(RowConverter),
}

/// The keys of some rows.
#[derive(Debug)]
pub(crate) enum KeyRows {
    /// One integer-like column, mapped to `i64` in order.
    Int(ScalarBuffer<i64>, Option<NullBuffer>),
    /// One string column.
    Str(StringArray),
    /// Any columns.
    Rows(arrow_row::Rows),
}

impl KeyCodec {
    /// A codec for columns of these types.
    pub(crate) fn new(types: &[DataType]) -> Result<Self> {
        let kind = match types {
            [DataType::Utf8] => Kind::Str,
            [one] if is_int(one) => Kind::Int,
            many => Kind::Rows(RowConverter::new(many.iter().cloned().map(SortField::new).collect())?),
        };
        Ok(Self { kind })
    }

    /// The keys in these columns.
    pub(crate) fn encode(&self, columns: &[ArrayRef]) -> Result<KeyRows> {
        Ok(match (&self.kind, columns) {
            (Kind::Int, [column]) => KeyRows::Int(ints(column), column.nulls().cloned()),
            (Kind::Str, [column]) => KeyRows::Str(column.as_string::<i32>().clone()),
            (Kind::Rows(converter), columns) => KeyRows::Rows(converter.convert_columns(columns)?),
            (Kind::Int | Kind::Str, _) => return Err(mismatch()),
        })
    }
}

fn mismatch() -> crate::Error {
    crate::Error::new(crate::ErrorKind::Internal, "the number of key columns changed")
}

impl KeyRows {
    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Int(values, _) => values.len(),
            Self::Str(values) => values.len(),
            Self::Rows(rows) => rows.num_rows(),
        }
    }

    /// Order of one of these keys and one of others; NULL comes first.
    pub(crate) fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        match (self, other) {
            (Self::Int(a, an), Self::Int(b, bn)) => {
                let (a_null, b_null) = (is_null(an.as_ref(), i), is_null(bn.as_ref(), j));
                if a_null || b_null { b_null.cmp(&a_null) } else { a[i].cmp(&b[j]) }
            }
            (Self::Str(a), Self::Str(b)) => {
                let (a_null, b_null) = (a.is_null(i), b.is_null(j));
                if a_null || b_null { b_null.cmp(&a_null) } else { a.value(i).cmp(b.value(j)) }
            }
            (Self::Rows(a), Self::Rows(b)) => a.row(i).cmp(&b.row(j)),
            // Keys of different codecs never meet.
            (Self::Int(..) | Self::Str(_) | Self::Rows(_), _) => Ordering::Equal,
        }
    }

    /// Indices in key order.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        let mut indices: Vec<u32> = (0..u32::try_from(self.len()).unwrap_or(u32::MAX)).collect();
        if let Self::Int(values, None) = self {
            indices.sort_by_key(|i| values[*i as usize]);
        } else {
            indices.sort_by(|a, b| self.compare(*a as usize, self, *b as usize));
        }
        indices
    }

    /// True when each key is at or after the one before it.
    pub(crate) fn is_sorted(&self) -> bool {
        (1..self.len()).all(|i| self.compare(i - 1, self, i) != Ordering::Greater)
    }

    /// The first index from `from` on whose key is not `before` the given one, in keys that are sorted.
    pub(crate) fn first_not(&self, from: usize, before: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (from, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

fn is_null(nulls: Option<&NullBuffer>, i: usize) -> bool {
    nulls.is_some_and(|n| n.is_null(i))
}

fn is_int(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Date32
                | DataType::Date64
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(_, _)
        )
}

/// Values of an integer-like column as `i64`, in the same order.
#[expect(clippy::wildcard_enum_match_arm, reason = "the codec takes no other types here")]
fn ints(column: &ArrayRef) -> ScalarBuffer<i64> {
    macro_rules! widened {
        ($t:ty) => {
            column.as_primitive::<$t>().values().iter().map(|v| i64::from(*v)).collect()
        };
    }
    match column.data_type() {
        DataType::Int8 => widened!(types::Int8Type),
        DataType::Int16 => widened!(types::Int16Type),
        DataType::Int32 => widened!(types::Int32Type),
        DataType::UInt8 => widened!(types::UInt8Type),
        DataType::UInt16 => widened!(types::UInt16Type),
        DataType::UInt32 => widened!(types::UInt32Type),
        DataType::Date32 => widened!(types::Date32Type),
        DataType::Time32(TimeUnit::Second) => widened!(types::Time32SecondType),
        DataType::Time32(_) => widened!(types::Time32MillisecondType),
        DataType::UInt64 => {
            let flip = |v: &u64| (v ^ (1 << 63)).cast_signed();
            column.as_primitive::<types::UInt64Type>().values().iter().map(flip).collect()
        }
        DataType::Date64 => column.as_primitive::<types::Date64Type>().values().clone(),
        DataType::Time64(TimeUnit::Nanosecond) => {
            column.as_primitive::<types::Time64NanosecondType>().values().clone()
        }
        DataType::Time64(_) => column.as_primitive::<types::Time64MicrosecondType>().values().clone(),
        DataType::Timestamp(TimeUnit::Second, _) => {
            column.as_primitive::<types::TimestampSecondType>().values().clone()
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            column.as_primitive::<types::TimestampMillisecondType>().values().clone()
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<types::TimestampMicrosecondType>().values().clone()
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            column.as_primitive::<types::TimestampNanosecondType>().values().clone()
        }
        _ => column.as_primitive::<types::Int64Type>().values().clone(),
    }
}
