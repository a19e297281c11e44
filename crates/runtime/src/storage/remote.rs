//! How does a URL become the store of a cloud? Builders of `object_store`, a feature each.

use std::sync::Arc;

use object_store::{ObjectStore, path::Path, prefix::PrefixStore};
use url::Url;

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
use super::options::Known;
use super::{Location, StoreOptions, without_user};
use crate::error::{Error, ErrorKind, Result};

/// The kinds of stores that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    S3,
    Azure,
    Gcs,
}

impl Kind {
    fn of(scheme: &str) -> Option<Self> {
        match scheme {
            "s3" | "s3a" => Some(Self::S3),
            "az" | "azure" | "adl" | "abfs" | "abfss" => Some(Self::Azure),
            "gs" => Some(Self::Gcs),
            _ => None,
        }
    }
}

/// Opens the store of a URL; nothing is asked of it yet.
///
/// # Errors
/// As [`Location::open`].
pub(super) fn open(url: &Url, options: &StoreOptions) -> Result<Location> {
    let shown = without_user(url.as_str());
    let wrong = |why: &str| Error::new(ErrorKind::Definition, why.to_owned()).with("storage", &shown);
    let kind = Kind::of(url.scheme()).ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, "storages of this kind are not known")
            .with("storage", &shown)
            .help("known are folders, file://, memory://, s3://, s3a://, az://, abfss:// and gs://")
    })?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("the URL names no bucket"));
    }
    if url.password().is_some() || (kind != Kind::Azure && !url.username().is_empty()) {
        return Err(wrong("the URL holds credentials")
            .help("give them in the environment, or as options: URLs are shown and stored"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("the URL of a storage has nothing behind its path"));
    }
    let prefix = Path::from_url_path(url.path()).map_err(|e| wrong("the path can't be used").because(e))?;
    let store = build(kind, url, options)
        .map_err(|e| if e.kind() == ErrorKind::Definition { e.with("storage", &shown) } else { e })?;
    let store: Arc<dyn ObjectStore> =
        if prefix.as_ref().is_empty() { store } else { Arc::new(PrefixStore::new(store, prefix)) };
    Ok(Location { store, folder: None, url: Some(url.as_str().trim_end_matches('/').to_owned()) })
}

fn build(kind: Kind, url: &Url, options: &StoreOptions) -> Result<Arc<dyn ObjectStore>> {
    match kind {
        Kind::S3 => s3(url, options),
        Kind::Azure => azure(url, options),
        Kind::Gcs => gcs(url, options),
    }
}

/// A flow that fails because the store does not answer is tried again as a whole: requests need not be patient for minutes,
/// and a wrong endpoint shows soon.
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
fn retries() -> object_store::RetryConfig {
    use std::time::Duration;
    object_store::RetryConfig {
        backoff: object_store::BackoffConfig {
            max_backoff: Duration::from_secs(5),
            ..object_store::BackoffConfig::default()
        },
        max_retries: 8,
        retry_timeout: Duration::from_mins(1),
    }
}

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
fn refused(error: object_store::Error) -> Error {
    Error::new(ErrorKind::Definition, "the store can't be opened with these options").because(error)
}

#[cfg(not(all(feature = "s3", feature = "azure", feature = "gcs")))]
fn without(feature: &str, url: &Url) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this program was built without the feature `{feature}`"))
        .with("storage", without_user(url.as_str()))
        .help(format!("build it with `--features {feature}`"))
}

#[cfg(feature = "s3")]
fn s3(url: &Url, options: &StoreOptions) -> Result<Arc<dyn ObjectStore>> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

    const KNOWN: Known = Known {
        prefix: "AWS_",
        groups: &[
            &[
                "aws_access_key_id",
                "aws_secret_access_key",
                "aws_session_token",
                "aws_container_credentials_relative_uri",
                "aws_container_credentials_full_uri",
                "aws_container_authorization_token_file",
                "aws_web_identity_token_file",
                "aws_role_arn",
                "aws_role_session_name",
                "aws_skip_signature",
            ],
            &["aws_endpoint", "aws_endpoint_url_s3"],
            &["aws_region", "aws_default_region"],
        ],
    };
    let settings = options.merged::<AmazonS3ConfigKey>(&KNOWN)?;
    check_plain_http(&settings, &["aws_endpoint", "aws_endpoint_url_s3"], "aws_allow_http")?;
    let builder = AmazonS3Builder::new().with_retry(retries());
    let builder = settings.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value));
    Ok(Arc::new(builder.with_url(url.as_str()).build().map_err(refused)?))
}

