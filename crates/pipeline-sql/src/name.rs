//! How are names written down?
//!
//! A name in a definition is one string. The parts of a qualified name are joined by dots; a part that was quoted
//! loses its quotes.

use sqlparser::keywords::ALL_KEYWORDS;

/// A column, flow or option name in SQL.
pub(crate) fn quoted(name: &str) -> String {
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && ALL_KEYWORDS.binary_search(&name.to_uppercase().as_str()).is_err();
    if plain { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}

/// A dataset name in SQL.
pub(crate) fn qualified(name: &str) -> String {
    let first = name.split('.').next().unwrap_or_default();
    // As a part of its own, LIVE would be taken for the pipeline itself.
    if name.split('.').any(str::is_empty) || first.len() < name.len() && first.eq_ignore_ascii_case("live") {
        return quoted(name);
    }
    name.split('.').map(quoted).collect::<Vec<_>>().join(".")
}

/// A list of column names in parentheses.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    format!("({})", names.iter().map(|name| quoted(name.as_ref())).collect::<Vec<_>>().join(", "))
}

/// A string literal in SQL, in which nothing stands for a setting's value.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''").replace("${", "\\${"))
}
