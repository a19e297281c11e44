//! Direct ordinals sort like the values, over all the types that have them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Int8Array, Int64Array, StringArray, UInt64Array};

use super::ordinals;

fn words(array: &ArrayRef) -> Vec<u64> {
    ordinals(&[array]).unwrap().remove(0)
}

#[test]
fn ordinals_sort_like_the_values() {
    let ascending: [ArrayRef; 5] = [
        Arc::new(Int64Array::from(vec![i64::MIN, -1, 0, 1, i64::MAX])),
        Arc::new(Int8Array::from(vec![i8::MIN, -1, 0, 1, i8::MAX])),
        Arc::new(UInt64Array::from(vec![0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX])),
        Arc::new(Date32Array::from(vec![i32::MIN, -1, 0, 1, i32::MAX])),
        Arc::new(StringArray::from(vec!["", "a", "aa", "b", "ä"])),
    ];
    for array in ascending {
        let words = words(&array);
        assert!(words.windows(2).all(|pair| pair[0] < pair[1]), "{array:?}: {words:?}");
    }
}

#[test]
fn ordinals_compare_across_arrays() {
    let (a, b): (ArrayRef, ArrayRef) =
        (Arc::new(StringArray::from(vec!["b", "d"])), Arc::new(StringArray::from(vec!["a", "b", "e"])));
    assert_eq!(ordinals(&[&a, &b]).unwrap(), [vec![1, 2], vec![0, 1, 3]]);
}
