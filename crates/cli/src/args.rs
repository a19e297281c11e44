//! What can be said on the command line?

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Keeps SCD type 1, SCD type 2 and bitemporal tables right from change events: pipelines in SQL, tables in open lakehouse formats.
#[derive(Debug, Parser)]
#[command(name = "strandline", version, about, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a small pipeline that runs as it is.
    ///
    /// Writes `pipeline.yml`, a SQL file, a few files of changes and a `.gitignore`. Files that exist are never
    /// overwritten: if there is one, nothing is written.
    Init {
        /// Folder of the pipeline; it is made where it is missing.
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Run one update: every flow takes what is there, and ends.
    ///
    /// Exit codes: 0 all flows succeeded; 1 a flow failed or was skipped; 2 the pipeline or the call is wrong;
    /// 3 another process is running the pipeline; 130 and 143 the update was stopped by SIGINT (Ctrl-C) or SIGTERM.
    ///
    /// A signal lets batches in flight end; a second one ends the process at once. Either way the next run goes on
    /// where this one stopped.
    Run {
        #[command(flatten)]
        pipeline: PipelineArgs,
        #[command(flatten)]
        selection: SelectionArgs,
        /// Go on until stopped by a signal; then the exit code is 0 unless a flow failed.
        #[arg(long)]
        continuous: bool,
        /// How long a flow waits before it looks for more, when continuous: `500ms`, `5s`, `1 minute`.
        #[arg(long, value_name = "TIME")]
        trigger_interval: Option<String>,
        /// Print the closing report as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Validate everything, write nothing, and print the flows.
    DryRun {
        #[command(flatten)]
        pipeline: PipelineArgs,
        #[command(flatten)]
        selection: SelectionArgs,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Draw the datasets and flows of a pipeline.
    ///
    /// With a storage folder, also where they stand.
    Graph(GraphArgs),
    /// Run a SQL query over the pipeline's tables, by their names.
    ///
    /// Names are taken as they are written: `SELECT name, __START_AT FROM customers_history`.
    ///
    /// A history table t can be read as it is now, `t_current`, and as of a moment: `as_of(t, '2025-01-31')` for SCD type
    /// 2; `as_of(t, business => '2025-01-31', system => '2025-02-15')` for bitemporal tables, of which `t_believed` is
    /// what is believed now. `as_of_business(t, ..)` and `as_of_system(t, ..)` look at one axis.
    ///
    /// What happened in updates are the rows of `events()`.
    Query {
        /// The query.
        sql: String,
        #[command(flatten)]
        storage: StorageArgs,
        /// How rows are printed.
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    /// Check that every key's live feed begins after its ONCE seed ends. Reads the sources, writes nothing.
    ///
    /// Exit codes: 0 it does; 4 some keys have live changes that are not after their last seeded one; 2 the pipeline or
    /// the call is wrong.
    Handoff {
        #[command(flatten)]
        pipeline: PipelineArgs,
        /// Only this target; without it, all that have a seed and a live feed.
        #[arg(long, value_name = "TABLE")]
        target: Option<String>,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Compact tables, forget old versions, and remove files that belong to none. No answer changes by it.
    ///
    /// Updates may run meanwhile. Readers of a version that was replaced longer ago than is retained fail.
    ///
    /// Exit codes: 0 done; 2 the call is wrong; 3 a shorter retention is forced and an update runs.
    Maintain {
        /// Only these tables; without one, all.
        #[arg(value_name = "TABLE")]
        tables: Vec<String>,
        #[command(flatten)]
        storage: StorageArgs,
        /// How many days a version is kept after it was replaced.
        #[arg(long, value_name = "DAYS", default_value_t = 7.0, value_parser = days)]
        retain: f64,
        /// Retain for less than 7 days. No update may run.
        #[arg(long)]
        force: bool,
        /// Only tell what would be done.
        #[arg(long)]
        dry_run: bool,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show where flows and tables stand.
    Status {
        #[command(flatten)]
        storage: StorageArgs,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileArgs {
    /// A pipeline: one SQL file, or a `pipeline.yml` that names its files. Without it, the `pipeline.yml` of the working
    /// folder or of one above it.
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// A setting: `${KEY}` stands for it in SQL. Comes before what files say. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) settings: Vec<(String, String)>,
}

/// Where tables and state are.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// Folder for tables and state, or its URL in an object store: `s3://bucket/prefix`, `az://..`, `abfss://..`, `gs://..`.
    /// Without it, what `pipeline.yml` names.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) storage: Option<String>,
    /// How the store of a URL is reached, where the environment does not say it: `aws_region=eu-central-1`. Repeatable.
    ///
    /// Names are those of the variables of the environment (`AWS_..`, `AZURE_..`, `GOOGLE_..`), in any case. Secrets are better
    /// there: what is said here can be read in the list of processes.
    #[arg(long = "storage-option", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) storage_options: Vec<(String, String)>,
    /// How Iceberg tables are listed: `type=rest`, `uri=https://..`. Repeatable. Without it, in `catalog.db` of the storage.
    ///
    /// Names are those of catalog properties in `PyIceberg` and Spark. Secrets are better in the environment:
    /// `STRANDLINE_CATALOG_CREDENTIAL`, `STRANDLINE_CATALOG_TOKEN`.
    #[arg(long = "catalog", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) catalog: Vec<(String, String)>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PipelineArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// Table format. Without it, the one that the storage has, else what `pipeline.yml` says, else `delta`.
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
}

/// What an update is asked for. Without any of it, everything is refreshed.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SelectionArgs {
    /// Only these tables and sinks. Repeatable, or a list with commas.
    #[arg(long, value_name = "TABLE", value_delimiter = ',')]
    pub(crate) refresh: Vec<String>,
    /// Only these tables, emptied and filled anew from their sources.
    #[arg(long, value_name = "TABLE", value_delimiter = ',')]
    pub(crate) full_refresh: Vec<String>,
    /// Every table, emptied and filled anew.
    #[arg(long)]
    pub(crate) full_refresh_all: bool,
    /// These flows read their sources anew; their tables keep their rows.
    #[arg(long, value_name = "FLOW", value_delimiter = ',')]
    pub(crate) reset_checkpoint: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// How it is drawn.
    #[arg(long, value_enum, default_value_t = Drawing::Text)]
    pub(crate) format: Drawing,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StorageArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Table format. Without it, the one that the storage has, else what `pipeline.yml` says, else `delta`.
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
}

/// Table formats of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Delta Lake.
    Delta,
    /// Apache Iceberg.
    Iceberg,
}

impl Format {
    /// As a user writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Iceberg => "iceberg",
        }
    }
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table for people.
    Table,
    /// One JSON object a line.
    Json,
    /// Comma-separated values with a header.
    Csv,
}

/// How a graph is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// For a terminal.
    Text,
    /// A Mermaid flowchart.
    Mermaid,
    /// A Graphviz digraph.
    Dot,
}

/// Days, and parts of them.
fn days(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(days) if days.is_finite() && (0.0..=36_500.0).contains(&days) => Ok(days),
        _ => Err("write a number of days, such as 7 or 30".to_owned()),
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}
