//! Which options are there, which have no effect, and which can't be honoured?

use crate::error::{Error, ErrorKind, Result};

/// Options that have an effect, as they are written.
const EFFECTIVE: &[&str] = &[
    "format",
    "schema",
    "path",
    "multiLine",
    "compression",
    "header",
    "sep",
    "delimiter",
    "quote",
    "escape",
    "comment",
    "skipRows",
    "ignoreLeadingWhiteSpace",
    "ignoreTrailingWhiteSpace",
    "nullValue",
    "dateFormat",
    "timestampFormat",
    "timestampNTZFormat",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "pathGlobFilter",
    "modifiedAfter",
    "modifiedBefore",
    "allowOverwrites",
    "includeExistingFiles",
    "partitionColumns",
    "inferColumnTypes",
    "inferSchema",
    "primitivesAsString",
    "schemaHints",
    "schemaEvolutionMode",
    "rescuedDataColumn",
    "readerCaseSensitive",
    "mode",
    "envelope",
    "keys",
    "unavailableValue",
    "metadataPrefix",
    "binaryHandlingMode",
    "decimalHandlingMode",
    "timestampUnit",
];

/// Options that ask for nothing that is not so anyway, or for a way of working that is not ours to choose.
const WITHOUT_EFFECT: &[&str] = &[
    "schemalocation",
    "backfillinterval",
    "useincrementallisting",
    "validateoptions",
    "fetchparallelism",
    "usestrictglobber",
    "mergeschema",
    "resourcetag",
    "locale",
    "samplingratio",
    "samplesize.numbytes",
    "samplesize.numfiles",
];

/// Options of which one value says what is so anyway; the others can't be honoured, and why.
const FIXED: &[(&str, &[&str], &str)] = &[
    ("usenotifications", &["false"], "folders are listed; leave it out"),
    ("usemanagedfileevents", &["false"], "folders are listed; leave it out"),
    (
        "recursivefilelookup",
        &["true"],
        "a folder is read with all that is below it; name its files by their ending, 'folder/*.json'",
    ),
    ("cleansource", &["off"], "files are not moved or removed after they were taken; leave it out"),
    (
        "ignorecorruptfiles",
        &["false"],
        "a file that can't be read fails its batch; remove the file, or leave out records with mode => 'DROPMALFORMED'",
    ),
    (
        "ignoremissingfiles",
        &["false"],
        "a file that vanished before it was taken is left out anyway, and told",
    ),
    ("encoding", &["utf-8", "utf8"], "only UTF-8 is read"),
    ("charset", &["utf-8", "utf8"], "only UTF-8 is read"),
    ("linesep", &["\n", "\\n", "\r\n", "\\r\\n"], "lines end with \\n or \\r\\n"),
    (
        "timezone",
        &["utc", "etc/utc", "gmt", "z", "+00:00"],
        "an instant without a zone is one of UTC; write zones in the data",
    ),
    (
        "prefertimestampntz",
        &["true"],
        "a time without a zone is inferred as TIMESTAMP_NTZ; declare the column to have another type",
    ),
    ("enforceschema", &["false"], "columns of a file with a header go by their names"),
    ("wholetext", &["false"], "text is read line by line"),
    ("allownonnumericnumbers", &["true"], "NaN and Infinity are numbers"),
];

/// Options that can't be honoured, and what to do.
const REFUSED: &[(&str, &str)] = &[
    (
        "badrecordspath",
        "keep bad records with mode => 'PERMISSIVE' and a rescuedDataColumn, or quarantine rows with expectations",
    ),
    (
        "columnnameofcorruptrecord",
        "with mode => 'PERMISSIVE' a record that can't be read stands in the rescuedDataColumn, under _corrupt_record",
    ),
    ("maxfileage", "files are remembered for ever; leave it out"),
    ("singlevariantcolumn", "there is no VARIANT type; declare the column as STRING to keep JSON as text"),
    (
        "basepath",
        "columns named by folders are found below the first folder with a wildcard; name others with partitionColumns",
    ),
    ("emptyvalue", "a quoted empty field is an empty text"),
    ("nanvalue", "NaN is written NaN"),
    ("positiveinf", "it is written Infinity"),
    ("negativeinf", "it is written -Infinity"),
    ("avroschema", "declare the columns with schema => '..'"),
    ("rowtag", "XML is not read"),
    ("queueurl", "folders are listed; leave it out"),
    ("queuename", "folders are listed; leave it out"),
];

/// True for an option that changes nothing.
///
/// # Errors
/// `Definition` for one that can't be honoured.
pub(super) fn has_no_effect(name: &str, value: &str) -> Result<bool> {
    if WITHOUT_EFFECT.contains(&name) {
        return Ok(true);
    }
    if let Some((_, values, why)) = FIXED.iter().find(|(fixed, ..)| *fixed == name) {
        if values.contains(&value.to_lowercase().as_str()) {
            return Ok(true);
        }
        return Err(Error::new(ErrorKind::Definition, format!("read_files does not honour `{name}`"))
            .with("value", value)
            .help(*why));
    }
    match REFUSED.iter().find(|(refused, _)| *refused == name) {
        Some((_, why)) => {
            Err(Error::new(ErrorKind::Definition, format!("read_files does not honour `{name}`")).help(*why))
        }
        None => Ok(false),
    }
}

/// How an option is written.
pub(super) fn spelling(name: &str) -> Option<&'static str> {
    EFFECTIVE.iter().copied().find(|known| known.eq_ignore_ascii_case(name))
}

/// The error of an option that is not known.
pub(super) fn refusal(name: &str, written: &str) -> Error {
    let error = Error::new(ErrorKind::Definition, format!("read_files does not know the option `{written}`"));
    let nearest = EFFECTIVE.iter().map(|known| (distance(&known.to_lowercase(), name), *known)).min();
    match nearest {
        Some((steps, known)) if steps <= 3 && steps * 2 < name.len().max(3) => {
            error.help(format!("did you mean {known}?"))
        }
        _ => error.help(format!("known are {}", EFFECTIVE.join(", "))),
    }
}

/// How many letters must be added, left out or changed to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let changed = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = changed.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_count_letters() {
        for (a, b, steps) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "ab", 2),
            ("header", "haeder", 2),
            ("sep", "step", 1),
            ("x", "y", 1),
        ] {
            assert_eq!(distance(a, b), steps, "{a} {b}");
        }
    }
}
