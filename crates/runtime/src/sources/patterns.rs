//! Which files does a path with wildcards mean?
//!
//! `*` and `?` stay within a name, `**` does not, `[a-c]` and `[^a-c]` are classes, `{a,b}` are alternatives. A pattern that
//! matches a folder means all that is below it. Names that begin with `.` or `_` are left out, as Spark does.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// So many alternatives are tried.
const MOST: usize = 1000;

/// A pattern, split into the folder to list and what to look for in it.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// The folder that is listed.
    pub(super) root: String,
    /// What paths below it look like; none for all of them.
    alternatives: Vec<glob::Pattern>,
    /// What the names of files look like.
    name: Vec<glob::Pattern>,
    /// The path has no wildcard, so its file must be there.
    pub(super) names_one_file: bool,
}

const MATCH: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

impl Pattern {
    /// The folder to list is the deepest one that exists as it is written, so that a folder may have brackets in its name;
    /// what follows is the pattern. A file that exists as it is written is that file.
    pub(super) fn new(path: &str, name: Option<&str>) -> Result<Self> {
        let local = path.strip_prefix("file://").unwrap_or(path);
        if let Some((scheme, _)) = local.split_once("://") {
            return Err(Error::new(ErrorKind::Unsupported, "files are read from the local file system only")
                .with("path", path)
                .with("scheme", scheme)
                .help("mount the store, or copy the files"));
        }
        let name = name.map_or(Ok(Vec::new()), |name| compiled(name, path))?;
        let whole = Path::new(local);
        if whole.is_dir() {
            return Ok(Self {
                root: local.to_owned(),
                alternatives: Vec::new(),
                name,
                names_one_file: false,
            });
        }
        let mut root = if local.starts_with('/') { "/".to_owned() } else { ".".to_owned() };
        let mut parts = split(local).into_iter().filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.peek() {
            let deeper = Path::new(&root).join(part);
            if !deeper.is_dir() && is_magic(part) || parts.clone().count() == 1 {
                break;
            }
            root = deeper.to_string_lossy().into_owned();
            parts.next();
        }
        let rest = parts.collect::<Vec<_>>().join("/");
        let names_one_file = whole.is_file() || !is_magic(&rest);
        let alternatives = if names_one_file { vec![literal(&rest, path)?] } else { compiled(&rest, path)? };
        Ok(Self { root, alternatives, name, names_one_file })
    }

    /// Whether a path below the root is meant.
    pub(super) fn matches(&self, path: &str) -> bool {
        if path.split('/').any(|part| part.starts_with(['.', '_'])) {
            return false;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        if !self.name.is_empty() && !self.name.iter().any(|pattern| pattern.matches_with(name, MATCH)) {
            return false;
        }
        let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        let mut meant = std::iter::once(path).chain(folders);
        self.alternatives.is_empty()
            || meant.any(|path| self.alternatives.iter().any(|pattern| pattern.matches_with(path, MATCH)))
    }
}

fn is_magic(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The parts of a path; a `/` within braces or brackets does not end one.
fn split(path: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    path.split(move |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '/' && depth == 0
    })
    .collect()
}

fn literal(text: &str, path: &str) -> Result<glob::Pattern> {
    glob::Pattern::new(&glob::Pattern::escape(text)).map_err(|e| {
        Error::new(ErrorKind::Definition, "the path can't be read").with("path", path).because(e)
    })
}

fn compiled(pattern: &str, path: &str) -> Result<Vec<glob::Pattern>> {
    let wrong = |why: &str| {
        Error::new(ErrorKind::Definition, format!("the path is no valid pattern: {why}")).with("path", path)
    };
    let texts = alternatives(pattern)
        .ok_or_else(|| wrong(&format!("braces do not match, or give more than {MOST} alternatives")))?;
    texts
        .iter()
        .map(|text| glob::Pattern::new(&text.replace("[^", "[!")).map_err(|e| wrong(&e.to_string())))
        .collect()
}

/// The texts without braces that a pattern stands for. Braces within a class are characters.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(text) = open.pop() {
        if done.len() + open.len() > MOST {
            return None;
        }
        let Braces { from, to, parts } = first_braces(&text)?;
        if parts.is_empty() {
            done.push(text);
            continue;
        }
        let (before, after) = (text.get(..from)?, text.get(to..)?);
        open.extend(parts.iter().rev().map(|part| format!("{before}{part}{after}")));
    }
    Some(done)
}

