//! Where are the scenario files, and do all of them parse?

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Scenario, parse};

/// A file that could not be read as a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

impl std::error::Error for LoadError {}

/// A folder of this repository's scenarios: `worked`, `reports`, `spark`.
pub fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

/// The scenarios of all `.scn` files in a folder, ordered by name.
///
/// # Errors
/// The first file that cannot be read or parsed, and a folder without scenarios.
pub fn load_dir(folder: &Path) -> Result<Vec<Scenario>, LoadError> {
    let at = |path: &Path, message: String| LoadError { path: path.to_owned(), message };
    let io = |error: std::io::Error| at(folder, error.to_string());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|extension| extension == "scn") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(at(folder, "no scenario here".to_owned()));
    }
    let load = |path: &PathBuf| {
        let text = fs::read_to_string(path).map_err(|error| at(path, error.to_string()))?;
        let scenario = parse(&text).map_err(|error| at(path, error.to_string()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Scenario { name, ..scenario })
    };
    files.iter().map(load).collect()
}
