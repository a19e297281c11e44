//! What are the leaves of a payload, and how do rows become leaves and leaves rows?
//!
//! Under partial updates a column of structs is set leaf by leaf. A scalar, a list and a map are one leaf. A struct is its
//! fields, and one leaf more that says whether it is there at all: an event that sets some leaf within says so too.
//!
//! Leaves are numbered depth first, over the non-key columns in the order of their names.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray, cast::AsArray, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use arrow_select::nullif::nullif;

use crate::{error::CdcError, names};

/// The leaves of some columns.
#[derive(Debug, Clone)]
pub(crate) struct Leaves {
    columns: Vec<Node>,
    paths: Vec<Path>,
    /// The first leaf of each name.
    by_name: BTreeMap<String, usize>,
    /// For each leaf that says whether a struct is there, the leaves within it, innermost structs first.
    structs: Vec<(usize, Range<usize>)>,
}

/// Where a leaf lies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Path {
    /// Its name, as it is listed in side rows.
    name: String,
    /// Whether it says that a struct is there.
    is_presence: bool,
    data_type: DataType,
}

#[derive(Debug, Clone)]
enum Node {
    Value(usize),
    Struct { presence: usize, fields: Fields, nodes: Vec<Node>, end: usize },
}

impl Leaves {
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = &'a FieldRef>) -> Self {
        let mut leaves =
            Self { columns: Vec::new(), paths: Vec::new(), by_name: BTreeMap::new(), structs: Vec::new() };
        for field in columns {
            let node = leaves.node(quoted(field.name()), field);
            leaves.columns.push(node);
        }
        for (leaf, path) in leaves.paths.iter().enumerate() {
            leaves.by_name.entry(path.name.clone()).or_insert(leaf);
        }
        let presences = (0..leaves.len()).rev().filter(|leaf| leaves.is_presence(*leaf));
        leaves.structs = presences.filter_map(|leaf| Some((leaf, leaves.within(leaf)?))).collect();
        leaves
    }

    fn node(&mut self, name: String, field: &Field) -> Node {
        let number = self.paths.len();
        let DataType::Struct(fields) = field.data_type() else {
            self.paths.push(Path { name, is_presence: false, data_type: field.data_type().clone() });
            return Node::Value(number);
        };
        self.paths.push(Path { name: name.clone(), is_presence: true, data_type: DataType::Boolean });
        let nodes =
            fields.iter().map(|field| self.node(format!("{name}.{}", quoted(field.name())), field)).collect();
        Node::Struct { presence: number, fields: fields.clone(), nodes, end: self.paths.len() }
    }

    /// Number of leaves.
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Type of each leaf.
    pub(crate) fn types(&self) -> impl Iterator<Item = &DataType> {
        self.paths.iter().map(|path| &path.data_type)
    }

    /// The leaves of a row in which nothing is set.
    pub(crate) fn null_row(&self) -> Vec<ArrayRef> {
        let leaf = |path: &Path| -> ArrayRef {
            if path.is_presence {
                return Arc::new(BooleanArray::from(vec![false]));
            }
            new_null_array(&path.data_type, 1)
        };
        self.paths.iter().map(leaf).collect()
    }

    /// The leaves of a column.
    pub(crate) fn of_column(&self, column: usize) -> Range<usize> {
        self.columns.get(column).map_or(0..0, Node::range)
    }

    /// For each leaf that says whether a struct is there, the leaves within it, innermost structs first.
    pub(crate) fn structs(&self) -> &[(usize, Range<usize>)] {
        &self.structs
    }

    /// The leaves that say whether the structs around a leaf are there.
    pub(crate) fn around(&self, leaf: usize) -> impl Iterator<Item = usize> + '_ {
        self.structs.iter().filter(move |(_, within)| within.contains(&leaf)).map(|(presence, _)| *presence)
    }

    fn within(&self, leaf: usize) -> Option<Range<usize>> {
        self.columns.iter().find_map(|node| node.within(leaf))
    }

    /// The leaves of columns, one array each. Within a struct that is NULL every leaf is.
    pub(crate) fn split(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>, ArrowError> {
        let mut leaves = Vec::with_capacity(self.len());
        for (node, column) in self.columns.iter().zip(columns) {
            node.split(column, None, &mut leaves)?;
        }
        Ok(leaves)
    }

    /// One column, put together from leaves.
    pub(crate) fn join(
        &self,
        column: usize,
        leaf: &mut impl FnMut(usize) -> Result<ArrayRef, ArrowError>,
    ) -> Result<ArrayRef, ArrowError> {
        self.columns.get(column).map_or_else(
            || Err(ArrowError::InvalidArgumentError("no such column".to_owned())),
            |node| node.join(leaf),
        )
    }

    /// Names for a set of leaves, given by `has`: a column of which all are in it by its own name, else leaf by leaf.
    pub(crate) fn names(&self, has: impl Fn(usize) -> bool) -> Vec<&str> {
        let mut names = Vec::new();
        for node in &self.columns {
            let values = || node.range().filter(|&leaf| !self.is_presence(leaf));
            let listed: Vec<usize> = if has(node.first()) && values().all(&has) {
                vec![node.first()]
            } else {
                values().filter(|&leaf| has(leaf)).collect()
            };
            names.extend(
                listed.into_iter().filter_map(|leaf| self.paths.get(leaf)).map(|path| path.name.as_str()),
            );
        }
        names
    }

    /// The leaves that a name of [`Leaves::names`] stands for, what says that the structs around them are there included.
    pub(crate) fn named(&self, name: &str) -> Vec<usize> {
        let mut leaves = self.named_alone(name);
        if let Some(&first) = leaves.first() {
            leaves.extend(self.around(first));
        }
        leaves.sort_unstable();
        leaves
    }

    /// The leaves at and within a name.
    pub(crate) fn named_alone(&self, name: &str) -> Vec<usize> {
        let Some(&leaf) = self.by_name.get(name) else { return Vec::new() };
        let within = self.within(leaf).unwrap_or(leaf..leaf);
        let mut leaves: Vec<usize> = std::iter::once(leaf).chain(within).collect();
        leaves.dedup();
        leaves
    }

    /// A set of leaves as it reads back from its names: what is around a leaf that is there, is there.
    pub(crate) fn read_back(&self, listed: &[usize]) -> Vec<usize> {
        let names = self.names(|leaf| listed.binary_search(&leaf).is_ok());
        let mut leaves: Vec<usize> = names.into_iter().flat_map(|name| self.named(name)).collect();
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    pub(crate) fn is_presence(&self, leaf: usize) -> bool {
        self.paths.get(leaf).is_some_and(|path| path.is_presence)
    }
}

impl Node {
    fn first(&self) -> usize {
        match self {
            Self::Value(leaf) => *leaf,
            Self::Struct { presence, .. } => *presence,
        }
    }

    fn range(&self) -> Range<usize> {
        match self {
            Self::Value(leaf) => *leaf..leaf.saturating_add(1),
            Self::Struct { presence, end, .. } => *presence..*end,
        }
    }

    /// The leaves within the struct that this leaf stands for, itself not among them; those of a value are itself.
    fn within(&self, leaf: usize) -> Option<Range<usize>> {
        match self {
            Self::Value(own) => (*own == leaf).then(|| self.range()),
            Self::Struct { presence, end, .. } if *presence == leaf => Some(presence.saturating_add(1)..*end),
            Self::Struct { nodes, .. } => nodes.iter().find_map(|node| node.within(leaf)),
        }
    }

    fn split(
        &self,
        array: &ArrayRef,
        parent: Option<&NullBuffer>,
        leaves: &mut Vec<ArrayRef>,
    ) -> Result<(), ArrowError> {
        match self {
            Self::Value(_) => leaves.push(match parent {
                Some(nulls) if nulls.null_count() > 0 => {
                    nullif(array, &BooleanArray::new(!nulls.inner(), None))?
                }
                _ => Arc::clone(array),
            }),
            Self::Struct { nodes, .. } => {
                let parts = array.as_struct_opt().ok_or_else(|| {
                    ArrowError::InvalidArgumentError(format!("{} is no struct", array.data_type()))
                })?;
                let nulls = NullBuffer::union(parent, parts.nulls());
                let present = nulls
                    .as_ref()
                    .map_or_else(|| BooleanBuffer::new_set(array.len()), |nulls| nulls.inner().clone());
                leaves.push(Arc::new(BooleanArray::new(present, None)));
                for (node, part) in nodes.iter().zip(parts.columns()) {
                    node.split(part, nulls.as_ref(), leaves)?;
                }
            }
        }
        Ok(())
    }

    fn join(
        &self,
        leaf: &mut impl FnMut(usize) -> Result<ArrayRef, ArrowError>,
    ) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Value(number) => leaf(*number),
            Self::Struct { presence, fields, nodes, .. } => {
                let present = leaf(*presence)?;
                let is_there = |row: usize| present.is_valid(row) && present.as_boolean().value(row);
                let nulls: NullBuffer = (0..present.len()).map(is_there).collect();
                let parts = nodes.iter().map(|node| node.join(leaf)).collect::<Result<Vec<_>, _>>()?;
                let nulls = (nulls.null_count() > 0).then_some(nulls);
                Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), parts, nulls, present.len())?))
            }
        }
    }
}

