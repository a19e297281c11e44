//! In which orders, batches and repetitions can a history arrive?

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Arrivals of a history: permuted, cut into batches, some batches delivered again later, some items twice at once.
pub fn arrivals<T: Clone + Debug + 'static>(history: Vec<T>) -> impl Strategy<Value = Vec<Vec<T>>> {
    let items = history.len();
    let cuts = vec(proptest::bool::weighted(0.4), items);
    let twice = vec(proptest::bool::weighted(0.1), items);
    let replays = vec((any::<Index>(), any::<Index>()), 0..3);
    (Just(history).prop_shuffle(), cuts, twice, replays).prop_map(|(order, cuts, twice, replays)| {
        let mut batches = vec![Vec::new()];
        for ((item, cut), twice) in order.into_iter().zip(cuts).zip(twice) {
            if cut {
                batches.push(Vec::new());
            }
            if let Some(batch) = batches.last_mut() {
                batch.extend(twice.then(|| item.clone()));
                batch.push(item);
            }
        }
        for (which, to) in replays {
            let at = which.index(batches.len());
            let again = batches.get(at).cloned().unwrap_or_default();
            let to = at + 1 + to.index(batches.len() - at);
            batches.insert(to, again);
        }
        batches
    })
}

/// Every arrival of a small history: each permutation in each split into batches, without replays.
pub fn every_arrival<T: Clone>(history: &[T]) -> impl Iterator<Item = Vec<Vec<T>>> {
    let splits = 1_u32 << history.len().saturating_sub(1);
    permutations(history).into_iter().flat_map(move |order| {
        (0..splits).map(move |cuts| {
            let mut batches = vec![Vec::new()];
            for (at, item) in order.iter().enumerate() {
                if at > 0 && cuts >> (at - 1) & 1 == 1 {
                    batches.push(Vec::new());
                }
                if let Some(batch) = batches.last_mut() {
                    batch.push(item.clone());
                }
            }
            batches
        })
    })
}

fn permutations<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let Some((first, rest)) = items.split_first() else { return vec![vec![]] };
    let insert_everywhere = |order: Vec<T>| {
        let first = first.clone();
        (0..=order.len()).map(move |at| {
            let mut order = order.clone();
            order.insert(at, first.clone());
            order
        })
    };
    permutations(rest).into_iter().flat_map(insert_everywhere).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_arrival_is_there_once() {
        let all: Vec<_> = every_arrival(&[1, 2, 3]).collect();
        assert_eq!(all.len(), 6 * 4);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    proptest! {
        #[test]
        fn an_arrival_brings_the_whole_history_and_nothing_else(batches in arrivals(vec![1, 2, 3, 4])) {
            let brought: BTreeSet<i32> = batches.into_iter().flatten().collect();
            prop_assert_eq!(brought, BTreeSet::from([1, 2, 3, 4]));
        }
    }
}
