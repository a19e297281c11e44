//! Which files make up a pipeline, and where does it keep its tables?
//!
//! A pipeline is one SQL file, or a `pipeline.yml` in the shape of Spark's pipeline spec:
//!
//! ```yaml
//! name: customers
//! storage: ./lake                     # or a URL: s3://bucket/prefix
//! format: iceberg                     # delta without it
//! storage_options:                    # how the store of a URL is reached; secrets are better in the environment
//!   aws_region: eu-central-1
//! continuous: false
//! libraries:                          # without it, what lies in `transformations`
//!   - glob:
//!       include: transformations/**/*.sql
//! configuration:
//!   pipelines.maxFlowRetryAttempts: "1"
//!   changes: ../changes/*.json        # ${changes} in SQL
//! ```

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer};
use strandline_runtime::{
    Project, Storage,
    definition::{PipelineDefinition, SourceFile, Support, Values, parse_pipeline_with_values},
    storage::is_url,
};

use crate::{
    args::{FileArgs, Format, PipelineArgs, StorageArgs, StoreArgs},
    failure::Failure,
    place::{Place, nowhere},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    name: String,
    storage: Option<String>,
    #[serde(default, deserialize_with = "scalars")]
    storage_options: BTreeMap<String, String>,
    /// Of the tables; without it, that of the storage.
    #[serde(default)]
    format: Option<Format>,
    #[serde(default)]
    continuous: bool,
    // Spark's spec called them `definitions` at first.
    #[serde(default = "transformations", alias = "definitions")]
    libraries: Vec<Library>,
    #[serde(default, deserialize_with = "scalars")]
    configuration: BTreeMap<String, String>,
    // Accepted as in Spark's spec; tables are named without catalog and schema here.
    #[serde(default, rename = "catalog")]
    _catalog: Option<String>,
    #[serde(default, rename = "schema", alias = "database")]
    _schema: Option<String>,
}

impl Spec {
    /// Where it keeps its tables, unless the call says otherwise.
    fn place(&self, args: &StoreArgs, base: &Path) -> Option<Place> {
        let place = Place::named(args, self.storage.as_deref().map(|at| (base, at)), &self.storage_options)?;
        let of_catalog = |(name, value): (&String, &String)| {
            name.strip_prefix("catalog.").map(|name| (name.to_owned(), value.clone()))
        };
        Some(place.with_tables(self.format, self.configuration.iter().filter_map(of_catalog)))
    }
}

/// What is read where a spec names nothing.
fn transformations() -> Vec<Library> {
    vec![Library { glob: Glob::Path("transformations/**".to_owned()) }]
}

/// Values of a configuration are text; YAML's numbers and truth values are taken as they are written.
fn scalars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Scalar {
        Text(String),
        Truth(bool),
        Whole(i64),
        Number(f64),
    }
    let text = |scalar| match scalar {
        Scalar::Text(text) => text,
        Scalar::Truth(truth) => truth.to_string(),
        Scalar::Whole(number) => number.to_string(),
        Scalar::Number(number) => number.to_string(),
    };
    let values = BTreeMap::<String, Scalar>::deserialize(deserializer)?;
    Ok(values.into_iter().map(|(key, value)| (key, text(value))).collect())
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

/// A pipeline as its files say it is.
pub(crate) struct Loaded {
    pub(crate) project: Project,
    /// Flows go on until the update is stopped.
    pub(crate) continuous: bool,
}

/// What the files of a pipeline say, before its storage is opened.
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) definition: PipelineDefinition,
    /// The folder that paths in each file start from.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) storage: Option<Place>,
    pub(crate) continuous: bool,
}

/// Reads a pipeline and opens its storage.
pub(crate) async fn project(args: &PipelineArgs, purpose: Purpose) -> Result<Project, Failure> {
    Ok(pipeline(args, purpose, None).await?.project)
}

