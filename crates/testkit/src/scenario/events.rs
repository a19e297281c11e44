//! Which events does a batch hold?
//!
//! A batch is refused whole: by a NULL key, by a NULL in a sequence, or by a wrong list of columns to update.
//!
//! An upsert of a flow without an option for partial updates, from a batch that carries every column, authors the whole row.
//! Any other upsert authors the leaves that it provides, even if these are all of them: two such rows at one sequence are
//! merged leaf by leaf, where two whole rows would be settled as wholes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Batch, BatchKind, Condition, Scenario, Type};
use crate::reference::{self, Event, Op, Row, Value};

const NULL_SEQUENCE: &str = "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE";

impl Scenario {
    /// The batch as events of the reference model.
    ///
    /// # Errors
    /// The condition by which the whole batch is refused, with its name first.
    pub fn events(&self, batch: &Batch) -> Result<Vec<Event>, String> {
        let columns: Vec<&str> = batch.table.columns.iter().map(|column| self.declared(column)).collect();
        let rows = batch.table.rows.iter().map(|row| {
            let cells = columns.iter().zip(row);
            cells.map(|(name, value)| ((*name).to_owned(), self.widened(batch, name, value))).collect()
        });
        match &batch.kind {
            BatchKind::Changes => rows.map(|row: Row| self.event(&row)).collect(),
            BatchKind::Snapshot(version) => self.snapshot(version, rows.collect()),
        }
    }

    /// The value in the scenario's type of the column, where the batch has another one.
    fn widened(&self, batch: &Batch, column: &str, value: &Value) -> Value {
        match (batch.types.get(column), self.type_of(column)) {
            (Some(_), Some(kind)) => widened(value, kind),
            _ => value.clone(),
        }
    }

    fn event(&self, row: &Row) -> Result<Event, String> {
        let op = self.op(row);
        let key = if op == Op::Truncate { vec![] } else { self.key(row)? };
        let seq = if self.greatest {
            let greatest = self.sequence.iter().filter_map(|name| row.get(name)).max();
            not_null(greatest.cloned().unwrap_or(Value::Null), row, NULL_SEQUENCE)?
        } else {
            sequence(row, &self.sequence, NULL_SEQUENCE)?
        };
        let sys = match self.system_sequence.as_slice() {
            [] => None,
            columns => Some(sequence(row, columns, "AUTOCDC_MICROBATCH_VALIDATION.NULL_SYSTEM_SEQUENCE")?),
        };
        if op != Op::Upsert {
            return Ok(Event { key, seq, op, values: BTreeMap::new(), authored: None, sys });
        }
        let authored = self.authored(row)?;
        Ok(Event { key, seq, op, values: self.payload(row), authored, sys })
    }

    fn snapshot(&self, version: &Value, rows: Vec<Row>) -> Result<Vec<Event>, String> {
        let mut seen = BTreeSet::new();
        let mut image = Vec::new();
        for row in rows {
            let key = self.key(&row)?;
            if !seen.insert(key.clone()) {
                return Err(format!("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.DUPLICATE_KEY_VIOLATION: {key:?}"));
            }
            image.push((key, self.payload(&row)));
        }
        Ok(reference::snapshot(version, image))
    }

    fn op(&self, row: &Row) -> Op {
        let holds = |condition: &Option<Condition>| {
            condition.as_ref().is_some_and(|condition| row.get(&condition.column) == Some(&condition.value))
        };
        if holds(&self.truncate_when) {
            Op::Truncate
        } else if holds(&self.retract_when) {
            Op::Retract
        } else if holds(&self.delete_when) {
            Op::Delete
        } else {
            Op::Upsert
        }
    }

    fn key(&self, row: &Row) -> Result<Vec<Value>, String> {
        let part = |name: &String| match row.get(name) {
            None => Err(format!("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA: the source lacks key `{name}`")),
            Some(value) if !value.is_null() => Ok(value.as_key()),
            _ => Err(format!("AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY: {name} in {row:?}")),
        };
        self.keys.iter().map(part).collect()
    }

