//! Which known word did the author mean?

/// The candidate nearest to `word`, if it is near enough to be a slip of the pen.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_uppercase();
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_uppercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Number of insertions, deletions and replacements between two words.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().take(64).enumerate() {
        let mut next = vec![i + 1];
        let mut last = i + 1;
        for ((right, above), corner) in b.iter().zip(row.iter().skip(1)).zip(&row) {
            let replaced = corner + usize::from(left != *right);
            last = replaced.min(above + 1).min(last + 1);
            next.push(last);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