#[cfg(not(feature = "s3"))]
fn s3(url: &Url, _: &StoreOptions) -> Result<Arc<dyn ObjectStore>> {
    Err(without("s3", url))
}

#[cfg(feature = "azure")]
fn azure(url: &Url, options: &StoreOptions) -> Result<Arc<dyn ObjectStore>> {
    use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

    const KNOWN: Known = Known {
        prefix: "AZURE_",
        groups: &[
            &[
                "azure_storage_account_key",
                "azure_storage_client_id",
                "azure_storage_client_secret",
                "azure_storage_tenant_id",
                "azure_storage_sas_key",
                "azure_storage_token",
                "azure_msi_endpoint",
                "azure_object_id",
                "azure_msi_resource_id",
                "azure_federated_token_file",
                "azure_use_azure_cli",
                "azure_skip_signature",
            ],
            &["azure_storage_endpoint", "azure_storage_use_emulator", "azure_use_fabric_endpoint"],
        ],
    };
    let settings = options.merged::<AzureConfigKey>(&KNOWN)?;
    check_plain_http(&settings, &["azure_storage_endpoint"], "azure_allow_http")?;
    let builder = MicrosoftAzureBuilder::new().with_retry(retries());
    let builder = settings.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value));
    Ok(Arc::new(builder.with_url(url.as_str()).build().map_err(refused)?))
}

#[cfg(not(feature = "azure"))]
fn azure(url: &Url, _: &StoreOptions) -> Result<Arc<dyn ObjectStore>> {
    Err(without("azure", url))
}

#[cfg(feature = "gcs")]
fn gcs(url: &Url, options: &StoreOptions) -> Result<Arc<dyn ObjectStore>> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};

    const KNOWN: Known = Known {
        prefix: "GOOGLE_",
        groups: &[&[
            "google_service_account",
            "google_service_account_key",
            "google_application_credentials",
            "google_skip_signature",
        ]],
    };
    let settings = options.merged::<GoogleConfigKey>(&KNOWN)?;
    check_plain_http(&settings, &["google_base_url"], "google_allow_http")?;
    let builder = GoogleCloudStorageBuilder::new().with_retry(retries());
    let builder = settings.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value));
    Ok(Arc::new(builder.with_url(url.as_str()).build().map_err(refused)?))
}

#[cfg(not(feature = "gcs"))]
fn gcs(url: &Url, _: &StoreOptions) -> Result<Arc<dyn ObjectStore>> {
    Err(without("gcs", url))
}

/// Says what is missing for an endpoint without TLS: the client's own words come after all of its retries.
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
fn check_plain_http<K: AsRef<str>>(
    settings: &[(K, String)],
    endpoints: &[&str],
    option: &'static str,
) -> Result<()> {
    let value = |names: &[&str]| {
        settings.iter().rev().find(|(key, _)| names.contains(&key.as_ref())).map(|(_, value)| value.as_str())
    };
    let plain = value(endpoints).filter(|endpoint| endpoint.to_ascii_lowercase().starts_with("http://"));
    let allowed = value(&["allow_http"])
        .is_some_and(|v| ["true", "1", "yes", "on", "y"].contains(&v.to_ascii_lowercase().as_str()));
    match plain {
        Some(endpoint) if !allowed => {
            Err(Error::new(ErrorKind::Definition, "the endpoint is without TLS, which must be allowed")
                .with("endpoint", endpoint)
                .help(format!("set {} or the option {option} to true", option.to_ascii_uppercase())))
        }
        _ => Ok(()),
    }
}
