//! How much of a store was really read for a table's data files.

use std::{
    ops::Sub,
    sync::atomic::{AtomicU64, Ordering},
};

/// What was read of data files, since the table was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadCounts {
    /// Files, each time that one was read for a look-up or a scan: more than its remembered footer.
    pub files: u64,
    /// Bytes: footers, page indexes, filters and pages, with the gaps that were read to spare a request.
    pub bytes: u64,
    /// Requests to the store.
    pub requests: u64,
}

impl Sub for ReadCounts {
    type Output = Self;

    /// What was read since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self {
            files: self.files.saturating_sub(earlier.files),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            requests: self.requests.saturating_sub(earlier.requests),
        }
    }
}

impl std::ops::Add for ReadCounts {
    type Output = Self;

    /// What was read in both.
    fn add(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_add(other.files),
            bytes: self.bytes.saturating_add(other.bytes),
            requests: self.requests.saturating_add(other.requests),
        }
    }
}

/// Counts while files are read.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    files: AtomicU64,
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl Counter {
    /// What was counted until now.
    pub(crate) fn now(&self) -> ReadCounts {
        ReadCounts {
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
        }
    }

    pub(super) fn file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn request(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}
