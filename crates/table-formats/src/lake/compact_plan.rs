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
fn end(schema: &Schema) -> Option<&'static str> {
    ENDS.into_iter().find(|name| schema.field_with_name(name).is_ok())
}

/// Files that are rewritten together, in a commit of their own.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) files: Vec<Arc<DataFile>>,
    /// The column by which closed rows go to files of their own; `None` leaves all together.
    pub(super) split_by: Option<&'static str>,
}

/// The groups of files to rewrite.
pub(super) fn groups(head: &TableHead, options: LakeOptions) -> Vec<Group> {
    let end = end(&head.schema);
    let (small, large): (Vec<_>, Vec<_>) =
        head.files.iter().filter(|file| file.constants.is_empty()).partition(|file| is_small(file, options));
    let sizes = Sizes { options, end };
    let of_large = large.into_iter().filter(|file| has_many_deleted(file) || sizes.is_mixed(file));
    let mut groups: Vec<Group> =
        of_large.map(|file| Group { files: vec![Arc::clone(file)], split_by: end }).collect();
    // A few rows are looked through as soon as they are told apart.
    let rows: u64 = small.iter().map(|file| file.live_rows()).sum();
    let sizes = Sizes { end: end.filter(|_| rows >= options.mask_rows), ..sizes };
    for files in sizes.chunks(sizes.small_ones(&small)) {
        let is_done = |only: &DataFile| !has_many_deleted(only) && sizes.rows(only) != Rows::Mixed;
        if !matches!(&files[..], [only] if is_done(only)) {
            groups.push(Group { files, split_by: sizes.end });
        }
    }
    groups
}

fn is_small(file: &DataFile, options: LakeOptions) -> bool {
    let files = options.files;
    file.live_rows() < files.file_rows / 2 && file.size < files.file_bytes / 2
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
            rows @ (Rows::Current | Rows::Closed) => several(rows) || has_many_deleted(file),
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
                    last.push(file);
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