    /// Names of the kept columns that are not keys.
    fn payload_columns(&self) -> impl Iterator<Item = &String> {
        self.kept().map(|(name, _)| name).filter(|name| !self.keys.contains(name))
    }

    /// The kept columns that are not keys; NULL where the batch lacks one.
    fn payload(&self, row: &Row) -> Row {
        self.payload_columns()
            .map(|name| (name.clone(), row.get(name).cloned().unwrap_or(Value::Null)))
            .collect()
    }

    /// What an upsert sets; `None` if that is the whole row.
    fn authored(&self, row: &Row) -> Result<Option<BTreeSet<String>>, String> {
        let carried: BTreeSet<String> =
            self.payload_columns().filter(|name| row.contains_key(*name)).cloned().collect();
        let whole = carried.len() == self.payload_columns().count();
        let named = match self.columns_to_update.as_ref().and_then(|mask| row.get(mask)) {
            Some(Value::List(names)) => self.listed(names, &carried)?,
            _ => carried,
        };
        let ignored = self.ignore_null_updates.as_ref();
        if ignored.is_none() && self.columns_to_update.is_none() && self.unavailable.is_none() {
            return Ok(if whole { None } else { Some(named) });
        }
        let marker = self.unavailable.as_ref().map(Value::text);
        let provided = named.iter().flat_map(|name| {
            let null_declines = ignored.is_some_and(|ignored| ignored.contains(name));
            let declines = |leaf: &Value| (null_declines && leaf.is_null()) || Some(leaf) == marker.as_ref();
            provided_leaves(name.clone(), &row[name], &declines)
        });
        Ok(Some(provided.collect()))
    }

    fn listed(&self, names: &[Value], carried: &BTreeSet<String>) -> Result<BTreeSet<String>, String> {
        let listed = |name: &Value| {
            let known = carried.iter().find(|column| Value::text(*column) == *name);
            known.cloned().ok_or_else(|| {
                let mask = self.columns_to_update.as_deref().unwrap_or_default();
                format!(
                    "AUTOCDC_COLUMNS_TO_UPDATE_INVALID: {mask} lists {name:?}, which is no column to update"
                )
            })
        };
        names.iter().map(listed).collect()
    }
}

/// The leaves of a column that a record provides: those whose value does not decline.
fn provided_leaves(path: String, value: &Value, declines: &dyn Fn(&Value) -> bool) -> Vec<String> {
    if let Value::Struct(fields) = value {
        let field =
            |(name, value): &(String, Value)| provided_leaves(format!("{path}.{name}"), value, declines);
        return fields.iter().flat_map(field).collect();
    }
    if declines(value) { vec![] } else { vec![path] }
}

/// The value with NULL in the fields that its type has and it lacks.
fn widened(value: &Value, kind: &Type) -> Value {
    match (value, kind) {
        (Value::Struct(fields), Type::Struct(kinds)) => Value::fields(kinds.iter().map(|(name, kind)| {
            let field = fields.iter().find(|(field, _)| field == name);
            (name.clone(), field.map_or(Value::Null, |(_, value)| widened(value, kind)))
        })),
        (Value::List(items), Type::List(kind)) => {
            Value::List(items.iter().map(|item| widened(item, kind)).collect())
        }
        (value, _) => value.clone(),
    }
}

fn sequence(row: &Row, columns: &[String], condition: &str) -> Result<Value, String> {
    let value = |name: &String| row.get(name).cloned().unwrap_or(Value::Null);
    let sequence = match columns {
        [column] => value(column),
        several => Value::fields(several.iter().map(|name| (name.clone(), value(name)))),
    };
    not_null(sequence, row, condition)
}

fn not_null(sequence: Value, row: &Row, condition: &str) -> Result<Value, String> {
    if sequence.has_null() { Err(format!("{condition}: in {row:?}")) } else { Ok(sequence) }
}
