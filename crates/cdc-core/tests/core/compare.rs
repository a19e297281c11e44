//! What do rows have in common that two targets must share?

use proptest::prelude::*;
use strandline_testkit::{
    generate::{Domain, arrivals, history},
    reference::{Event, Row},
};

use crate::flow::sorted;

/// Arrivals of histories of the domain.
pub(crate) fn arrived(domain: &Domain, longest: usize) -> impl Strategy<Value = Vec<Vec<Event>>> + use<> {
    history(domain, 0..longest).prop_flat_map(arrivals)
}

/// The rows without these columns.
pub(crate) fn without(rows: Vec<Row>, names: &[&str]) -> Vec<Row> {
    let strip = |mut row: Row| {
        row.retain(|name, _| !names.contains(&name.as_str()));
        row
    };
    sorted(rows.into_iter().map(strip).collect())
}

/// The rows that have no end.
pub(crate) fn open(rows: Vec<Row>, end: &str) -> Vec<Row> {
    rows.into_iter().filter(|row| row[end].is_null()).collect()
}
