//! Which files a change of rows rewrites, together with which of the rows that come, and which it only masks.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::{ArrayRef, RecordBatch};
use roaring::RoaringBitmap;

use super::{LakeOptions, WriteMode};
use crate::{contract::Result, keys::KeyRange, metadata::TableHead};

/// A file of which more rows than this share don't count is written anew.
const MASKED_PERCENT: u64 = 20;

/// Files that are read, and slices of the new rows, to be written as new files.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Places in the head's list.
    pub(super) files: Vec<usize>,
    /// From, to (exclusive), in the sorted new rows.
    pub(super) inserts: Vec<(usize, usize)>,
}

/// What a change of rows does to files.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Files that are masked, with all their rows that don't count then.
    pub(super) masks: BTreeMap<usize, RoaringBitmap>,
    /// Files none of whose rows is left.
    pub(super) emptied: Vec<usize>,
    /// What is written anew.
    pub(super) groups: Vec<Group>,
    /// Rows of files in the groups that don't count then, where that changes.
    pub(super) deletes: BTreeMap<usize, RoaringBitmap>,
}

impl Plan {
    /// Files that go.
    pub(super) fn removed(&self) -> impl Iterator<Item = usize> {
        let grouped = self.groups.iter().flat_map(|group| group.files.iter().copied());
        grouped.chain(self.emptied.iter().copied())
    }

    /// True when the files that come and go tell by themselves which rows came or went: rows only came, or whole files went.
    pub(super) fn is_told_by_files(&self, inserts: &RecordBatch) -> bool {
        let moves = self.groups.iter().any(|group| !group.files.is_empty());
        self.masks.is_empty() && !moves && (self.emptied.is_empty() || inserts.num_rows() == 0)
    }

    fn touches(&self, file: usize) -> bool {
        self.deletes.contains_key(&file) || self.masks.contains_key(&file) || self.emptied.contains(&file)
    }
}

/// The plan of a change. Rows that come are sorted by key; deletes include those of before. With `rewrites_all`, no file is
/// masked.
pub(super) fn rows(
    head: &TableHead,
    deletes: BTreeMap<usize, RoaringBitmap>,
    inserts: &RecordBatch,
    (mode, rewrites_all): (WriteMode, bool),
    options: LakeOptions,
) -> Result<Plan> {
    let sizes = Sizes { head, options };
    let mut plan = Plan::default();
    let folds = sizes.folds_small(mode);
    for (file, deleted) in deletes {
        let masks = match mode {
            _ if rewrites_all => false,
            WriteMode::CopyOnWrite => false,
            WriteMode::MergeOnRead => !(folds && sizes.is_small(file)),
            WriteMode::Auto => sizes.is_worth_a_mask(file, deleted.len()) && !(folds && sizes.is_small(file)),
        };
        if deleted.len() >= sizes.rows(file) {
            plan.emptied.push(file);
        } else if masks {
            plan.masks.insert(file, deleted);
        } else {
            plan.deletes.insert(file, deleted);
        }
    }
    plan.groups = groups(&sizes, &plan, inserts)?;
    Ok(plan)
}

/// A file that loses rows is rewritten, with the new rows of its own range of keys. What remains goes to a new file,
/// unless small files are rewritten anyway, or are many: then together with them.
fn groups(sizes: &Sizes<'_>, plan: &Plan, inserts: &RecordBatch) -> Result<Vec<Group>> {
    let head = sizes.head;
    let leading = head.keys.first();
    let column = leading.and_then(|key| inserts.column_by_name(key));
    let (small, large): (Vec<usize>, Vec<usize>) =
        plan.deletes.keys().partition(|file| sizes.is_small(**file));
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
        sizes.fold(&mut rest, plan);
        groups.push(rest);
    }
    if let Some(group) = sizes.fold_medium(plan) {
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

    fn live(&self, file: usize) -> u64 {
        self.head.files.get(file).map_or(0, |f| f.live_rows())
    }

    fn is_small(&self, file: usize) -> bool {
        self.live(file) < self.options.small_rows
    }

    fn is_medium(&self, file: usize) -> bool {
        !self.is_small(file) && self.live(file) < self.options.files.file_rows / 4
    }

    /// Whether marking rows beside a file costs less than writing it anew, now and for those who read it later.
    fn is_worth_a_mask(&self, file: usize, deleted: u64) -> bool {
        let rows = self.rows(file);
        rows >= self.options.mask_rows && deleted.saturating_mul(100) <= rows.saturating_mul(MASKED_PERCENT)
    }

    /// Whether small files that are touched are written anew together, for there are many.
    fn folds_small(&self, mode: WriteMode) -> bool {
        let many = match mode {
            // Who asks for nothing but masks gets files anew only so that their number stays bounded.
            WriteMode::MergeOnRead => 4 * self.options.fold_files,
            WriteMode::Auto | WriteMode::CopyOnWrite => self.options.fold_files,
        };
        (0..self.head.files.len()).filter(|file| self.is_small(*file)).count() >= many
    }

    /// Adds the small files that nobody touches, when there would be too many.
    fn fold(&self, rest: &mut Group, plan: &Plan) {
        let still: Vec<_> =
            (0..self.head.files.len()).filter(|file| self.is_small(*file) && !plan.touches(*file)).collect();
        if still.len() + 1 >= self.options.fold_files {
            rest.files.extend(still);
        }
    }

    /// Files of the next size, when they are many: in a group of their own.
    fn fold_medium(&self, plan: &Plan) -> Option<Group> {
        let mut still: Vec<_> =
            (0..self.head.files.len()).filter(|file| self.is_medium(*file) && !plan.touches(*file)).collect();
        still.truncate(2 * self.options.fold_files);
        (still.len() >= 2 * self.options.fold_files).then(|| Group { files: still, inserts: Vec::new() })
    }
}
