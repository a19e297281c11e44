//! How is a table read as a stream? What stands in `WITH (..)` behind it.

use arrow_cast::parse::string_to_datetime;
use chrono::Utc;
use strandline_pipeline_sql::OptionValue;

use crate::{
    error::{Error, ErrorKind, Result},
    query::TableOptions,
};

/// What the options are called, for those who misspell them.
const KNOWN: &str =
    "known are readChangeFeed, skipChangeCommits, ignoreDeletes, startingVersion, startingTimestamp";

/// Where a stream of a table begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// With the rows that the table has when it is read first.
    #[default]
    Rows,
    /// With what this version changed.
    Version(u64),
    /// With what was committed at or after this moment, in milliseconds since 1970, UTC.
    Timestamp(i64),
    /// With what is committed after the stream is read first.
    Latest,
}

/// Options of a table that is read as a stream.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamOptions {
    /// `readChangeFeed`: the rows that commits changed, each with what became of it.
    pub change_feed: bool,
    /// `skipChangeCommits`: commits that update or delete rows are passed over.
    pub skip_change_commits: bool,
    /// `ignoreDeletes`: commits that only delete rows are passed over.
    pub ignore_deletes: bool,
    /// `startingVersion`, `startingTimestamp`.
    pub start: Start,
    /// Leave out what rows were before an update: to a change flow they say nothing.
    pub without_preimages: bool,
}

impl StreamOptions {
    /// Reads what a user wrote.
    ///
    /// # Errors
    /// `Definition` for an option that is not known, has no such value, or does not go with another one.
    pub(crate) fn new(written: &TableOptions) -> Result<Self> {
        let mut options = Self::default();
        for (name, value) in written {
            match name.as_str() {
                "readchangefeed" | "readchangedata" => options.change_feed = flag(name, value)?,
                "skipchangecommits" => options.skip_change_commits = flag(name, value)?,
                "ignoredeletes" => options.ignore_deletes = flag(name, value)?,
                "startingversion" => options.start_at(version(value)?)?,
                "startingtimestamp" => options.start_at(moment(value)?)?,
                "ignorechanges" => {
                    return Err(refused("ignoreChanges would give rows of rewritten files again")
                        .help("use skipChangeCommits to pass over updates, or readChangeFeed to read them"));
                }
                _ => {
                    let message = format!("a table read as a stream does not know the option `{name}`");
                    return Err(refused(&message).help(KNOWN));
                }
            }
        }
        if options.change_feed && (options.skip_change_commits || options.ignore_deletes) {
            return Err(refused("a change feed holds updates and deletes, which skipChangeCommits and ignoreDeletes pass over")
                .help("leave one of the two out"));
        }
        Ok(options)
    }

    fn start_at(&mut self, start: Start) -> Result<()> {
        if self.start != Start::Rows {
            return Err(refused("startingVersion and startingTimestamp can't both say where to begin"));
        }
        self.start = start;
        Ok(())
    }
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Definition, message)
}

fn flag(name: &str, value: &OptionValue) -> Result<bool> {
    value
        .as_bool()
        .ok_or_else(|| refused(&format!("the option `{name}` must be true or false, it is `{value}`")))
}

fn version(value: &OptionValue) -> Result<Start> {
    if value.to_string().eq_ignore_ascii_case("latest") {
        return Ok(Start::Latest);
    }
    let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
    number.map(Start::Version).ok_or_else(|| {
        refused(&format!("startingVersion must be a version's number or 'latest', it is `{value}`"))
    })
}

fn moment(value: &OptionValue) -> Result<Start> {
    let text = value.to_string();
    if text.eq_ignore_ascii_case("latest") {
        return Ok(Start::Latest);
    }
    // A day without a time begins at midnight; a time without a zone is in UTC.
    let parsed = string_to_datetime(&Utc, text.trim());
    let moment = parsed.map_err(|e| {
        refused(&format!("startingTimestamp must be a date or a timestamp, it is `{text}`")).because(e)
    })?;
    // What was committed within the same millisecond may be older.
    let within = i64::from(moment.timestamp_subsec_nanos() % 1_000_000 > 0);
    Ok(Start::Timestamp(moment.timestamp_millis().saturating_add(within)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &[(&str, OptionValue)]) -> Result<StreamOptions> {
        StreamOptions::new(&written.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let yes = OptionValue::Boolean(true);
        let feed =
            read(&[("readchangefeed", yes.clone()), ("startingversion", OptionValue::Integer(3))]).unwrap();
        assert_eq!((feed.change_feed, feed.start), (true, Start::Version(3)));
        assert_eq!(read(&[("startingversion", text("latest"))]).unwrap().start, Start::Latest);
        let at = |written: &str| read(&[("startingtimestamp", text(written))]).unwrap().start;
        assert_eq!(at("1970-01-02"), Start::Timestamp(86_400_000));
        assert_eq!(at("1970-01-01T00:00:01.0005Z"), Start::Timestamp(1001));
        assert_eq!(at("1970-01-01 01:00:00+01:00"), Start::Timestamp(0));
        for (written, named) in [
            (vec![("readchanges", yes.clone())], "readchanges"),
            (vec![("ignorechanges", yes.clone())], "ignoreChanges"),
            (vec![("skipchangecommits", text("maybe"))], "maybe"),
            (vec![("startingversion", OptionValue::Integer(-1))], "-1"),
            (vec![("startingtimestamp", text("soon"))], "soon"),
            (vec![("readchangefeed", yes.clone()), ("skipchangecommits", yes.clone())], "skipChangeCommits"),
            (
                vec![("startingversion", OptionValue::Integer(1)), ("startingtimestamp", text("1970-01-02"))],
                "both",
            ),
        ] {
            let error = read(&written).unwrap_err().full_text();
            assert!(error.contains(named), "{error}");
        }
    }
}
