//! Which offsets does a batch take, and what do the ends of partitions say of what was lost?

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// An offset of each partition of topics.
pub(super) type Offsets = BTreeMap<String, BTreeMap<i32, i64>>;

/// What a partition holds: from the first, up to and without the second.
pub(super) type Range = (i64, i64);

/// A range of each partition.
pub(super) type Ranges = BTreeMap<String, BTreeMap<i32, Range>>;

/// How far a flow has read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// The cluster that the offsets are of; offsets mean nothing in another.
    pub(super) cluster: Option<String>,
    /// The next offset of each partition.
    pub(super) next: Offsets,
    /// A first batch was planned, be it that there was no partition yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) begun: bool,
}

impl Progress {
    /// Whether where the flow begins is still to be recorded.
    pub(super) fn is_first(&self) -> bool {
        !self.begun && self.next.is_empty()
    }
}

/// What a batch takes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Slice {
    pub(super) cluster: Option<String>,
    pub(super) ranges: Ranges,
}

/// What is in a partition no more although a flow has not read it.
pub(super) fn lost(topic: &str, partition: i32, wanted: i64, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::State, "KAFKA_DATA_LOSS: records that the flow has not read are gone")
        .with("topic", topic)
        .with("partition", partition)
        .with("offset", wanted)
        .with("the partition", what)
        .help("the topic was made anew, or its retention is too short; with failOnDataLoss => false the flow goes on with what is left")
}

/// What lies before a flow: of each partition there is, from where the flow stands up to its end. `start` says where a partition
/// begins that is read for the first time.
///
/// # Errors
/// `State` where records are gone, if that is to fail.
pub(super) fn ahead(
    next: &Offsets,
    held: &Ranges,
    start: impl Fn(&str, i32, Range) -> i64,
    fail_on_data_loss: bool,
) -> Result<Ranges> {
    if fail_on_data_loss {
        for (topic, partitions) in next {
            for (partition, wanted) in partitions {
                if held.get(topic).and_then(|held| held.get(partition)).is_none() {
                    return Err(lost(topic, *partition, *wanted, "is gone"));
                }
            }
        }
    }
    let mut ranges = Ranges::new();
    for (topic, partitions) in held {
        for (partition, (low, high)) in partitions {
            let known = next.get(topic).and_then(|known| known.get(partition)).copied();
            let from = known.unwrap_or_else(|| start(topic, *partition, (*low, *high)));
            if known.is_some() && fail_on_data_loss && !(*low..=*high).contains(&from) {
                return Err(lost(topic, *partition, from, format!("holds {low} to {high}")));
            }
            // A partition that begins behind where the flow stands was made anew: all of it is new.
            let from = if from > *high && known.is_some() { *low } else { from.clamp(*low, *high) };
            ranges.entry(topic.clone()).or_default().insert(*partition, (from, *high));
        }
    }
    Ok(ranges)
}

/// The part of `ranges` that has at most `most` offsets, each partition in proportion to what it has.
pub(super) fn limited(ranges: &Ranges, most: u64) -> Ranges {
    let size = |(from, to): &Range| u128::from(u64::try_from(to - from).unwrap_or(0));
    let all: u128 = ranges.values().flat_map(BTreeMap::values).map(size).sum();
    let most = u128::from(most);
    if all <= most {
        return ranges.clone();
    }
    let mut left = most;
    let mut taken = Ranges::new();
    for (topic, partitions) in ranges {
        for (partition, range) in partitions {
            // At least one of each, so that no partition waits for ever behind larger ones.
            let share = (size(range) * most / all).max(1).min(size(range)).min(left);
            left -= share;
            let to = range.0.saturating_add(i64::try_from(share).unwrap_or(i64::MAX));
            taken.entry(topic.clone()).or_default().insert(*partition, (range.0, to));
        }
    }
    taken
}

/// The ranges that hold something.
pub(super) fn not_empty(ranges: &Ranges) -> Ranges {
    let full = ranges.iter().map(|(topic, partitions)| {
        let full = partitions.iter().filter(|(_, (from, to))| from < to);
        (topic.clone(), full.map(|(partition, range)| (*partition, *range)).collect::<BTreeMap<_, _>>())
    });
    full.filter(|(_, partitions)| !partitions.is_empty()).collect()
}

#[cfg(test)]
#[path = "offsets_tests.rs"]
mod tests;
