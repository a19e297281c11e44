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
    /// Run one update: every flow takes what is there, and ends.
    ///
    /// Exit codes: 0 all flows succeeded; 1 a flow failed or was skipped; 2 the pipeline or the call is wrong;
    /// 3 another process is running the pipeline.
    Run {
        #[command(flatten)]
        pipeline: PipelineArgs,
        /// Print the closing report as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Validate everything, write nothing, and print the graph.
    DryRun {
        #[command(flatten)]
        pipeline: PipelineArgs,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a SQL query over the pipeline's tables, by their names.
    ///
    /// Names are taken as they are written: `SELECT name, __START_AT FROM customers_history`.
    ///
    /// A history table t can be read as it is now, `t_current`, and as of a moment: `as_of(t, '2025-01-31')` for SCD type
    /// 2; `as_of(t, business => '2025-01-31', system => '2025-02-15')` for bitemporal tables, of which `t_believed` is
    /// what is believed now. `as_of_business(t, ..)` and `as_of_system(t, ..)` look at one axis.
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
pub(crate) struct PipelineArgs {
    /// A pipeline: one SQL file, or a `pipeline.yml` that names its files.
    pub(crate) file: PathBuf,
    /// Folder for tables and state; a `pipeline.yml` may name it instead.
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
    /// Table format.
    #[arg(long, value_enum, default_value_t = Format::Delta)]
    pub(crate) format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StorageArgs {
    /// Folder for tables and state.
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: PathBuf,
    /// Table format.
    #[arg(long, value_enum, default_value_t = Format::Delta)]
    pub(crate) format: Format,
}

/// Table formats of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Delta Lake.
    Delta,
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
