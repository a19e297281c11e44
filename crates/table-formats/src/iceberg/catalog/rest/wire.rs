//! What is said to a REST catalog, and what it answers.
//!
//! From the `OpenAPI` definition of Iceberg's REST catalogs:
//! <https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml>.

use std::collections::BTreeMap;

use iceberg::{
    TableRequirement, TableUpdate,
    spec::{Schema, SortOrder, TableMetadata, UnboundPartitionSpec},
};
use serde::{Deserialize, Serialize};

/// Settings that the server has for its clients.
#[derive(Debug, Deserialize)]
pub(super) struct Config {
    /// Those that a client may have otherwise.
    #[serde(default)]
    pub defaults: BTreeMap<String, Option<String>>,
    /// Those that it may not.
    #[serde(default)]
    pub overrides: BTreeMap<String, Option<String>>,
}

#[expect(clippy::struct_field_names, reason = "the names are those of OAuth2")]
#[derive(Debug, Deserialize)]
pub(super) struct Token {
    pub access_token: String,
    #[serde(default)]
    pub token_type: Option<String>,
    /// Seconds.
    #[serde(default)]
    pub expires_in: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TokenRefusal {
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub error_description: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Refusal {
    pub error: RefusalBody,
}

#[derive(Debug, Deserialize)]
pub(super) struct RefusalBody {
    #[serde(default)]
    pub message: Option<String>,
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Identifier {
    pub namespace: Vec<String>,
    pub name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Tables {
    pub identifiers: Vec<Identifier>,
    #[serde(default)]
    pub next_page_token: Option<String>,
}

/// A table, as loading, creating and committing answer it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Table {
    #[serde(default)]
    pub metadata_location: Option<String>,
    pub metadata: TableMetadata,
}

#[derive(Debug, Serialize)]
pub(super) struct CreateNamespace<'a> {
    pub namespace: &'a [String],
    pub properties: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct CreateTable<'a> {
    pub name: &'a str,
    pub schema: &'a Schema,
    pub partition_spec: &'a UnboundPartitionSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_order: Option<&'a SortOrder>,
    pub properties: BTreeMap<&'a str, &'a str>,
}

#[derive(Debug, Serialize)]
pub(super) struct CommitTable<'a> {
    pub identifier: Identifier,
    pub requirements: &'a [TableRequirement],
    pub updates: &'a [TableUpdate],
}