/// As [`project`], with a setting that the call implies.
pub(crate) async fn pipeline(
    args: &PipelineArgs,
    purpose: Purpose,
    setting: Option<(String, String)>,
) -> Result<Loaded, Failure> {
    let text = text(&args.files, setting)?;
    let storage = match (purpose, &text.storage) {
        (Purpose::Run, Some(place)) => place.open(args.format).await?,
        (Purpose::Run, None) => {
            return Err(Failure::wrong(
                "error: no storage folder is given\n  help: say --storage DIR or --storage URL, or name it in pipeline.yml",
            ));
        }
        (Purpose::Look, Some(place)) => place.existing(args.format).await?.unwrap_or_else(nowhere),
        (Purpose::Look, None) => nowhere(),
    };
    let Text { name, definition, folders, continuous, .. } = text;
    Ok(Loaded { project: Project::new(&name, definition, &folders, storage), continuous })
}

/// Reads the files of a pipeline. What the call sets comes before what they say.
pub(crate) fn text(args: &FileArgs, setting: Option<(String, String)>) -> Result<Text, Failure> {
    let overrides = args.settings.iter().cloned().chain(setting).collect();
    let file = match &args.file {
        Some(file) => file.clone(),
        None => found_spec()?,
    };
    let base = absolute(folder_of(&file))?;
    let stem = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let is_spec = file.extension().is_some_and(|e| e == "yml" || e == "yaml");
    let spec = if is_spec { Some(read_spec(&file)?) } else { None };
    let files = match &spec {
        Some(spec) => spec_files(spec, &base, &file)?,
        None => vec![file.clone()],
    };
    let folders = files.iter().map(|file| absolute(folder_of(file))).collect::<Result<Vec<_>, _>>()?;
    let (name, storage, continuous, defaults) = match spec {
        Some(spec) => {
            let storage = spec.place(&args.store, &base);
            (spec.name, storage, spec.continuous, spec.configuration)
        }
        None => (stem(), Place::named(&args.store, None, &BTreeMap::new()), false, BTreeMap::new()),
    };
    let definition = parse(&files, &Values { defaults, overrides })?;
    Ok(Text { name, definition, folders, storage, continuous })
}

/// The spec of the working folder, or of the nearest one above it that has one.
fn found_spec() -> Result<PathBuf, Failure> {
    let here = absolute(Path::new("."))?;
    let specs =
        here.ancestors().flat_map(|folder| ["pipeline.yml", "pipeline.yaml"].map(|name| folder.join(name)));
    specs.into_iter().find(|spec| spec.is_file()).ok_or_else(|| {
        Failure::wrong(
            "error: there is no pipeline.yml here or in a folder above\n  help: name a SQL file or a pipeline.yml; `strandline init` makes a pipeline",
        )
    })
}

/// Opens a storage that must exist: asking a question must not make a folder.
pub(crate) async fn existing(args: &StorageArgs) -> Result<Storage, Failure> {
    let place = if args.store.storage.is_some() {
        Place::named(&args.store, None, &BTreeMap::new())
    } else {
        let file = found_spec()?;
        let place = read_spec(&file)?.place(&args.store, &absolute(folder_of(&file))?);
        if place.is_none() {
            return Err(Failure::wrong(format!(
                "error: {} names no storage\n  help: say --storage DIR or --storage URL",
                file.display()
            )));
        }
        place
    };
    let Some(place) = place else { return Ok(nowhere()) };
    place.existing(args.format).await?.ok_or_else(|| {
        let what = if is_url(place.text()) { "nothing in the storage" } else { "no storage folder" };
        Failure::wrong(format!("error: there is {what} {}\n  help: `strandline run` makes it", place.text()))
    })
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
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

fn parse(files: &[PathBuf], values: &Values) -> Result<PipelineDefinition, Failure> {
    let sources = files
        .iter()
        .map(|file| Ok(SourceFile::new(file.display().to_string(), read(file)?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    parse_pipeline_with_values(&sources, &Support::released(), values).map_err(|errors| {
        let shown = errors.iter().map(|error| {
            let text =
                sources.iter().find(|source| source.name == error.file).map_or("", |source| &source.text);
            error.render(text)
        });
        Failure::wrong(shown.collect::<Vec<_>>().join("\n"))
    })
}
