//! Which files a change of rows rewrites, together with which of the rows that come.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::{ArrayRef, RecordBatch};
use roaring::RoaringBitmap;

use super::LakeOptions;
use crate::{contract::Result, keys::KeyRange, metadata::TableHead};

/// Files that are read, and slices of the new rows, to be written as new files.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Places in the head's list.
    pub(super) files: Vec<usize>,
    /// From, to (exclusive), in the sorted new rows.
    pub(super) inserts: Vec<(usize, usize)>,
}

/// The groups of a change. Rows that come are sorted by key.
///
/// A file that loses rows is rewritten, with the new rows of its own range of keys. What remains goes to a new file,
/// unless small files are rewritten anyway, or are many: then together with them.
pub(super) fn groups(
    head: &TableHead,
    deletes: &BTreeMap<usize, RoaringBitmap>,
    inserts: &RecordBatch,
    options: LakeOptions,
) -> Result<Vec<Group>> {
    let sizes = Sizes { head, options };
    let leading = head.keys.first();
    let column = leading.and_then(|key| inserts.column_by_name(key));
    let (small, large): (Vec<usize>, Vec<usize>) = deletes.keys().partition(|file| sizes.is_small(**file));
    let mut unclaimed = vec![(0, inserts.num_rows())];
    let mut groups = Vec::new();
    for file in large {
        let claimed = match (leading, column) {
            (Some(key), Some(column)) => claim(&mut unclaimed, range(head, file, key)?.as_ref(), column)?,
            _ => Vec::new(),
        };
        groups.push(Group { files: vec![file], inserts: claimed });
    }
    unclaimed.retain(|(from, to)| from < to);
    let mut rest = Group { files: small, inserts: unclaimed };
    if !rest.files.is_empty() || !rest.inserts.is_empty() {
        sizes.fold(&mut rest, deletes);
        groups.push(rest);
    }
    if let Some(group) = sizes.fold_medium(deletes) {
        groups.push(group);
    }
    Ok(groups)
}

/// Adds every file that is in no group, each in a group of its own.
pub(super) fn add_the_rest(groups: &mut Vec<Group>, head: &TableHead) {
    let taken: BTreeSet<usize> = groups.iter().flat_map(|group| group.files.iter().copied()).collect();
    let rest = (0..head.files.len()).filter(|file| !taken.contains(file));
    groups.extend(rest.map(|file| Group { files: vec![file], inserts: Vec::new() }));
}

fn range(head: &TableHead, file: usize, key: &str) -> Result<Option<KeyRange>> {
    let stats = head.files.get(file).and_then(|f| f.stats.get(key));
    match stats {
        Some(stats) => KeyRange::new(stats.min.as_ref(), stats.max.as_ref()),
        None => Ok(None),
    }
}

/// Takes the rows of the range out of what nobody claimed yet.
fn claim(
    unclaimed: &mut Vec<(usize, usize)>,
    range: Option<&KeyRange>,
    column: &ArrayRef,
) -> Result<Vec<(usize, usize)>> {
    let Some(range) = range else { return Ok(Vec::new()) };
    let (first, end) = range.rows(column)?;
    let mut claimed = Vec::new();
    let mut left = Vec::new();
    for (from, to) in unclaimed.drain(..) {
        let (low, high) = (from.max(first), to.min(end));
        if low < high {
            claimed.push((low, high));
            left.extend([(from, low), (high, to)].into_iter().filter(|(a, b)| a < b));
        } else {
            left.push((from, to));
        }
    }
    *unclaimed = left;
    Ok(claimed)
}

struct Sizes<'a> {
    head: &'a TableHead,
    options: LakeOptions,
}

impl Sizes<'_> {
    fn rows(&self, file: usize) -> u64 {
        self.head.files.get(file).map_or(0, |f| f.rows)
    }

    fn is_small(&self, file: usize) -> bool {
        self.rows(file) < self.options.small_rows
    }

    fn is_medium(&self, file: usize) -> bool {
        !self.is_small(file) && self.rows(file) < self.options.files.file_rows / 4
    }

    /// Adds the small files that nobody touches, when there would be too many.
    fn fold(&self, rest: &mut Group, deletes: &BTreeMap<usize, RoaringBitmap>) {
        let still: Vec<_> = (0..self.head.files.len())
            .filter(|file| self.is_small(*file) && !deletes.contains_key(file))
            .collect();
        if still.len() + 1 >= self.options.fold_files {
            rest.files.extend(still);
        }
    }

    /// Files of the next size, when they are many: in a group of their own.
    fn fold_medium(&self, deletes: &BTreeMap<usize, RoaringBitmap>) -> Option<Group> {
        let mut still: Vec<_> = (0..self.head.files.len())
            .filter(|file| self.is_medium(*file) && !deletes.contains_key(file))
            .collect();
        still.truncate(2 * self.options.fold_files);
        (still.len() >= 2 * self.options.fold_files).then(|| Group { files: still, inserts: Vec::new() })
    }
}