/// Where braces begin and end, and what stands between their commas; no parts where there are none.
#[derive(Default)]
struct Braces {
    from: usize,
    to: usize,
    parts: Vec<String>,
}

/// The first braces of a text; `None` where they do not match.
fn first_braces(text: &str) -> Option<Braces> {
    let (mut from, mut depth, mut class) = (None, 0_usize, false);
    let mut parts = vec![String::new()];
    for (at, c) in text.char_indices() {
        let within = depth > 0;
        match c {
            '[' => class = true,
            ']' => class = false,
            '{' if !class => {
                depth += 1;
                if depth == 1 {
                    from = Some(at);
                    continue;
                }
            }
            '}' if !class => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(Braces { from: from?, to: at + 1, parts });
                }
            }
            ',' if depth == 1 && !class => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if within {
            parts.last_mut()?.push(c);
        }
    }
    (depth == 0).then(Braces::default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(rest: &str) -> Pattern {
        let alternatives = compiled(rest, rest).unwrap();
        Pattern { root: "/".to_owned(), alternatives, name: Vec::new(), names_one_file: false }
    }

    #[test]
    fn r19_patterns_mean_what_spark_means() {
        for (rest, meant, not) in [
            ("*.json", &["a.json", "b.json/part-1"][..], &["a.csv", "x/a.json", ".a.json", "_a.json"][..]),
            ("**/*.json", &["a.json", "x/y/a.json"], &["x/a.csv", "_x/a.json", "x/.y/a.json"]),
            ("year=*/*.json", &["year=2024/a.json"], &["a.json", "year=2024/m=1/a.json"]),
            (
                "{2024,2025}/{0[1-3],1*}/x.csv",
                &["2024/02/x.csv", "2025/12/x.csv"],
                &["2026/02/x.csv", "2024/04/x.csv"],
            ),
            ("a{b,c{d,e}}f", &["abf", "acdf", "acef"], &["acf", "af"]),
            ("[^a]?", &["bc"], &["ab", "b"]),
            ("2024", &["2024/x/y.json"], &["2025/y.json"]),
            ("x[{,}]y", &["x{y", "x,y"], &["xy"]),
        ] {
            let pattern = pattern(rest);
            for path in meant {
                assert!(pattern.matches(path), "{rest} means {path}");
            }
            for path in not {
                assert!(!pattern.matches(path), "{rest} does not mean {path}");
            }
        }
    }

    #[test]
    fn only_the_literal_folder_is_listed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_string_lossy().into_owned();
        std::fs::create_dir_all(folder.path().join("a[1]/b")).unwrap();
        std::fs::write(folder.path().join("a[1]/b/c{x}.json"), "").unwrap();
        let found = |path: &str| Pattern::new(&format!("{root}/{path}"), None).unwrap();
        assert_eq!(found("a[1]/b/*.json").root, format!("{root}/a[1]/b"));
        assert_eq!(found("a[1]/{b,c}/d/*.json").root, format!("{root}/a[1]"));
        assert_eq!(found("a[1]").root, format!("{root}/a[1]"));
        let file = found("a[1]/b/c{x}.json");
        assert!(file.names_one_file && file.matches("c{x}.json") && !file.matches("cx.json"));
        let filtered = Pattern::new(&format!("file://{root}/a[1]"), Some("*.{json,csv}")).unwrap();
        assert!(filtered.matches("b/x.csv") && !filtered.matches("b/x.txt"));
        let error = Pattern::new("s3://bucket/x", None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(Pattern::new("/nowhere/{a,b", None).is_err());
        assert!(Pattern::new(&format!("/nowhere/{}", "{a,b}".repeat(11)), None).is_err());
    }
}
