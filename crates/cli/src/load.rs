//! Which files make up a pipeline, and where does it keep its tables?
//!
//! A pipeline is one SQL file, or a `pipeline.yml` in the shape of Spark's pipeline spec:
//!
//! ```yaml
//! name: customers
//! storage: ./lake
//! libraries:
//!   - glob:
//!       include: transformations/**/*.sql
//! configuration:
//!   pipelines.maxFlowRetryAttempts: "1"
//! ```

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use object_store::{ObjectStore, memory::InMemory};
use serde::Deserialize;
use strandline_runtime::{
    Project, Storage,
    definition::{PipelineDefinition, SourceFile, parse_pipeline},
};
use strandline_table_formats::{DeltaFormat, DurableLocal};

use crate::{
    args::{Format, PipelineArgs},
    failure::Failure,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    name: String,
    storage: Option<PathBuf>,
    #[serde(default)]
    libraries: Vec<Library>,
    #[serde(default)]
    configuration: BTreeMap<String, String>,
    // Accepted as in Spark's spec; tables are named without catalog and schema here.
    #[serde(default, rename = "catalog")]
    _catalog: Option<String>,
    #[serde(default, rename = "schema", alias = "database")]
    _schema: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Library {
    #[serde(alias = "file")]
    glob: Glob,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Glob {
    Include { include: String },
    Path(String),
}

/// What a pipeline is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To run it: it needs a storage, which is made where it is missing.
    Run,
    /// To look at it: a storage that does not exist stays so.
    Look,
}

/// Reads a pipeline and opens its storage.
pub(crate) fn project(args: &PipelineArgs, purpose: Purpose) -> Result<Project, Failure> {
    let is_spec = args.file.extension().is_some_and(|e| e == "yml" || e == "yaml");
    let base = absolute(args.file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    let spec = if is_spec { Some(read_spec(&args.file)?) } else { None };
    let files = match &spec {
        Some(spec) => spec_files(spec, &base, &args.file)?,
        None => vec![args.file.clone()],
    };
    let name = match &spec {
        Some(spec) => spec.name.clone(),
        None => args.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    let from_spec =
        spec.as_ref().and_then(|spec| spec.storage.as_ref()).map(|folder| base.join(strip_scheme(folder)));
    let mut definition = parse(&files)?;
    let folder = args.storage.clone().or(from_spec);
    let storage = match folder {
        Some(folder) if purpose == Purpose::Run || folder.is_dir() => storage(&folder, args.format)?,
        _ if purpose == Purpose::Look => over(Arc::new(InMemory::new()), args.format, None),
        _ => {
            return Err(Failure::wrong(
                "error: no storage folder is given\n  help: say --storage DIR, or name it in pipeline.yml",
            ));
        }
    };
    if let Some(spec) = spec {
        for (key, value) in spec.configuration {
            definition.settings.entry(key).or_insert(value);
        }
    }
    let folders = files
        .iter()
        .map(|file| absolute(file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Project::new(&name, definition, &folders, storage))
}

/// Spark writes `file:///..` there.
fn strip_scheme(folder: &Path) -> PathBuf {
    let text = folder.to_string_lossy();
    text.strip_prefix("file://").map_or_else(|| folder.to_owned(), PathBuf::from)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|e| Failure::wrong(format!("error: {}: {e}", path.display())))
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|e| Failure::wrong(format!("error: {} can't be read: {e}", file.display())))
}

fn read_spec(file: &Path) -> Result<Spec, Failure> {
    serde_norway::from_str(&read(file)?)
        .map_err(|e| Failure::wrong(format!("error: {} is no pipeline spec: {e}", file.display())))
}

fn spec_files(spec: &Spec, base: &Path, file: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for library in &spec.libraries {
        let (Glob::Include { include } | Glob::Path(include)) = &library.glob;
        // `**` alone means folders to the matcher, and everything below to a user.
        let include = if include.ends_with("**") { &format!("{include}/*") } else { include };
        let pattern = base.join(include);
        let found = glob::glob(&pattern.to_string_lossy()).map_err(|e| {
            Failure::wrong(format!("error: {}: `{include}` is no pattern: {e}", file.display()))
        })?;
        let mut found: Vec<PathBuf> = found
            .filter_map(Result::ok)
            .filter(|path| path.extension().is_some_and(|e| e == "sql"))
            .collect();
        if found.is_empty() {
            return Err(Failure::wrong(format!(
                "error: {}: no SQL file matches `{include}`",
                file.display()
            )));
        }
        found.sort();
        files.extend(found.into_iter().filter(|path| !files.contains(path)).collect::<Vec<_>>());
    }
    if files.is_empty() {
        return Err(Failure::wrong(format!(
            "error: {} names no SQL files under `libraries`",
            file.display()
        )));
    }
    Ok(files)
}

fn parse(files: &[PathBuf]) -> Result<PipelineDefinition, Failure> {
    let sources = files
        .iter()
        .map(|file| Ok(SourceFile::new(file.display().to_string(), read(file)?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    parse_pipeline(&sources).map_err(|errors| {
        let shown = errors.iter().map(|error| {
            let text =
                sources.iter().find(|source| source.name == error.file).map_or("", |source| &source.text);
            error.render(text)
        });
        Failure::wrong(shown.collect::<Vec<_>>().join("\n"))
    })
}

/// Opens a storage folder; tables live in `tables/`, everything of the engine's own in `_strandline/`.
pub(crate) fn storage(folder: &Path, format: Format) -> Result<Storage, Failure> {
    let folder = absolute(folder)?;
    let store = DurableLocal::new(&folder)
        .map_err(|e| Failure::wrong(format!("error: {} can't be used as storage: {e}", folder.display())))?;
    Ok(over(Arc::new(store), format, Some(folder)))
}

fn over(store: Arc<dyn ObjectStore>, format: Format, folder: Option<PathBuf>) -> Storage {
    let format = match format {
        Format::Delta => DeltaFormat::new(Arc::clone(&store), object_store::path::Path::from("tables")),
    };
    Storage { store, format: Arc::new(format), folder }
}
