//! Lines about commits: 3 to 6.

use super::fixture::{commit, ensure, ids, inserted, read, refused, rows, stamp, streamed, table, writer};
use crate::{
    contract::{CommitOutcome, Result, StateVersion, TableChange, TableFormat},
    error::ErrorKind,
};

/// Line 3: a commit whose read set changed after its base is a conflict, changes nothing, and names what it left over.
///
/// # Errors
/// When it does not hold.
pub async fn line_03_commits_build_on_their_base(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "3, commits build on their base";
    let table = table(format, "line_03").await?;
    commit(table.as_ref(), inserted(rows(&[1, 2], "a")?), &stamp("one", 1, 0, 0)).await?;
    let stale = table.snapshot().await?;
    commit(table.as_ref(), inserted(rows(&[3], "b")?), &stamp("two", 1, 0, 0)).await?;
    let before = table.snapshot().await?;
    let changes = [
        TableChange::Rows { deletes: ids(stale.as_ref(), &[1]).await?, inserts: vec![rows(&[1], "c")?] },
        TableChange::Empty,
        TableChange::Overwrite(streamed(rows(&[9], "d")?)),
    ];
    for change in changes {
        match table.commit(stale.as_ref(), change, &stamp("one", 2, 0, 0)).await? {
            CommitOutcome::Conflict { latest, .. } => ensure(latest == before.version(), LINE)?,
            CommitOutcome::Committed(_) | CommitOutcome::AlreadyApplied { .. } => ensure(false, LINE)?,
        }
    }
    let after = table.snapshot().await?;
    ensure(after.version() == before.version(), LINE)?;
    ensure(read(after.as_ref()).await? == read(before.as_ref()).await?, LINE)?;
    let appended = TableChange::Append(streamed(rows(&[4], "e")?));
    let outcome = table.commit(stale.as_ref(), appended, &stamp("one", 2, 0, 0)).await?;
    ensure(matches!(outcome, CommitOutcome::Committed(_)), "an append does not conflict with other writers")?;
    let foreign = super::fixture::table(format, "line_03_other").await?.snapshot().await?;
    let other = table.commit(foreign.as_ref(), TableChange::Empty, &stamp("one", 9, 0, 0)).await;
    refused(other, ErrorKind::Invalid, "a base of another table is refused")
}

/// Line 4: a snapshot shows the newest batch of each writer, the newest state version and the greatest epoch.
///
/// # Errors
/// When it does not hold.
pub async fn line_04_stamps_come_with_the_rows(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "4, stamps come with the rows";
    let table = table(format, "line_04").await?;
    let first = table.snapshot().await?;
    ensure(first.last_batch(&writer("one")).is_none() && first.state_version() == StateVersion(0), LINE)?;
    commit(table.as_ref(), inserted(rows(&[1], "a")?), &stamp("one", 1, 5, 2)).await?;
    commit(table.as_ref(), inserted(rows(&[2], "a")?), &stamp("t/w%o", 7, 6, 3)).await?;
    commit(table.as_ref(), inserted(rows(&[3], "a")?), &stamp("one", 4, 9, 3)).await?;
    let reopened = format.open("line_04").await?;
    for table in [Some(table), reopened].into_iter().flatten() {
        let now = table.snapshot().await?;
        ensure(
            now.last_batch(&writer("one")) == Some(4) && now.last_batch(&writer("t/w%o")) == Some(7),
            LINE,
        )?;
        ensure(now.last_batch(&writer("three")).is_none(), LINE)?;
        ensure(now.state_version() == StateVersion(9) && now.epoch() == 3, LINE)?;
        let then = table.at(crate::contract::TableVersion(now.version().0 - 1)).await?;
        ensure(then.last_batch(&writer("one")) == Some(1) && then.state_version() == StateVersion(6), LINE)?;
    }
    Ok(())
}

/// Line 5: a batch that the base carries is not applied again, whatever the change; on an older base it is not either.
///
/// # Errors
/// When it does not hold.
pub async fn line_05_no_batch_twice(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "5, no batch twice";
    let table = table(format, "line_05").await?;
    let older = table.snapshot().await?;
    commit(table.as_ref(), inserted(rows(&[1], "a")?), &stamp("one", 3, 0, 0)).await?;
    let base = table.snapshot().await?;
    for batch in [2, 3] {
        let changes = [
            inserted(rows(&[1], "b")?),
            TableChange::Append(streamed(rows(&[1], "b")?)),
            TableChange::Empty,
            TableChange::Overwrite(streamed(rows(&[1], "b")?)),
        ];
        for change in changes {
            let outcome = table.commit(base.as_ref(), change, &stamp("one", batch, 0, 0)).await?;
            ensure(outcome == CommitOutcome::AlreadyApplied { batch: 3 }, LINE)?;
        }
    }
    let again = TableChange::Append(streamed(rows(&[1], "c")?));
    let outcome = table.commit(older.as_ref(), again, &stamp("one", 3, 0, 0)).await?;
    ensure(!matches!(outcome, CommitOutcome::Committed(_)), "5, also for an append from an older base")?;
    let after = table.snapshot().await?;
    ensure(after.version() == base.version() && read(after.as_ref()).await?.len() == 1, LINE)
}

/// Line 6: an epoch below the base's is refused.
///
/// # Errors
/// When it does not hold.
pub async fn line_06_fencing(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "6, fencing";
    let table = table(format, "line_06").await?;
    let older = table.snapshot().await?;
    commit(table.as_ref(), inserted(rows(&[1], "a")?), &stamp("one", 1, 0, 8)).await?;
    let base = table.snapshot().await?;
    let late = table.commit(base.as_ref(), inserted(rows(&[2], "a")?), &stamp("two", 1, 0, 7)).await;
    refused(late, ErrorKind::Conflict, LINE)?;
    let append = TableChange::Append(streamed(rows(&[2], "a")?));
    let late = table.commit(older.as_ref(), append, &stamp("two", 1, 0, 7)).await;
    refused(late, ErrorKind::Conflict, "6, also for an append from an older base")?;
    let after = table.snapshot().await?;
    ensure(after.version() == base.version() && read(after.as_ref()).await?.len() == 1, LINE)
}
