//! Where does a pipeline keep its tables, and how is that place reached?

use std::{collections::BTreeMap, path::Path, sync::Arc};

use object_store::{ObjectStore, memory::InMemory};
use strandline_runtime::{Location, Storage, StoreOptions, storage::is_url};
use strandline_table_formats::{DeltaFormat, TableFormat};

use crate::{
    args::{Format, StoreArgs},
    failure::Failure,
    load::absolute,
};

/// A place as it was named: a path or a URL, with options.
pub(crate) struct Place {
    at: String,
    options: StoreOptions,
}

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
        Some(Self { at, options })
    }

    /// Opens the place; a local folder is made where it is missing.
    pub(crate) fn open(&self, format: Format) -> Result<Storage, Failure> {
        Ok(over(Location::open(&self.at, &self.options)?, format))
    }

    /// Opens the place if a pipeline ran there: asking a question must not make a folder.
    pub(crate) async fn existing(&self, format: Format) -> Result<Option<Storage>, Failure> {
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
        Ok(Some(over(location, format)))
    }

    /// As it was named.
    pub(crate) fn text(&self) -> &str {
        &self.at
    }
}

/// A storage that holds nothing.
pub(crate) fn nowhere() -> Storage {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    over(Location { store, folder: None, url: None }, Format::Delta)
}

/// Tables live in `tables/`, everything of the engine's own in `_strandline/`.
fn over(location: Location, format: Format) -> Storage {
    let format: Arc<dyn TableFormat> = match format {
        Format::Delta => {
            Arc::new(DeltaFormat::new(Arc::clone(&location.store), object_store::path::Path::from("tables")))
        }
    };
    location.with_format(format)
}
