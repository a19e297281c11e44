//! Pipelines from SQL text and files to tables, as a user runs them.

mod crash;
mod errors;
mod flows;
mod pipeline;
mod scenarios;
