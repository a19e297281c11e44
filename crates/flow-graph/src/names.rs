//! Which declared thing does a written name mean?
//!
//! An exact match wins; without one, a single match that ignores case.

use std::collections::BTreeMap;

/// What a written name stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The thing at this place.
    One(usize),
    /// Nothing; these names look like it.
    Nothing(Vec<String>),
    /// Several things whose names differ in case only.
    Several(Vec<String>),
}

/// Declared names by their place.
#[derive(Debug)]
pub(crate) struct Names {
    exact: BTreeMap<String, usize>,
    folded: BTreeMap<String, Vec<String>>,
}

impl Names {
    /// Of equal names the first one counts.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut exact, mut folded) = (BTreeMap::new(), BTreeMap::<String, Vec<String>>::new());
        for (place, name) in names.into_iter().enumerate() {
            if !exact.contains_key(name) {
                exact.insert(name.to_owned(), place);
                folded.entry(name.to_lowercase()).or_default().push(name.to_owned());
            }
        }
        Self { exact, folded }
    }

    pub(crate) fn find(&self, name: &str) -> Found {
        if let Some(place) = self.exact.get(name) {
            return Found::One(*place);
        }
        let candidates = self.folded.get(&name.to_lowercase()).map_or(&[][..], Vec::as_slice);
        match candidates {
            [] => Found::Nothing(self.similar(name)),
            [one] => self.exact.get(one).map_or(Found::Nothing(Vec::new()), |place| Found::One(*place)),
            several => Found::Several(several.to_vec()),
        }
    }

    /// Up to three declared names within two edits (one for short names), nearest first.
    fn similar(&self, name: &str) -> Vec<String> {
        let limit = if name.chars().count() < 4 { 1 } else { 2 };
        let name = name.to_lowercase();
        let mut near: Vec<_> = self
            .exact
            .iter()
            .filter(|(declared, _)| declared.len().abs_diff(name.len()) <= 8)
            .map(|(declared, place)| (distance(&name, &declared.to_lowercase()), *place, declared))
            .filter(|(distance, _, _)| *distance <= limit)
            .collect();
        near.sort();
        near.into_iter().take(3).map(|(_, _, declared)| declared.clone()).collect()
    }
}

/// The number of characters to insert, remove or replace to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (line, left) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut before = line.saturating_add(1);
        let mut next = vec![before];
        for (above, right) in row.iter().skip(1).zip(to.chars()) {
            let replaced = diagonal.saturating_add(usize::from(left != right));
            before = replaced.min(above.saturating_add(1)).min(before.saturating_add(1));
            diagonal = *above;
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (from, to, edits) in
            [("", "", 0), ("", "ab", 2), ("event", "events", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!((distance(from, to), distance(to, from)), (edits, edits), "{from} {to}");
        }
    }

    #[test]
    fn exact_then_case_insensitive_then_similar_names() {
        let names = Names::new(["Orders", "orders", "Events"]);
        assert_eq!(names.find("orders"), Found::One(1));
        assert_eq!(names.find("EVENTS"), Found::One(2));
        assert_eq!(names.find("ORDERS"), Found::Several(vec!["Orders".into(), "orders".into()]));
        assert_eq!(names.find("evnts"), Found::Nothing(vec!["Events".into()]));
        assert_eq!(names.find("order"), Found::Nothing(vec!["Orders".into(), "orders".into()]));
        assert_eq!(names.find("zzz"), Found::Nothing(vec![]));
    }
}
