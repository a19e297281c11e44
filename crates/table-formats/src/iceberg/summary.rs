//! What a snapshot says about itself: how many files and rows came, went and are there.
//! Source: the format's specification, "Optional Snapshot Summary Fields".

use std::collections::HashMap;

use iceberg::spec::{DataContentType, DataFile, ManifestEntry, Operation as SnapshotKind, Summary};

use crate::metadata::Operation;

/// Counts of files and rows.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    data_files: u64,
    rows: u64,
    delete_files: u64,
    positions: u64,
    by_value: u64,
    bytes: u64,
}

impl Counts {
    /// Counts a file.
    pub(super) fn add(&mut self, file: &DataFile) {
        self.bytes = self.bytes.saturating_add(file.file_size_in_bytes());
        let rows = match file.content_type() {
            DataContentType::Data => {
                self.data_files += 1;
                &mut self.rows
            }
            DataContentType::PositionDeletes => {
                self.delete_files += 1;
                &mut self.positions
            }
            DataContentType::EqualityDeletes => {
                self.delete_files += 1;
                &mut self.by_value
            }
        };
        *rows = rows.saturating_add(file.record_count());
    }

    /// Counts the files of entries.
    pub(super) fn of<'a>(entries: impl IntoIterator<Item = &'a ManifestEntry>) -> Self {
        let mut all = Self::default();
        entries.into_iter().for_each(|entry| all.add(entry.data_file()));
        all
    }
}

/// The summary of a snapshot. `more` is what else it says.
pub(super) fn of(
    operation: Operation,
    (came, went, all): (Counts, Counts, Counts),
    more: HashMap<String, String>,
) -> Summary {
    let mut lines = more;
    let mut say = |name: &str, count: u64, always: bool| {
        if always || count > 0 {
            lines.insert(name.to_owned(), count.to_string());
        }
    };
    for (word, removed, counts) in [("added", "added", came), ("deleted", "removed", went)] {
        say(&format!("{word}-data-files"), counts.data_files, false);
        say(&format!("{word}-records"), counts.rows, false);
        say(&format!("{removed}-delete-files"), counts.delete_files, false);
        say(&format!("{removed}-position-delete-files"), counts.delete_files, false);
        say(&format!("{removed}-position-deletes"), counts.positions, false);
        say(&format!("{removed}-files-size"), counts.bytes, false);
    }
    say("total-data-files", all.data_files, true);
    say("total-records", all.rows, true);
    say("total-delete-files", all.delete_files, true);
    say("total-position-deletes", all.positions, true);
    say("total-equality-deletes", all.by_value, true);
    say("total-files-size", all.bytes, true);
    Summary { operation: kind(operation, came, went), additional_properties: lines }
}

/// The kind of snapshot. Readers of appends go by it: what only adds data files is an append, and nothing else is.
fn kind(operation: Operation, came: Counts, went: Counts) -> SnapshotKind {
    let removes = went.data_files > 0 || came.delete_files > 0 || went.delete_files > 0;
    match operation {
        Operation::Compact => SnapshotKind::Replace,
        _ if !removes => SnapshotKind::Append,
        _ if came.data_files == 0 => SnapshotKind::Delete,
        Operation::Merge | Operation::Append | Operation::Overwrite | Operation::Replace => {
            SnapshotKind::Overwrite
        }
    }
}
