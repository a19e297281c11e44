use arrow_array::{Int64Array, StructArray};

use super::*;

fn fields() -> Vec<FieldRef> {
    let inner = DataType::Struct(vec![Field::new("x", DataType::Int64, true)].into());
    let outer =
        DataType::Struct(vec![Field::new("p", DataType::Int64, true), Field::new("q.r", inner, true)].into());
    vec![Arc::new(Field::new("a", DataType::Int64, true)), Arc::new(Field::new("s", outer, true))]
}

#[test]
fn leaves_are_numbered_depth_first_and_named_by_their_path() {
    let leaves = Leaves::new(&fields());
    assert_eq!(leaves.len(), 5, "a, s, s.p, s.q.r, s.q.r.x");
    assert_eq!(leaves.of_column(1), 1..5);
    assert_eq!(leaves.structs(), [(3, 4..5), (1, 2..5)], "innermost first");
    assert_eq!(leaves.names(|_| true), ["a", "s"]);
    assert_eq!(leaves.names(|leaf| leaf == 2), ["s.p"]);
    assert_eq!(leaves.names(|leaf| leaf == 4), ["s.`q.r`.x"]);
    assert_eq!(leaves.named("s.`q.r`.x"), [1, 3, 4], "what is around a leaf is there");
    assert_eq!(leaves.named("s"), [1, 2, 3, 4]);
    assert_eq!(leaves.named("a"), [0]);
    assert!(leaves.named("t").is_empty());
}

#[test]
fn what_is_split_joins_to_the_same_rows() {
    let leaves = Leaves::new(&fields());
    let ints = |values: &[Option<i64>]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let DataType::Struct(outer) = fields()[1].data_type().clone() else { panic!("a struct") };
    let DataType::Struct(inner) = outer[1].data_type().clone() else { panic!("a struct") };
    let x: ArrayRef = Arc::new(
        StructArray::try_new(
            inner,
            vec![ints(&[Some(1), None, Some(3), Some(4)])],
            Some(vec![true, true, false, true].into()),
        )
        .unwrap(),
    );
    let s: ArrayRef = Arc::new(
        StructArray::try_new(
            outer,
            vec![ints(&[Some(5), Some(6), None, Some(8)]), x],
            Some(vec![true, true, true, false].into()),
        )
        .unwrap(),
    );
    let columns = [ints(&[None, Some(2), Some(3), Some(4)]), s];
    let split = leaves.split(&columns).unwrap();
    assert_eq!(split[2].as_ref(), &Int64Array::from(vec![Some(5), Some(6), None, None]), "NULL within NULL");
    for (i, column) in columns.iter().enumerate() {
        let joined = leaves.join(i, &mut |leaf| Ok(Arc::clone(&split[leaf]))).unwrap();
        assert_eq!(&joined, column);
    }
}
