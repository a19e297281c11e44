//! Which protocol does a table need for what it gets later?
//!
//! A table is created with what its first columns and properties need. A commit that brings more says in the same log entry
//! what readers and writers must understand from now on; nothing is ever taken back.

use std::collections::BTreeSet;

use arrow_schema::SchemaRef;
use deltalake_core::kernel::Protocol;

use super::schema;
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// Feature of columns with a time of day that has no time zone.
pub(super) const LOCAL_TIME: &str = "timestampNtz";
/// Feature of rows that are marked as deleted beside their file.
pub(super) const VECTORS: &str = "deletionVectors";
/// Feature of recorded changes.
pub(super) const CHANGES: &str = "changeDataFeed";
/// Features that a table keeps by name when its versions stood for them before.
const KEPT: [&str; 2] = ["appendOnly", CHANGES];
/// Version from which readers and writers find features by name.
const NAMED: (i32, i32) = (3, 7);

/// What a table needs.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Columns without a time zone.
    pub(super) local_time: bool,
    /// Deletion vectors.
    pub(super) vectors: bool,
    /// Recorded changes.
    pub(super) changes: bool,
}

impl Needs {
    /// What columns need.
    pub(super) fn of(schema: &SchemaRef) -> Self {
        let local_time = schema.fields().iter().any(|field| schema::holds_local_time(field.data_type()));
        Self { local_time, ..Self::default() }
    }
}

/// Names of the features that a table has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) reader: BTreeSet<String>,
    pub(super) writer: BTreeSet<String>,
}

impl Features {
    /// Those of a protocol: the ones that it names, or that its versions stand for. Source: the Delta protocol, "Requirements
    /// for Writers" and "Table Features".
    pub(super) fn of(protocol: &Protocol) -> Self {
        let names = |features: Option<&[_]>| features.unwrap_or_default().iter().map(text).collect();
        let (mut reader, mut writer): (BTreeSet<_>, BTreeSet<_>) =
            (names(protocol.reader_features()), names(protocol.writer_features()));
        if protocol.min_reader_version() == 2 {
            reader.insert("columnMapping".to_owned());
        }
        let implied = [
            (2, ["appendOnly", "invariants"].as_slice()),
            (3, &["checkConstraints"]),
            (4, &[CHANGES, "generatedColumns"]),
            (5, &["columnMapping"]),
            (6, &["identityColumns"]),
        ];
        let version = protocol.min_writer_version();
        if version < NAMED.1 {
            let implied = implied.into_iter().filter(|(from, _)| *from <= version);
            writer.extend(implied.flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned())));
        }
        Self { reader, writer }
    }
}

/// The protocol with what a table needs, unless it has it already.
///
/// Features that an old version stands for are named from then on if they are of use to a table that is maintained here; of the
/// others it uses none, and to name them would only keep writers away who don't know them.
pub(super) fn upgraded(now: &Protocol, needs: &Needs) -> Result<Option<Protocol>> {
    let mut all = Features::of(now);
    if now.min_writer_version() < NAMED.1 {
        all.writer.retain(|name| KEPT.contains(&name.as_str()));
    }
    if now.min_reader_version() < NAMED.0 {
        all.reader.clear();
    }
    let kept = all.clone();
    for (name, _) in [(LOCAL_TIME, needs.local_time), (VECTORS, needs.vectors)].iter().filter(|(_, is)| *is) {
        all.reader.insert((*name).to_owned());
        all.writer.insert((*name).to_owned());
    }
    if needs.changes {
        all.writer.insert(CHANGES.to_owned());
    }
    if all == kept {
        return Ok(None);
    }
    // What readers must know has to be known to writers too.
    all.writer.extend(all.reader.iter().cloned());
    named(&all.reader, &all.writer).map(Some)
}

/// A protocol by the names of its features.
pub(super) fn named(reader: &BTreeSet<String>, writer: &BTreeSet<String>) -> Result<Protocol> {
    let mut protocol = serde_json::json!({
        "minReaderVersion": 1, "minWriterVersion": NAMED.1, "writerFeatures": writer,
    });
    if let Some(fields) = protocol.as_object_mut().filter(|_| !reader.is_empty()) {
        fields.insert("minReaderVersion".to_owned(), NAMED.0.into());
        fields.insert("readerFeatures".to_owned(), reader.iter().map(String::as_str).collect());
    }
    serde_json::from_value(protocol)
        .map_err(|e| Error::new(ErrorKind::Internal, "the protocol can't be changed").because(e))
}

fn text(feature: impl AsRef<str>) -> String {
    feature.as_ref().to_owned()
}
