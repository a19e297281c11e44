//! Which rows of a file may be wanted? First row groups by their statistics, then pages by theirs, then what a row
//! group's filter leaves over.
//!
//! Pages of files that are sorted by key leave so little that a filter is seldom worth its bytes. It is read when it is
//! much smaller than what it could spare, and no more when filters spared less than they cost: keys that are there, as
//! those of updates are, pass every filter.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::BooleanArray;
use arrow_select::filter::filter;

use super::Lookup;
use crate::{
    contract::Result,
    keys::ColumnKeys,
    parquet::{FileReader, GroupRows, Spans},
};

/// A filter is read when what it could spare is so many times its bytes.
const WORTH: u64 = 4;

/// What filters cost in a lookup, and what they spared.
#[derive(Debug, Default)]
pub(super) struct Filters {
    cost: AtomicU64,
    spared: AtomicU64,
}

impl Filters {
    fn are_worth_it(&self) -> bool {
        self.cost.load(Ordering::Relaxed) <= self.spared.load(Ordering::Relaxed)
    }

    fn record(&self, cost: u64, spared: u64) {
        self.cost.fetch_add(cost, Ordering::Relaxed);
        self.spared.fetch_add(spared, Ordering::Relaxed);
    }
}

impl Lookup {
    /// Rows that may have a key within its bound, by row group.
    pub(super) async fn wanted(&self, reader: &FileReader) -> Result<Vec<GroupRows>> {
        let group_rows = reader.group_rows();
        let mut parts = Vec::new();
        for group in self.groups(reader, group_rows.len())? {
            let rows = group_rows.get(group).copied().unwrap_or(0);
            let mut spans = self.pages(reader, group, rows)?;
            if !spans.is_empty() {
                spans = self.filtered(reader, group, spans).await?;
            }
            if !spans.is_empty() {
                parts.push(GroupRows { group, spans });
            }
        }
        Ok(parts)
    }

    /// Row groups that may hold a key within its bound.
    fn groups(&self, reader: &FileReader, groups: usize) -> Result<Vec<usize>> {
        let mut wanted = vec![true; groups];
        let mut narrow = |by: Vec<bool>| wanted.iter_mut().zip(by).for_each(|(w, b)| *w &= b);
        for (name, keys) in self.key_columns() {
            if let Some(stats) = reader.group_stats(name) {
                narrow(stats.may_hold(keys)?);
            }
        }
        if let Some((bound, floor)) = self.bound.as_ref().zip(self.floor.as_ref())
            && let Some(stats) = reader.group_stats(&bound.column)
        {
            narrow(stats.may_reach(floor)?);
        }
        Ok((0..).zip(wanted).filter(|(_, wanted)| *wanted).map(|(group, _)| group).collect())
    }

    /// Rows of the pages that may hold a key within its bound.
    fn pages(&self, reader: &FileReader, group: usize, rows: u64) -> Result<Spans> {
        let mut spans = Spans::all(rows);
        for (name, keys) in self.key_columns() {
            spans = spans.and(&pages_with(reader, (group, rows), name, keys)?);
        }
        if let Some((bound, floor)) = self.bound.as_ref().zip(self.floor.as_ref())
            && let Some((stats, starts)) = reader.page_stats(&bound.column, group)
        {
            spans = spans.and(&Spans::of_pages(&starts, rows, &stats.may_reach(floor)?));
        }
        Ok(spans)
    }

    /// The same without the rows that filters exclude.
    async fn filtered(&self, reader: &FileReader, group: usize, mut spans: Spans) -> Result<Spans> {
        let rows = reader.group_rows().get(group).copied().unwrap_or(0);
        for (name, keys) in self.key_columns() {
            let Some(cost) = reader.filter_bytes(name, group) else { continue };
            let before = reader.page_bytes(&self.first, group, &spans);
            if !self.filters.are_worth_it() || before < cost.saturating_mul(WORTH) {
                continue;
            }
            let Some(stats) = reader.group_stats(name) else { continue };
            let (min, max) = stats.bounds(group);
            let Some(values) = keys.between(&min, &max)? else { continue };
            let Some(kept) = reader.filter(name, group, &values).await? else { continue };
            let left = filter(&values, &BooleanArray::from(kept))?;
            if left.is_empty() {
                spans = Spans::default();
            } else if left.len() < values.len() {
                let left = ColumnKeys::new(&left)?;
                spans = spans.and(&pages_with(reader, (group, rows), name, &left)?);
            }
            let after = reader.page_bytes(&self.first, group, &spans);
            self.filters.record(cost, before.saturating_sub(after));
            if spans.is_empty() {
                break;
            }
        }
        Ok(spans)
    }
}

/// Rows of a row group, given with their number, in pages that may hold one of the values.
fn pages_with(
    reader: &FileReader,
    (group, rows): (usize, u64),
    column: &str,
    keys: &ColumnKeys,
) -> Result<Spans> {
    match reader.page_stats(column, group) {
        Some((stats, starts)) => Ok(Spans::of_pages(&starts, rows, &stats.may_hold(keys)?)),
        None => Ok(Spans::all(rows)),
    }
}
