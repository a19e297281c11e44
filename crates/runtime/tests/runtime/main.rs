//! Pipelines from SQL text and files to tables, as a user runs them.

mod conflicts;
mod crash;
mod errors;
mod feed;
mod flows;
mod identity;
mod pipeline;
mod scenarios;
