//! Maintenance of a table: what is asked for, and what was done.

/// What maintenance of a table shall do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MaintainOptions {
    /// Whether files are compacted: small ones together, those with many deleted rows without them, those of closed and of
    /// current rows apart.
    pub compact: bool,
    /// Versions that were replaced before this moment are forgotten, and files that belong to no version since and are older
    /// are removed; milliseconds since 1970, UTC. `None` removes nothing. Whoever reads an older version, or has not
    /// committed files that are older, fails.
    pub expire_before: Option<i64>,
    /// Only tells what would be done.
    pub dry_run: bool,
}

/// What maintenance of a table did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Maintained {
    /// The newest version's files before.
    pub before: FileSums,
    /// The newest version's files afterwards; in a dry run, those of before.
    pub after: FileSums,
    /// Files that were compacted.
    pub compacted: FileSums,
    /// Commits that were made for it.
    pub commits: u64,
    /// Times that the work on some files was in vain, since another writer changed them meanwhile.
    pub conflicts: u64,
    /// Versions that were forgotten.
    pub versions_expired: u64,
    /// Files that were removed.
    pub removed: FileSums,
    /// What was left undone, and why.
    pub notices: Vec<String>,
}

/// How many files, and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSums {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl FileSums {
    /// Adds a file of so many bytes.
    pub fn add(&mut self, bytes: u64) {
        self.files = self.files.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl FromIterator<u64> for FileSums {
    /// Files of so many bytes each.
    fn from_iter<I: IntoIterator<Item = u64>>(sizes: I) -> Self {
        let mut sums = Self::default();
        sizes.into_iter().for_each(|bytes| sums.add(bytes));
        sums
    }
}
