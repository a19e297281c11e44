//! What does a new pipeline look like?

use std::path::Path;

use crate::{failure::Failure, show::say};

const FILES: [(&str, &str); 6] = [
    (".gitignore", include_str!("init/gitignore")),
    ("pipeline.yml", include_str!("init/pipeline.yml")),
    ("transformations/customers.sql", include_str!("init/customers.sql")),
    ("changes/0001.json", include_str!("init/0001.json")),
    ("changes/0002.json", include_str!("init/0002.json")),
    ("changes/0003.json", include_str!("init/0003.json")),
];

/// Writes a small pipeline, unless a file of it exists.
pub(crate) fn init(folder: &Path) -> Result<(), Failure> {
    let existing: Vec<&str> =
        FILES.iter().map(|(name, _)| *name).filter(|name| folder.join(name).exists()).collect();
    if !existing.is_empty() {
        return Err(Failure::wrong(format!(
            "error: {} exists in {}; nothing was written\n  help: choose an empty folder: strandline init NAME",
            existing.join(", "),
            folder.display()
        )));
    }
    let name = std::path::absolute(folder).ok();
    let name = name.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    for (file, text) in FILES {
        let text = text.replace("NAME", &quoted(name.as_deref().unwrap_or("pipeline")));
        write(&folder.join(file), &text)?;
    }
    let enter = if folder == Path::new(".") { String::new() } else { format!("cd {}\n  ", folder.display()) };
    say(&format!(
        "made a pipeline in {}; try:\n  {enter}strandline run\n  strandline query \"SELECT * FROM customers_history\"",
        folder.display()
    ));
    Ok(())
}

/// A name as YAML takes it, whatever is in it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain) {
        return name.to_owned();
    }
    serde_json::Value::from(name).to_string()
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    let failed = |e| Failure::wrong(format!("error: {} can't be written: {e}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    // Also a file that came in the meantime is not overwritten.
    let mut file = std::fs::File::options().write(true).create_new(true).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
