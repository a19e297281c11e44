//! Which leaves does an event set, and how is a leaf put into a row?
//!
//! Invariant: a struct is its leaves; a list, a map or a scalar is one leaf.

use std::collections::BTreeMap;

use super::{Event, Row, Value};

/// The leaves that an event sets. A struct is its leaves, everything else is one leaf.
pub(super) fn authored_leaves(event: &Event) -> Vec<(Vec<String>, Value)> {
    let all = || event.values.keys().cloned().collect();
    let mut leaves = Vec::new();
    for authored in event.authored.clone().unwrap_or_else(all) {
        if let Some(value) = event.values.get(&authored) {
            collect_leaves(vec![authored], value, &mut leaves);
        } else {
            let mut path = authored.split('.');
            let mut value = path.next().and_then(|column| event.values.get(column));
            for name in path {
                value = match value {
                    Some(Value::Struct(fields)) => {
                        fields.iter().find(|(field, _)| field == name).map(|(_, v)| v)
                    }
                    _ => None,
                };
            }
            let path = authored.split('.').map(str::to_owned).collect();
            collect_leaves(path, value.unwrap_or(&Value::Null), &mut leaves);
        }
    }
    leaves
}

fn collect_leaves(path: Vec<String>, value: &Value, leaves: &mut Vec<(Vec<String>, Value)>) {
    if let Value::Struct(fields) = value {
        for (name, value) in fields {
            collect_leaves([path.clone(), vec![name.clone()]].concat(), value, leaves);
        }
    } else {
        leaves.push((path, value.clone()));
    }
}

/// Adds the structs of a row to a shape: a row in which every leaf is NULL.
pub(super) fn widen_shape(shape: &mut Row, row: &Row) {
    for (column, value) in row {
        widen(shape.entry(column.clone()).or_insert(Value::Null), value);
    }
}

fn widen(shape: &mut Value, value: &Value) {
    let Value::Struct(fields) = value else { return };
    if shape.is_null() {
        *shape = Value::fields(fields.iter().map(|(name, _)| (name.clone(), Value::Null)));
    }
    if let Value::Struct(shapes) = shape {
        for ((_, shape), (_, value)) in shapes.iter_mut().zip(fields) {
            widen(shape, value);
        }
    }
}

pub(super) fn set_leaves(row: &mut Row, leaves: BTreeMap<Vec<String>, Value>, shape: &Row) {
    for (path, leaf) in leaves {
        let Some((column, fields)) = path.split_first() else { continue };
        let value = row.entry(column.clone()).or_insert(Value::Null);
        set_leaf(value, fields, leaf, shape.get(column).unwrap_or(&Value::Null));
    }
}

fn set_leaf(value: &mut Value, path: &[String], leaf: Value, shape: &Value) {
    let Some((name, rest)) = path.split_first() else {
        *value = leaf;
        return;
    };
    if value.is_null() {
        *value = shape.clone();
    }
    if let (Value::Struct(fields), Value::Struct(shapes)) = (value, shape) {
        let shape = shapes.iter().find(|(field, _)| field == name).map_or(&Value::Null, |(_, shape)| shape);
        if let Some((_, field)) = fields.iter_mut().find(|(field, _)| field == name) {
            set_leaf(field, rest, leaf, shape);
        }
    }
}