/// A name in which a dot, or a quote, can't be taken for one of a path.
pub(crate) fn quoted(name: &str) -> String {
    if name.contains(['.', '`']) { format!("`{}`", name.replace('`', "``")) } else { name.to_owned() }
}

/// The leaves that each side row lists. A name that is no column of the target any more is left out.
pub(crate) fn listed(hidden: &RecordBatch, leaves: &Leaves) -> Result<Vec<Option<Vec<usize>>>, CdcError> {
    let Some(column) = hidden.column_by_name(names::AUTHORED) else { return Ok(Vec::new()) };
    let mismatch = || CdcError::SchemaMismatch {
        what: "side rows",
        expected: format!("`{}` as a list of text", names::AUTHORED),
        found: format!("type {}", column.data_type()),
    };
    let lists = column.as_list_opt::<i32>().ok_or_else(mismatch)?;
    let texts = lists.values().as_string_opt::<i32>().ok_or_else(mismatch)?;
    let offsets = lists.value_offsets();
    let bound = |at: usize| offsets.get(at).and_then(|offset| usize::try_from(*offset).ok());
    let list = |row: usize| {
        let (from, to) = (bound(row)?, bound(row.checked_add(1)?)?);
        let names = (from..to).filter(|&at| texts.is_valid(at)).map(|at| texts.value(at));
        let mut columns: Vec<usize> = names.flat_map(|name| leaves.named(name)).collect();
        columns.sort_unstable();
        columns.dedup();
        Some(columns)
    };
    Ok((0..lists.len()).map(|row| if lists.is_valid(row) { list(row) } else { None }).collect())
}

#[cfg(test)]
#[path = "leaves_tests.rs"]
mod tests;
