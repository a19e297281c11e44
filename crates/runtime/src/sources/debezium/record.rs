//! Which parts does a record have, in each of the forms in which records are written?
//!
//! A record is the value of a message, alone or beside its key as `{"key": .., "value": ..}`; key and value are what they are, or
//! stand beside their schema as `{"schema": .., "payload": ..}`.

use std::borrow::Cow;

use super::super::json::{Json, members};

/// A value, and the text of its schema where it has one.
#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub(super) schema: Option<&'a str>,
    pub(super) payload: &'a str,
}

/// A record in parts.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) key: Option<Part<'a>>,
    pub(super) value: Part<'a>,
}

/// What a record says of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Create,
    Update,
    Delete,
    Read,
    Truncate,
}

impl Op {
    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::Create => "c",
            Self::Update => "u",
            Self::Delete => "d",
            Self::Read => "r",
            Self::Truncate => "t",
        }
    }
}

/// The value of a record.
#[derive(Debug)]
pub(super) enum Value<'a> {
    /// A change of a row, or of a whole table.
    Change(Op, Json<'a>),
    /// A tombstone, a heartbeat, a transaction's bounds, a change of a schema, a logical message: nothing of rows.
    Nothing,
    /// An `op` that is none.
    Unknown(String),
    /// No envelope.
    NoEnvelope,
}

impl<'a> Record<'a> {
    /// Splits a text.
    pub(super) fn split(text: &'a str) -> Result<Self, String> {
        let Some(members) = members(text)? else {
            return Ok(Self { key: None, value: Part { schema: None, payload: text } });
        };
        let member = |name: &str| find(&members, name);
        match member("value") {
            Some(value) if member("op").is_none() && member("payload").is_none() => {
                let key = member("key").map(Part::split).transpose()?;
                Ok(Self { key, value: Part::split(value)? })
            }
            _ => Ok(Self { key: None, value: Part::of(text, &members) }),
        }
    }
}

fn find<'a>(members: &[(Cow<'a, str>, &'a str)], name: &str) -> Option<&'a str> {
    members.iter().rev().find(|(n, _)| n == name).map(|(_, text)| *text)
}

impl<'a> Part<'a> {
    pub(super) fn split(text: &'a str) -> Result<Self, String> {
        Ok(match members(text)? {
            Some(members) => Self::of(text, &members),
            None => Self { schema: None, payload: text },
        })
    }

    fn of(text: &'a str, members: &[(Cow<'a, str>, &'a str)]) -> Self {
        let others = members.iter().any(|(name, _)| name != "schema" && name != "payload");
        match find(members, "payload") {
            Some(payload) if !others => {
                Self { schema: find(members, "schema").filter(|schema| *schema != "null"), payload }
            }
            _ => Self { schema: None, payload: text },
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn read(payload: &'a str) -> Result<Self, String> {
        let node = Json::of(payload)?;
        if node.is_null() {
            return Ok(Self::Nothing);
        }
        let op = match node.get("op").and_then(Json::text) {
            Some("c") => Op::Create,
            Some("u") => Op::Update,
            Some("d") => Op::Delete,
            Some("r") => Op::Read,
            Some("t") => Op::Truncate,
            Some("m") => return Ok(Self::Nothing),
            Some(other) => return Ok(Self::Unknown(other.to_owned())),
            None => return Ok(if is_beside(&node) { Self::Nothing } else { Self::NoEnvelope }),
        };
        Ok(Self::Change(op, node))
    }
}

/// Whether a value is one of those that Debezium writes beside changes of rows.
fn is_beside(node: &Json<'_>) -> bool {
    let has = |name: &str| node.get(name).is_some();
    let heartbeat = !node.members().is_empty()
        && node.members().iter().all(|(name, _)| matches!(name.as_ref(), "ts_ms" | "ts_us" | "ts_ns"));
    let transaction = has("status") && has("id");
    let schema_change = has("source") && (has("ddl") || has("tableChanges"));
    heartbeat || transaction || schema_change
}
