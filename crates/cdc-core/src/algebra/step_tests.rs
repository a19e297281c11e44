use super::*;

const NULL: u8 = 0;

fn some(leaves: &[(usize, u8)]) -> Write<u8> {
    Write { whole: None, leaves: leaves.to_vec() }
}

fn step(events: &[(Op, Option<Write<u8>>)]) -> Step<u8> {
    let mut step = Step::default();
    for (op, write) in events {
        step.take(*op, write.as_ref());
    }
    step
}

fn leaves(filled: Option<Filled<u8>>) -> Option<Vec<u8>> {
    filled.map(|row| (0..2).filter_map(|leaf| row.leaf(leaf)).collect())
}

#[test]
fn leaves_over_a_row_inherit_the_rest() {
    let before = Filled::Whole(7);
    let after = |events: &[(Op, Option<Write<u8>>)]| leaves(step(events).apply(Some(&before), 2, NULL));
    assert_eq!(after(&[]), Some(vec![7, 7]), "nothing happens");
    assert_eq!(after(&[(Op::Upsert, Some(some(&[(1, 8)])))]), Some(vec![7, 8]));
    assert_eq!(after(&[(Op::Upsert, Some(Write::whole(8)))]), Some(vec![8, 8]));
    assert_eq!(after(&[(Op::Delete, None)]), None);
    assert_eq!(after(&[(Op::Barrier, None)]), None);
    let cut = [(Op::Delete, None), (Op::Upsert, Some(some(&[(1, 8)])))];
    assert_eq!(after(&cut), Some(vec![NULL, 8]), "a delete comes first and cuts off");
    let corrected = [(Op::Upsert, Some(Write::whole(8))), (Op::Upsert, Some(some(&[(0, 9)])))];
    assert_eq!(after(&corrected), Some(vec![9, 8]), "a correction of some leaves keeps the others");
    let replaced = [(Op::Upsert, Some(some(&[(0, 9)]))), (Op::Upsert, Some(Write::whole(8)))];
    assert_eq!(after(&replaced), Some(vec![8, 8]));
    let retracted = [(Op::Delete, None), (Op::Upsert, Some(Write::whole(8))), (Op::Retract, None)];
    assert_eq!(after(&retracted), Some(vec![7, 7]), "as if nothing had been said");
}

#[test]
fn an_upsert_of_nothing_makes_the_row() {
    let nothing = step(&[(Op::Upsert, Some(some(&[])))]);
    assert_eq!(leaves(nothing.apply(None, 2, NULL)), Some(vec![NULL, NULL]));
    assert_eq!(leaves(nothing.apply(Some(&Filled::Whole(3)), 2, NULL)), Some(vec![3, 3]));
    assert!(nothing.inherits() && !step(&[(Op::Delete, None)]).inherits());
}

#[test]
fn merged_lists_have_each_leaf_once() {
    let larger = |_: usize, a: u8, b: u8| a.max(b);
    assert_eq!(
        merged(&[(0, 1), (2, 5)], &[(1, 2), (2, 4), (3, 1)], larger),
        [(0, 1), (1, 2), (2, 5), (3, 1)]
    );
    assert_eq!(merged(&[], &[(1, 2)], larger), [(1, 2)]);
}
