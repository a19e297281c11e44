//! Where in its source's log does a record stand, as a text that sorts as the log does?
//!
//! Numbers are padded with zeros, so that texts compare as numbers do. A row that was read by a snapshot stands before every
//! change at its position: the snapshot was taken before the connector went on from there. What should be a number and is none
//! says nothing of a position.

use crate::sources::json::Json;

/// `_source`: the fields that Debezium's connectors write, and whether they are numbers.
pub(super) const FIELDS: [(&str, bool); 31] = [
    ("version", false),
    ("connector", false),
    ("name", false),
    ("ts_ms", true),
    ("ts_us", true),
    ("ts_ns", true),
    ("snapshot", false),
    ("db", false),
    ("schema", false),
    ("table", false),
    ("sequence", false),
    ("txId", false),
    ("lsn", true),
    ("xmin", false),
    ("server_id", true),
    ("gtid", false),
    ("file", false),
    ("pos", true),
    ("row", true),
    ("thread", true),
    ("query", false),
    ("change_lsn", false),
    ("commit_lsn", false),
    ("event_serial_no", true),
    ("scn", false),
    ("commit_scn", false),
    ("rs_id", false),
    ("ssn", true),
    ("redo_thread", true),
    ("user_name", false),
    ("ord", true),
];

/// The position of a record with this `source`; `None` where nothing of it says so.
pub(super) fn position(source: &Json<'_>, is_read: bool) -> Option<String> {
    let text = |name: &str| match source.get(name) {
        Some(Json::Text(text)) => Some(text.to_string()),
        Some(Json::Number(digits)) => Some((*digits).to_owned()),
        _ => None,
    };
    let is_number =
        |text: &String| (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let padded = |name: &str| text(name).filter(is_number).map(|digits| format!("{digits:0>20}"));
    let or_zero = |name: &str| padded(name).unwrap_or_else(|| format!("{:0>20}", ""));
    let place = if let Some(lsn) = padded("lsn") {
        lsn
    } else if let Some(file) = text("file") {
        // mysql-bin.000009, then mysql-bin.000010; the server goes on with seven digits.
        let (name, number) = file.rsplit_once('.').unwrap_or((&file, ""));
        format!("{name}.{number:0>10}:{}:{}", or_zero("pos"), or_zero("row"))
    } else if let Some(commit) = text("commit_lsn") {
        // Digits of fixed width already. A snapshot has no change_lsn, and an empty text sorts first.
        format!("{commit}:{}:{}", text("change_lsn").unwrap_or_default(), or_zero("event_serial_no"))
    } else if let Some(scn) = padded("scn") {
        format!("{scn}:{}", or_zero("ssn"))
    } else {
        let instant = padded("ts_ns")
            .or_else(|| padded("ts_us").map(|us| format!("{us}000").split_off(3)))
            .or_else(|| padded("ts_ms").map(|ms| format!("{ms}000000").split_off(6)))?;
        format!("{instant}:{}", or_zero("ord"))
    };
    Some(format!("{place}:{}", u8::from(!is_read)))
}

#[cfg(test)]
#[path = "position_tests.rs"]
mod tests;
