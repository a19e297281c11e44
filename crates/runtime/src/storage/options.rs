//! How is an object store reached? What the environment says, and what options say, which win.

use std::{collections::BTreeMap, fmt};

/// Keys, endpoints and the like of object stores. Names are those of `object_store`'s builders in any case: `AWS_REGION`,
/// `aws_region` and `region` are one.
///
/// What an option says of credentials replaces all that the environment says of them: keys of one and a session token of the
/// other belong to nobody. So do endpoints.
#[derive(Clone, Default)]
pub struct StoreOptions {
    environment: BTreeMap<String, String>,
    given: BTreeMap<String, String>,
}

impl fmt::Debug for StoreOptions {
    /// Names only: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions").field("given", &self.given.keys()).finish_non_exhaustive()
    }
}

impl StoreOptions {
    /// No options, and an empty environment.
    pub fn new() -> Self {
        Self::default()
    }

    /// With variables of the environment; those that are not about object stores are passed over.
    #[must_use]
    pub fn with_environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let known = |name: &str| {
            ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix))
                || [SERVICE_ACCOUNT, IDENTITY_ENDPOINT].contains(&name)
        };
        self.environment.extend(variables.into_iter().filter(|(name, _)| known(name)));
        self
    }

    /// With options; a later one of the same name wins.
    #[must_use]
    pub fn with_options(mut self, options: impl IntoIterator<Item = (String, String)>) -> Self {
        self.given.extend(options.into_iter().map(|(name, value)| (name.trim().to_ascii_lowercase(), value)));
        self
    }
}

/// A variable of Google's tools that has no prefix.
const SERVICE_ACCOUNT: &str = "SERVICE_ACCOUNT";
/// Where Azure's services tell the endpoint of their managed identity.
const IDENTITY_ENDPOINT: &str = "IDENTITY_ENDPOINT";

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
mod merged {
    use std::str::FromStr;

    use super::{IDENTITY_ENDPOINT, SERVICE_ACCOUNT, StoreOptions};
    use crate::error::{Error, ErrorKind, Result};

    /// What the builder of one kind of store knows.
    pub(in crate::storage) struct Known {
        /// What its variables begin with.
        pub(in crate::storage) prefix: &'static str,
        /// Groups of keys, by their canonical names, of which options replace all that the environment says.
        pub(in crate::storage) groups: &'static [&'static [&'static str]],
    }

    impl StoreOptions {
        /// Everything for a builder with keys of type `K`, in the order in which it is to be set.
        ///
        /// # Errors
        /// `Definition` for an option that `K` does not know.
        pub(in crate::storage) fn merged<K: FromStr + AsRef<str>>(
            &self,
            known: &Known,
        ) -> Result<Vec<(K, String)>> {
            let mut given = Vec::new();
            for (name, value) in &self.given {
                let key = name.parse::<K>().map_err(|_| {
                    Error::new(ErrorKind::Definition, "the store has no such option")
                        .with("option", name)
                        .help(format!(
                            "options are named as the variables of the environment are: {}..",
                            known.prefix.to_ascii_lowercase()
                        ))
                })?;
                given.push((key, value.clone()));
            }
            let replaced: Vec<&str> = known
                .groups
                .iter()
                .filter(|group| given.iter().any(|(key, _)| group.contains(&key.as_ref())))
                .flat_map(|group| group.iter().copied())
                .collect();
            let variables = self.environment.iter().filter_map(|(name, value)| {
                let name = match name.as_str() {
                    SERVICE_ACCOUNT if known.prefix == "GOOGLE_" => "google_service_account".to_owned(),
                    IDENTITY_ENDPOINT if known.prefix == "AZURE_" => "azure_msi_endpoint".to_owned(),
                    name if name.starts_with(known.prefix) => name.to_ascii_lowercase(),
                    _ => return None,
                };
                // Others have variables with the same prefix.
                let key = name.parse::<K>().ok()?;
                (!replaced.contains(&key.as_ref())).then(|| (key, value.clone()))
            });
            Ok(variables.chain(given).collect())
        }
    }
}

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
pub(super) use merged::Known;
