//! Which rows of a row group are read.

use std::ops::Range;

use parquet::arrow::arrow_reader::RowSelection;

/// Ranges of a row group's rows, from its first row on: ascending, none empty, none touching another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spans(Vec<Range<u64>>);

/// Rows of one row group.
#[derive(Debug, Clone)]
pub(crate) struct GroupRows {
    /// Its place in the file.
    pub(crate) group: usize,
    /// Which of its rows.
    pub(crate) spans: Spans,
}

impl Spans {
    /// All of so many rows.
    pub(crate) fn all(rows: u64) -> Self {
        Self::of(std::iter::once(0..rows))
    }

    /// The rows of the pages that are kept, of which each begins at its start.
    pub(crate) fn of_pages(starts: &[u64], rows: u64, keep: &[bool]) -> Self {
        let ends = starts.iter().skip(1).copied().chain([rows]);
        let pages = starts.iter().zip(ends).zip(keep).filter(|(_, keep)| **keep);
        Self::of(pages.map(|((from, to), _)| *from..to))
    }

    /// These ranges, ascending by their starts.
    pub(crate) fn of(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut spans: Vec<Range<u64>> = Vec::new();
        for range in ranges.into_iter().filter(|range| range.start < range.end) {
            match spans.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => spans.push(range),
            }
        }
        Self(spans)
    }

    /// The rows that are in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            both.push(a.start.max(b.start)..a.end.min(b.end));
            if a.end <= b.end {
                ours.next();
            } else {
                theirs.next();
            }
        }
        Self::of(both)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter()
    }

    /// For each page that begins at a start, whether it has some of these rows.
    pub(crate) fn touch(&self, starts: &[u64], rows: u64) -> Vec<bool> {
        let ends = starts.iter().skip(1).copied().chain([rows]);
        let touched = |from: u64, to: u64| {
            let next = self.0.partition_point(|span| span.end <= from);
            self.0.get(next).is_some_and(|span| span.start < to)
        };
        starts.iter().zip(ends).map(|(from, to)| touched(*from, to)).collect()
    }
}

/// These rows of row groups of `group_rows` rows each, for the reader of just these groups; `None` when it is all.
pub(crate) fn selection(parts: &[GroupRows], group_rows: &[u64]) -> Option<RowSelection> {
    let rows_of = |part: &GroupRows| group_rows.get(part.group).copied().unwrap_or(0);
    if parts.iter().all(|part| part.spans == Spans::all(rows_of(part))) {
        return None;
    }
    let mut first = 0;
    let mut ranges = Vec::new();
    for part in parts {
        let at = |row: u64| usize::try_from(first + row).unwrap_or(usize::MAX);
        ranges.extend(part.spans.iter().map(|span| at(span.start)..at(span.end)));
        first += rows_of(part);
    }
    let total = usize::try_from(first).unwrap_or(usize::MAX);
    Some(RowSelection::from_consecutive_ranges(ranges.into_iter(), total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans<const N: usize>(ranges: [Range<u64>; N]) -> Spans {
        Spans::of(ranges)
    }

    #[test]
    fn neighbouring_pages_are_one_span() {
        let pages = Spans::of_pages(&[0, 10, 20, 30], 35, &[true, true, false, true]);
        assert_eq!(pages, spans([0..20, 30..35]));
        assert_eq!(pages.touch(&[0, 20, 25, 34], 35), [true, false, true, true]);
        assert_eq!(Spans::of_pages(&[0], 5, &[false]), Spans::default());
    }

    #[test]
    fn rows_that_are_in_both() {
        let both = spans([0..20, 30..35]).and(&spans([5..7, 10..31, 34..40]));
        assert_eq!(both, spans([5..7, 10..20, 30..31, 34..35]));
        assert!(spans([0..5, 7..8]).and(&spans([5..7, 8..9])).is_empty());
    }

    #[test]
    fn whole_groups_need_no_selection() {
        let part = |group, spans| GroupRows { group, spans };
        let all = [part(1, Spans::all(5)), part(2, Spans::all(3))];
        assert!(selection(&all, &[9, 5, 3]).is_none());
        let some = [part(1, spans([1..2, 4..5])), part(2, Spans::all(3))];
        let chosen = selection(&some, &[9, 5, 3]).unwrap();
        assert_eq!((chosen.row_count(), chosen.skipped_row_count()), (5, 3));
    }
}
