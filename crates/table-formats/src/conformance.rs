//! The contract's lines as functions, for the tests of any adapter.
//!
//! Each function creates a table of its own name, so one format value serves for all of them once. An `Err` names the
//! line that does not hold.

mod commits;
mod fixture;
mod history;
mod replace;
mod replace_where;
mod rows;
mod tables;

pub use commits::{
    line_03_commits_build_on_their_base, line_04_stamps_come_with_the_rows, line_05_no_batch_twice,
    line_06_fencing,
};
pub use history::{line_14_commits_say_what_they_did, line_15_changes_add_up};
pub use replace::line_13_replacing_makes_a_new_table;
pub use replace_where::line_16_replacing_where_swaps;
pub use rows::{
    line_01_whole_or_nothing, line_02_snapshots_dont_move, line_07_lookups_miss_nothing,
    line_08_deletes_are_exact, line_09_schemas_hold, line_10_columns_come_and_widen,
};
pub use tables::{line_11_empty_leaves_the_table, line_12_creation_is_exclusive};

use crate::contract::{Result, TableFormat};

/// Every line.
///
/// # Errors
/// The first line that does not hold.
pub async fn all(format: &dyn TableFormat) -> Result<()> {
    line_01_whole_or_nothing(format).await?;
    line_02_snapshots_dont_move(format).await?;
    line_03_commits_build_on_their_base(format).await?;
    line_04_stamps_come_with_the_rows(format).await?;
    line_05_no_batch_twice(format).await?;
    line_06_fencing(format).await?;
    line_07_lookups_miss_nothing(format).await?;
    line_08_deletes_are_exact(format).await?;
    line_09_schemas_hold(format).await?;
    line_10_columns_come_and_widen(format).await?;
    line_11_empty_leaves_the_table(format).await?;
    line_12_creation_is_exclusive(format).await?;
    line_13_replacing_makes_a_new_table(format).await?;
    line_14_commits_say_what_they_did(format).await?;
    line_15_changes_add_up(format).await?;
    line_16_replacing_where_swaps(format).await
}
