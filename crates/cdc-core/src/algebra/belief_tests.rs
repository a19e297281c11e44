use super::*;

type Shown = (Ordinal, Option<Ordinal>, u8, Ordinal, Option<Ordinal>);

fn told(at: Ordinal, system: Ordinal, row: u8) -> Told<u8> {
    Told { at, system, op: Op::Upsert, write: Some(Write::whole(row)) }
}

fn delete(at: Ordinal, system: Ordinal) -> Told<u8> {
    Told { at, system, op: Op::Delete, write: None }
}

/// Rows as start, end, value, system start (0 for one that was believed before) and system end.
fn table(mut events: Vec<Told<u8>>, from: Ordinal) -> Vec<Shown> {
    events.sort_by_key(|event| event.system);
    let same = |a: &Filled<u8>, b: &Filled<u8>| a.leaf(0) == b.leaf(0);
    let values = Values { leaves: 1, null: 0, same };
    let mut rows: Vec<Shown> = beliefs(&events, from, &values)
        .into_iter()
        .map(|row| {
            let since = if let Since::At(at) = row.since { at } else { 0 };
            (row.start, row.end, row.values.leaf(0).unwrap_or_default(), since, row.until)
        })
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn business_time_out_of_order_and_a_delete() {
    // The table of three upserts and a delete, by the minute.
    let events = || vec![told(0, 1, 1), told(20, 21, 2), told(10, 24, 3), delete(30, 31)];
    let expected = [
        (0, None, 1, 1, Some(21)),
        (0, Some(10), 1, 24, None),
        (0, Some(20), 1, 21, Some(24)),
        (10, Some(20), 3, 24, None),
        (20, None, 2, 21, Some(31)),
        (20, Some(30), 2, 31, None),
    ];
    assert_eq!(table(events(), 0), expected);
    // From the last event on: what was believed before it, and what changes.
    let last = [
        (0, Some(10), 1, 0, None),
        (10, Some(20), 3, 0, None),
        (20, None, 2, 0, Some(31)),
        (20, Some(30), 2, 31, None),
    ];
    assert_eq!(table(events(), 31), last);
}

#[test]
fn what_is_learned_at_one_moment_is_one_change() {
    let rows = table(vec![told(0, 1, 1), delete(5, 2), told(5, 2, 2), told(0, 2, 1)], 0);
    assert_eq!(rows, [(0, None, 1, 1, Some(2)), (0, Some(5), 1, 2, None), (5, None, 2, 2, None)]);
}

#[test]
fn an_event_that_changes_no_belief_adds_no_row() {
    assert_eq!(table(vec![told(0, 1, 1), told(5, 2, 1), delete(9, 1)], 0), [(0, Some(9), 1, 1, None)]);
}

/// At how many sequences `late` may have changed something, after `before`; rows have two leaves.
fn refilled(before: &[Told<u8>], late: &Told<u8>) -> usize {
    let same = |a: &Filled<u8>, b: &Filled<u8>| (0..2).all(|leaf| a.leaf(leaf) == b.leaf(leaf));
    let values = Values { leaves: 2, null: 0, same };
    let mut walk = Walk {
        values: &values,
        nodes: BTreeMap::new(),
        bounds: BTreeMap::new(),
        shown: BTreeMap::new(),
        ended: Vec::new(),
    };
    walk.start(before);
    let node = walk.nodes.get_mut(&late.at).expect("a known sequence");
    node.step.take(late.op, late.write.as_ref());
    let mut changed = BTreeSet::new();
    walk.refill(late.at, &mut changed);
    changed.len()
}

#[test]
fn a_late_event_goes_no_further_than_what_it_changes() {
    let leaf = |at: Ordinal, leaf: usize| Told {
        write: Some(Write { whole: None, leaves: vec![(leaf, 2)] }),
        ..told(at, 1, 0)
    };
    let chain: Vec<_> = [told(0, 1, 1)].into_iter().chain((1..100).map(|at| leaf(at, 0))).collect();
    assert_eq!(refilled(&chain, &leaf(0, 0)), 2, "the next event writes the leaf itself");
    assert_eq!(refilled(&chain, &leaf(0, 1)), 100, "all others inherit the leaf");
    let retract = |at: Ordinal| Told { op: Op::Retract, ..delete(at, 1) };
    let nothing: Vec<_> = (0..100).map(retract).collect();
    assert_eq!(refilled(&nothing, &delete(0, 2)), 2, "no row before, and none after");
}
