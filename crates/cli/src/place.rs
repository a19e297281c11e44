//! Where does a pipeline keep its tables, and how is that place reached?

use std::{collections::BTreeMap, path::Path, sync::Arc};

use object_store::{ObjectStore, memory::InMemory};
use strandline_runtime::{Error, Location, Storage, StoreOptions, storage::is_url};
use strandline_table_formats::{
    DeltaFormat, Error as TableError, ErrorKind as TableErrorKind,
    iceberg::{CatalogOptions, IcebergFormat, Warehouse},
};

use crate::{
    args::{Format, StoreArgs},
    failure::Failure,
    load::absolute,
};

/// A place as it was named: a path or a URL, with options.
pub(crate) struct Place {
    at: String,
    options: StoreOptions,
    /// What a `pipeline.yml` says of the format.
    format: Option<Format>,
    /// How tables are listed, for formats that need a catalog.
    catalog: BTreeMap<String, String>,
}

/// Secrets of a catalog, by the variables of the environment that hold them.
const CATALOG_SECRETS: [(&str, &str); 2] =
    [("credential", "STRANDLINE_CATALOG_CREDENTIAL"), ("token", "STRANDLINE_CATALOG_TOKEN")];

impl Place {
    /// What the call names, else what a `pipeline.yml` in `base` does. Options of both count; those of the call win.
    pub(crate) fn named(
        args: &StoreArgs,
        spec: Option<(&Path, &str)>,
        spec_options: &BTreeMap<String, String>,
    ) -> Option<Self> {
        let at = match (&args.storage, spec) {
            (Some(at), _) => at.clone(),
            (None, Some((_, at))) if is_url(at) => at.to_owned(),
            (None, Some((base, at))) => base.join(at).to_string_lossy().into_owned(),
            (None, None) => return None,
        };
        let options = StoreOptions::new()
            .with_environment(std::env::vars_os().filter_map(|(name, value)| {
                // What is no text can't be meant for us.
                Some((name.into_string().ok()?, value.into_string().ok()?))
            }))
            .with_options(spec_options.clone())
            .with_options(args.storage_options.iter().cloned());
        Some(Self { at, options, format: None, catalog: args.catalog.iter().cloned().collect() })
    }

    /// The same with what a `pipeline.yml` says of its tables. What the call says wins.
    pub(crate) fn with_tables(
        mut self,
        format: Option<Format>,
        catalog: impl Iterator<Item = (String, String)>,
    ) -> Self {
        self.format = format;
        for (name, value) in catalog {
            self.catalog.entry(name).or_insert(value);
        }
        self
    }

    /// Opens the place; a local folder is made where it is missing.
    pub(crate) async fn open(&self, format: Option<Format>) -> Result<Storage, Failure> {
        self.with_format(Location::open(&self.at, &self.options)?, format).await
    }

    /// Opens the place if a pipeline ran there: asking a question must not make a folder.
    pub(crate) async fn existing(&self, format: Option<Format>) -> Result<Option<Storage>, Failure> {
        let folder = if is_url(&self.at) { None } else { Some(absolute(Path::new(&self.at))?) };
        let folder = folder.or_else(|| self.at.strip_prefix("file://").map(Into::into));
        if folder.is_some_and(|folder| !folder.is_dir()) {
            return Ok(None);
        }
        let location = Location::open(&self.at, &self.options)?;
        // A folder that is empty may be one that was made to be used.
        if location.folder.is_none() && location.is_empty().await? {
            return Ok(None);
        }
        // To open an SQL catalog would make one.
        if format.or(self.format) == Some(Format::Iceberg) && location.recorded_format().await?.is_none() {
            return Ok(None);
        }
        Ok(Some(self.with_format(location, format).await?))
    }

    /// The storage with its tables in the format that is asked for, else in the one that they have.
    async fn with_format(&self, location: Location, asked: Option<Format>) -> Result<Storage, Failure> {
        let recorded = location.recorded_format().await?;
        let asked = asked.or(self.format);
        let format = match (asked, recorded.as_deref()) {
            (Some(asked), Some(recorded)) if asked.name() != recorded => {
                return Err(Failure::wrong(format!(
                    "error: the tables in {} are of format {recorded}, not {}\n  help: leave --format out, or name another storage",
                    self.at,
                    asked.name()
                )));
            }
            (Some(asked), _) => asked,
            (None, Some("iceberg")) => Format::Iceberg,
            (None, _) => Format::Delta,
        };
        match format {
            Format::Delta => {
                if let Some(name) = self.catalog.keys().next() {
                    return Err(Failure::wrong(format!(
                        "error: Delta tables are listed in no catalog: `{name}` is a setting of --format iceberg"
                    )));
                }
                Ok(delta(location))
            }
            Format::Iceberg => self.iceberg(location).await,
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "secrets come from the environment: no list of processes shows them"
    )]
    async fn iceberg(&self, location: Location) -> Result<Storage, Failure> {
        let url = match (&location.folder, &location.url) {
            // Readers of Iceberg take a file's URL as it is written, and undo no encoding.
            (Some(folder), _) => format!("file://{}", folder.display()),
            (None, Some(url)) => url.clone(),
            (None, None) => "memory://".to_owned(),
        };
        let warehouse = Warehouse::new(Arc::clone(&location.store), &url);
        let mut settings = self.catalog.clone();
        for (name, variable) in CATALOG_SECRETS {
            if let Ok(secret) = std::env::var(variable) {
                settings.entry(name.to_owned()).or_insert(secret);
            }
        }
        let catalog = CatalogOptions::parse(&settings).map_err(wrong)?;
        let catalog = catalog.open(&warehouse, location.folder.as_deref()).await.map_err(wrong)?;
        Ok(location.with_format(Arc::new(IcebergFormat::new(catalog, warehouse))))
    }

    /// As it was named.
    pub(crate) fn text(&self) -> &str {
        &self.at
    }
}

/// What is wrong with a catalog: how it is named, or that it can't be used.
fn wrong(error: TableError) -> Failure {
    let is_call = error.kind() == TableErrorKind::Invalid;
    let failure = Failure::from(Error::from(error));
    if is_call { Failure::wrong(failure.text) } else { failure }
}

/// A storage that holds nothing.
pub(crate) fn nowhere() -> Storage {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    delta(Location { store, folder: None, url: None })
}

/// Delta tables live in `tables/`, everything of the engine's own in `_strandline/`.
fn delta(location: Location) -> Storage {
    let format = DeltaFormat::new(Arc::clone(&location.store), object_store::path::Path::from("tables"));
    location.with_format(Arc::new(format))
}
