//! Bloom filters: which of some values a row group may hold at all.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, cast::AsArray, types};
use arrow_schema::{DataType, TimeUnit};
use parquet::{basic::Type as Physical, bloom_filter::Sbbf, file::metadata::ColumnChunkMetaData};

/// A filter of more bytes is not read.
const MOST_BYTES: u64 = 16 << 20;

/// Where a column's filter lies in a file of so many bytes; `None` when there is none that can be relied on.
pub(super) fn place(column: &ColumnChunkMetaData, file: u64) -> Option<Range<u64>> {
    let offset = u64::try_from(column.bloom_filter_offset()?).ok()?;
    let length = u64::try_from(column.bloom_filter_length()?).ok()?;
    let end = offset.checked_add(length)?;
    (length > 0 && length <= MOST_BYTES && end <= file).then_some(offset..end)
}

/// The filter in these bytes; `None` when it can't be read: then it spares nothing.
pub(super) fn read(bytes: &[u8]) -> Option<Sbbf> {
    Sbbf::from_bytes(bytes).ok().filter(|filter| filter.num_blocks() > 0)
}

/// True for types whose values [`probe`] finds in a filter: those that are written as they are filtered.
#[expect(clippy::wildcard_enum_match_arm, reason = "other types are simply not filtered")]
pub(super) fn is_probed(data_type: &DataType) -> bool {
    match data_type {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Date32
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::FixedSizeBinary(_) => true,
        DataType::Timestamp(unit, _) => *unit != TimeUnit::Second,
        _ => false,
    }
}

/// For each value, none of them NULL, whether the filter may hold it. `None` for other types than those of
/// [`is_probed`], and for files that hold them otherwise.
pub(super) fn probe(filter: &Sbbf, values: &ArrayRef, physical: Physical) -> Option<Vec<bool>> {
    macro_rules! int {
        ($t:ty, $as:ty) => {
            values.as_primitive::<$t>().values().iter().map(|v| filter.check(&<$as>::from(*v))).collect()
        };
    }
    macro_rules! bytes {
        ($array:expr) => {
            (0..values.len()).map(|i| filter.check::<[u8]>($array.value(i).as_ref())).collect()
        };
    }
    Some(match (values.data_type(), physical) {
        (DataType::Int8, Physical::INT32) => int!(types::Int8Type, i32),
        (DataType::Int16, Physical::INT32) => int!(types::Int16Type, i32),
        (DataType::Int32, Physical::INT32) => int!(types::Int32Type, i32),
        (DataType::Date32, Physical::INT32) => int!(types::Date32Type, i32),
        (DataType::Int64, Physical::INT64) => int!(types::Int64Type, i64),
        (DataType::Timestamp(TimeUnit::Millisecond, _), Physical::INT64) => {
            int!(types::TimestampMillisecondType, i64)
        }
        (DataType::Timestamp(TimeUnit::Microsecond, _), Physical::INT64) => {
            int!(types::TimestampMicrosecondType, i64)
        }
        (DataType::Timestamp(TimeUnit::Nanosecond, _), Physical::INT64) => {
            int!(types::TimestampNanosecondType, i64)
        }
        (DataType::Utf8, Physical::BYTE_ARRAY) => bytes!(values.as_string::<i32>()),
        (DataType::LargeUtf8, Physical::BYTE_ARRAY) => bytes!(values.as_string::<i64>()),
        (DataType::Binary, Physical::BYTE_ARRAY) => bytes!(values.as_binary::<i32>()),
        (DataType::LargeBinary, Physical::BYTE_ARRAY) => bytes!(values.as_binary::<i64>()),
        (DataType::FixedSizeBinary(_), Physical::FIXED_LEN_BYTE_ARRAY) => {
            bytes!(values.as_fixed_size_binary())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int16Array, Int64Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn a_filter_knows_what_it_was_given() {
        let columns: [(ArrayRef, Physical); 4] = [
            (Arc::new(Int16Array::from(vec![1, -1])), Physical::INT32),
            (Arc::new(Int64Array::from(vec![1, -1])), Physical::INT64),
            (Arc::new(StringArray::from(vec!["a", "ü"])), Physical::BYTE_ARRAY),
            (Arc::new(TimestampMicrosecondArray::from(vec![1, 2])), Physical::INT64),
        ];
        for (values, physical) in columns {
            assert!(is_probed(values.data_type()));
            let empty = Sbbf::new_with_num_of_bytes(1 << 10);
            assert_eq!(probe(&empty, &values, physical), Some(vec![false, false]));
            assert_eq!(probe(&empty, &values, Physical::BOOLEAN), None);
        }
        let mut filter = Sbbf::new_with_num_of_bytes(1 << 10);
        filter.insert("ü");
        let values: ArrayRef = Arc::new(StringArray::from(vec!["a", "ü"]));
        assert_eq!(probe(&filter, &values, Physical::BYTE_ARRAY), Some(vec![false, true]));
    }

    #[test]
    fn damaged_filters_spare_nothing() {
        for bytes in [&[][..], &[0], &[21, 0, 28, 28, 0, 28], &[0xff; 64]] {
            assert!(read(bytes).is_none(), "{bytes:?}");
        }
    }
}
