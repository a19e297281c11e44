//! Ranges by hand: nothing twice, nothing left out, nothing lost unsaid.

use super::*;

fn ranges(partitions: &[(i32, Range)]) -> Ranges {
    [("t".to_owned(), partitions.iter().copied().collect())].into()
}

fn next(partitions: &[(i32, i64)]) -> Offsets {
    [("t".to_owned(), partitions.iter().copied().collect())].into()
}

fn low(_: &str, _: i32, (low, _): Range) -> i64 {
    low
}

#[test]
fn a_flow_goes_on_where_it_stands_and_takes_new_partitions_from_their_start() {
    let held = ranges(&[(0, (0, 10)), (1, (3, 7)), (2, (0, 4))]);
    let found = ahead(&next(&[(0, 6), (1, 7)]), &held, low, true).unwrap();
    assert_eq!(found, ranges(&[(0, (6, 10)), (1, (7, 7)), (2, (0, 4))]));
    assert_eq!(not_empty(&found), ranges(&[(0, (6, 10)), (2, (0, 4))]));
    let found = ahead(&Offsets::new(), &held, |_, _, (_, high)| high, true).unwrap();
    assert_eq!(not_empty(&found), Ranges::new());
}

#[test]
fn what_is_gone_is_told_or_passed_over() {
    for (held, stands, goes_on) in
        [(ranges(&[(0, (5, 10))]), 2, (5, 10)), (ranges(&[(0, (0, 3))]), 7, (0, 3))]
    {
        let stands = next(&[(0, stands)]);
        let error = ahead(&stands, &held, low, true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
        assert!(error.to_string().contains("KAFKA_DATA_LOSS"), "{error}");
        assert_eq!(ahead(&stands, &held, low, false).unwrap(), ranges(&[(0, goes_on)]));
    }
    let gone = next(&[(0, 1), (1, 1)]);
    assert!(ahead(&gone, &ranges(&[(0, (0, 3))]), low, true).is_err());
    assert_eq!(ahead(&gone, &ranges(&[(0, (0, 3))]), low, false).unwrap(), ranges(&[(0, (1, 3))]));
}

#[test]
fn a_limit_is_kept_and_every_partition_moves_on() {
    let waiting = ranges(&[(0, (0, 1000)), (1, (5, 6)), (2, (0, 0)), (3, (10, 510))]);
    let count = |ranges: &Ranges| ranges["t"].values().map(|(from, to)| to - from).sum::<i64>();
    for most in [1, 2, 3, 10, 100, 1500, 1501, 1502, 9999] {
        let taken = limited(&waiting, most);
        assert!(count(&taken) <= i64::try_from(most).unwrap(), "{most}: {taken:?}");
        assert!(count(&taken) > 0);
        let mut stands = Offsets::new();
        // Batch after batch takes all, in order and once.
        let mut total = 0;
        loop {
            let rest = ahead(&stands, &waiting, low, true).unwrap();
            let slice = limited(&not_empty(&rest), most);
            if count_all(&slice) == 0 {
                break;
            }
            total += count_all(&slice);
            for (partition, (from, to)) in &slice["t"] {
                let at = stands.entry("t".to_owned()).or_default().insert(*partition, *to);
                assert_eq!(at.unwrap_or(waiting["t"][partition].0), *from);
            }
        }
        assert_eq!(total, 1501);
    }
}

fn count_all(ranges: &Ranges) -> i64 {
    ranges.values().flat_map(BTreeMap::values).map(|(from, to)| to - from).sum()
}
