//! Which files are compacted, and which of them together?
//!
//! Small files, when there are two of them or more. Files many rows of which are deleted. In a table with history, files
//! that hold closed and current rows: apart, a look-up that is bounded by `__END_AT` passes over the closed ones. What was
//! compacted is not compacted again until it is changed.

use std::sync::Arc;

use arrow_schema::Schema;

use super::LakeOptions;
use crate::metadata::{DataFile, TableHead};

/// Columns that are NULL in current rows; the first that a table has counts: of a bitemporal one, what is believed now.
const ENDS: [&str; 2] = ["__SYSTEM_END_AT", "__END_AT"];

/// A file is rewritten when one row of so many is deleted.
const DELETED_SHARE: u64 = 10;
/// A large file is split when the rarer of closed and current rows are one of so many.
const MIXED_SHARE: u64 = 10;
/// Small files that are merged at a time: all of them are open.
const FILES: usize = 128;
/// So many files of full size come of one group, about.
const GROUP_FILES: u64 = 4;

/// The column of a table that tells closed rows from current ones.
pub(super) fn end(schema: &Schema) -> Option<&'static str> {
    ENDS.into_iter().find(|name| schema.field_with_name(name).is_ok())
}

/// Groups of files to rewrite, each in a commit of its own.
pub(super) fn groups(head: &TableHead, options: LakeOptions) -> Vec<Vec<Arc<DataFile>>> {
    let sizes = Sizes { options, end: end(&head.schema) };
    let (small, large): (Vec<_>, Vec<_>) =
        head.files.iter().filter(|file| file.constants.is_empty()).partition(|file| sizes.is_small(file));
    let mut groups: Vec<Vec<_>> = large
        .into_iter()
        .filter(|file| has_many_deleted(file) || sizes.is_mixed(file))
        .map(|file| vec![Arc::clone(file)])
        .collect();
    for group in sizes.chunks(sizes.small_ones(&small)) {
        if let [only] = &group[..]
            && !has_many_deleted(only)
            && sizes.rows(only) != Rows::Mixed
        {
            continue;
        }
        groups.push(group);
    }
    groups
}

/// Which rows a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// None of them ended, or the table has no history.
    Current,
    /// All of them ended.
    Closed,
    /// Some of both, or nobody knows.
    Mixed,
}

struct Sizes {
    options: LakeOptions,
    end: Option<&'static str>,
}

impl Sizes {
    fn is_small(&self, file: &DataFile) -> bool {
        let files = self.options.files;
        file.live_rows() < files.file_rows / 2 && file.size < files.file_bytes / 2
    }

    fn rows(&self, file: &DataFile) -> Rows {
        match self.closed(file) {
            Some(0) => Rows::Current,
            Some(closed) if closed >= file.rows => Rows::Closed,
            Some(_) | None => Rows::Mixed,
        }
    }

    /// How many rows of a file ended; `None` where it is not known.
    fn closed(&self, file: &DataFile) -> Option<u64> {
        let Some(end) = self.end else { return Some(0) };
        let nulls = file.stats.get(end).and_then(|stats| stats.nulls)?;
        Some(file.rows.saturating_sub(nulls))
    }

    /// Whether a large file is worth being split.
    fn is_mixed(&self, file: &DataFile) -> bool {
        let Some(closed) = self.closed(file) else { return true };
        let rarer = closed.min(file.rows.saturating_sub(closed));
        rarer > 0 && rarer.saturating_mul(MIXED_SHARE) >= file.rows
    }

    /// The small files that are worth being merged.
    fn small_ones(&self, small: &[&Arc<DataFile>]) -> Vec<Arc<DataFile>> {
        let of = |rows: Rows| small.iter().filter(move |file| self.rows(file) == rows);
        let any_mixed = of(Rows::Mixed).count() > 0;
        let several = |rows: Rows| any_mixed || of(rows).count() > 1;
        let wanted = |file: &&&Arc<DataFile>| match self.rows(file) {
            Rows::Mixed => true,
            rows => several(rows) || has_many_deleted(file),
        };
        small.iter().filter(wanted).map(|file| Arc::clone(file)).collect()
    }

    /// Files that are merged at a time.
    fn chunks(&self, files: Vec<Arc<DataFile>>) -> Vec<Vec<Arc<DataFile>>> {
        let most_rows = self.options.files.file_rows.saturating_mul(GROUP_FILES);
        let most_bytes = self.options.files.file_bytes.saturating_mul(GROUP_FILES);
        let mut chunks: Vec<Vec<Arc<DataFile>>> = Vec::new();
        let (mut rows, mut bytes) = (0_u64, 0_u64);
        for file in files {
            rows = rows.saturating_add(file.live_rows());
            bytes = bytes.saturating_add(file.size);
            match chunks.last_mut() {
                Some(last) if last.len() < FILES && rows <= most_rows && bytes <= most_bytes => {
                    last.push(file)
                }
                _ => {
                    (rows, bytes) = (file.live_rows(), file.size);
                    chunks.push(vec![file]);
                }
            }
        }
        chunks
    }
}

fn has_many_deleted(file: &DataFile) -> bool {
    match &file.deleted {
        None => false,
        Some(deleted) => {
            deleted.count.is_none_or(|count| count > 0 && count.saturating_mul(DELETED_SHARE) >= file.rows)
        }
    }
}
