//! What did maintenance do, or would it do, for people?

use indicatif::{HumanBytes, HumanCount};
use strandline_runtime::maintenance::TableMaintenance;

use super::table;

/// A table of what was done for each table, and what was left undone.
pub(crate) fn maintenance(done: &[TableMaintenance]) -> String {
    let header =
        ["table", "files", "after", "compacted", "expired", "removed", "size", "size after", "removed size"];
    let rows = done.iter().map(|done| {
        let counts = [
            done.files_before,
            done.files_after,
            done.files_compacted,
            done.versions_expired,
            done.files_removed,
        ];
        let bytes = [done.bytes_before, done.bytes_after, done.bytes_removed];
        let mut row = vec![done.table.clone()];
        row.extend(counts.into_iter().map(|n| HumanCount(n).to_string()));
        row.extend(bytes.into_iter().map(|n| HumanBytes(n).to_string()));
        row
    });
    let notices = done.iter().filter(|done| !done.notices.is_empty());
    let notices = notices.map(|done| format!("\n{}: {}", done.table, done.notices.join("; ")));
    std::iter::once(table(&header, &rows.collect::<Vec<_>>(), 1)).chain(notices).collect()
}
