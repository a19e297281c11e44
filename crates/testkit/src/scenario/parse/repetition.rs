//! How does one row stand for many?

use std::ops::Range;

use crate::random::Random;

/// `for n in 0..10`, perhaps ` shuffled`: the next row once for every number, in which cells of whole numbers may say `n`,
/// `n+1` or `n-1`.
pub(super) struct Repetition {
    name: String,
    range: Range<i64>,
    shuffled: bool,
}

impl Repetition {
    /// Reads what follows the word `for`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected `for n in 0..10`, perhaps `shuffled`, not `for {text}`");
        let (name, range) = text.split_once(" in ").ok_or_else(wrong)?;
        let (range, shuffled) = match range.split_once(' ') {
            None => (range, false),
            Some((range, "shuffled")) => (range, true),
            Some(_) => return Err(wrong()),
        };
        let (from, to) = range.split_once("..").ok_or_else(wrong)?;
        let range = from.parse().map_err(|_| wrong())?..to.parse().map_err(|_| wrong())?;
        Ok(Self { name: name.to_owned(), range, shuffled })
    }

    /// The numbers, in the order of the rows. What is shuffled is so in the same way every time.
    pub(super) fn numbers(&self) -> Vec<i64> {
        let mut numbers: Vec<i64> = self.range.clone().collect();
        if self.shuffled {
            Random::new(1).shuffle(&mut numbers);
        }
        numbers
    }

    /// The cell for one of the numbers.
    pub(super) fn cell(&self, text: &str, number: i64) -> String {
        let more = text.strip_prefix(&self.name).map(|rest| if rest.is_empty() { "+0" } else { rest });
        let more = more.filter(|rest| rest.starts_with(['+', '-'])).and_then(|rest| rest.parse::<i64>().ok());
        more.map_or_else(|| text.to_owned(), |more| number.saturating_add(more).to_string())
    }
}
