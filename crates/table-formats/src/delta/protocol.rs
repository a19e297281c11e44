//! Which protocol does a table need for columns that it gets later?
//!
//! A table is created with what its first columns need. A commit that brings others says in the same log entry what a
//! reader must understand from now on; nothing is ever taken back.

use std::collections::BTreeSet;

use arrow_schema::SchemaRef;
use deltalake_core::kernel::Protocol;

use super::schema;
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// Feature of columns with a time of day that has no time zone.
const LOCAL_TIME: &str = "timestampNtz";
/// Writer feature that every writer of version 2 and above has, and that is lost when features are listed without it.
const APPEND_ONLY: &str = "appendOnly";

/// The protocol for these columns, unless the table has it already.
pub(super) fn upgraded(now: &Protocol, schema: &SchemaRef) -> Result<Option<Protocol>> {
    let needs = schema.fields().iter().any(|field| schema::holds_local_time(field.data_type()));
    let names = |features: Option<&[_]>| -> BTreeSet<String> {
        features.unwrap_or_default().iter().map(text).collect()
    };
    let (mut reader, mut writer) = (names(now.reader_features()), names(now.writer_features()));
    if !needs || (reader.contains(LOCAL_TIME) && writer.contains(LOCAL_TIME)) {
        return Ok(None);
    }
    if now.min_writer_version() > 2 && now.writer_features().is_none() {
        // What an older version implies would have to be listed, and this adapter maintains none of it.
        let message = format!(
            "a table of writer version {} can't get columns without a time zone",
            now.min_writer_version()
        );
        return Err(Error::new(ErrorKind::Unsupported, format!("{message}; use microseconds in UTC")));
    }
    if now.writer_features().is_none() && now.min_writer_version() == 2 {
        writer.insert(APPEND_ONLY.to_owned());
    }
    reader.insert(LOCAL_TIME.to_owned());
    writer.insert(LOCAL_TIME.to_owned());
    let protocol = serde_json::json!({
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": reader,
        "writerFeatures": writer,
    });
    let protocol = serde_json::from_value(protocol);
    Ok(Some(
        protocol.map_err(|e| Error::new(ErrorKind::Internal, "the protocol can't be changed").because(e))?,
    ))
}

fn text(feature: impl AsRef<str>) -> String {
    feature.as_ref().to_owned()
}
