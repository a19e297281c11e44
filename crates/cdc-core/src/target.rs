//! May these flows share a target? (semantics 1.2, 2.7, G-09, G-11)
//!
//! Several change flows may feed one target, and beside them one snapshot flow (a hybrid target). They must agree on what
//! the target's history is built with; which columns they bring is their own matter: the target has those of all of them,
//! and a flow does not author what only another one has.

use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Schema};

use crate::{
    definition::{Definition, Fact},
    error::CdcError,
    spec::{CdcSpec, ColumnSelection, SequenceColumn, StoredAs, schema_of},
};

/// What a flow brings to a target.
#[derive(Debug, Clone)]
pub struct FlowTerms {
    /// The flow's name.
    pub name: String,
    /// What it means.
    pub spec: CdcSpec,
    /// Whether it is a snapshot flow; its spec's sequence type is the type of its versions.
    pub is_snapshot: bool,
    /// Whether the target's expectations are judged on its rows.
    pub has_expectations: bool,
    /// Whether it runs until it is stopped.
    pub is_continuous: bool,
}

/// Flows that agree.
#[derive(Debug, Clone)]
pub struct Target {
    definition: Definition,
    columns: Schema,
}

/// Why flows can't share a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{condition}: flows {} of one target {problem}; {remedy}", flows.join(" and "))]
pub struct Disagreement {
    /// Name of the condition.
    pub condition: &'static str,
    /// The flows, one or two.
    pub flows: Vec<String>,
    /// What is wrong, with both sides.
    pub problem: String,
    /// What to do.
    pub remedy: &'static str,
}

impl Target {
    /// Admits flows to a target. Their order matters for the order of its columns alone.
    ///
    /// # Errors
    /// Every [`Disagreement`] that there is: between the first flow and each other one, and of a hybrid target.
    pub fn admit(flows: &[FlowTerms]) -> Result<Self, Vec<Disagreement>> {
        let mut flows: Vec<&FlowTerms> = flows.iter().collect();
        flows.sort_by_key(|flow| flow.is_snapshot);
        let Some((first, others)) = flows.split_first() else {
            return Ok(Self {
                definition: Definition {
                    keys: Vec::new(),
                    stored_as: StoredAs::Scd1,
                    sequence_type: arrow_schema::DataType::Null,
                    system_type: None,
                    tracked: ColumnSelection::All,
                    sequence_column: None,
                },
                columns: Schema::empty(),
            });
        };
        let mut problems: Vec<Disagreement> = others.iter().flat_map(|other| facts(first, other)).collect();
        problems.extend(hybrid(&flows));
        problems.extend(sequence_columns(&flows));
        let columns = columns(&flows).unwrap_or_else(|problem| {
            problems.push(problem);
            Schema::empty()
        });
        if problems.is_empty() {
            Ok(Self { definition: first.spec.definition(), columns })
        } else {
            Err(problems)
        }
    }

    /// What the flows agree on.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The columns of the target that are no system columns: those of all flows.
    pub fn columns(&self) -> &Schema {
        &self.columns
    }

    /// A flow of the target, with the columns that only others have as absent ones. Keys that the flow's source spells in
    /// another case are called as the target calls them; batches still come with the names of the source.
    ///
    /// # Errors
    /// As [`CdcSpec::with_target_columns`].
    pub fn spec_of(&self, flow: &FlowTerms) -> Result<CdcSpec, CdcError> {
        let mut spec = flow.spec.clone();
        for (own, (name, _)) in flow.spec.key_names().into_iter().zip(&self.definition.keys) {
            spec = spec.with_key_named(own, name);
        }
        spec.with_target_columns(&self.columns)
    }
}

/// Facts in which two flows differ.
fn facts(first: &FlowTerms, other: &FlowTerms) -> Vec<Disagreement> {
    let (a, b) = (first.spec.definition(), other.spec.definition());
    let interop = first.is_snapshot != other.is_snapshot;
    let differ = |fact: &Fact| match fact {
        Fact::Keys => !same_keys(&a, &b, interop),
        // A snapshot flow has no such clause.
        Fact::SystemType | Fact::SequenceColumn if interop => false,
        Fact::SystemType => a.system_type != b.system_type,
        Fact::SequenceColumn => a.sequence_column != b.sequence_column,
        Fact::StoredAs => a.stored_as != b.stored_as,
        Fact::SequenceType => a.sequence_type != b.sequence_type,
        Fact::Tracked => a.tracked != b.tracked,
    };
    let tell = |fact: Fact| Disagreement {
        condition: match fact {
            Fact::Keys if interop => "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_KEYS_MISMATCH",
            Fact::SequenceType if interop => {
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_SEQUENCE_TYPE_MISMATCH"
            }
            Fact::Keys
            | Fact::StoredAs
            | Fact::SequenceType
            | Fact::SystemType
            | Fact::Tracked
            | Fact::SequenceColumn => "AUTOCDC_FLOWS_DISAGREE",
        },
        flows: vec![first.name.clone(), other.name.clone()],
        problem: format!("have different {fact}: {} and {}", a.text(fact), b.text(fact)),
        remedy: "make them equal, or give one of them a target of its own",
    };
    Fact::ALL.into_iter().filter(differ).map(tell).collect()
}

/// Keys agree in number, order, type and name; between a snapshot flow and a change flow, in name but for case.
fn same_keys(a: &Definition, b: &Definition, fold_case: bool) -> bool {
    let same = |((a, a_type), (b, b_type)): (&(String, _), &(String, _))| {
        a_type == b_type && if fold_case { a.to_lowercase() == b.to_lowercase() } else { a == b }
    };
    a.keys.len() == b.keys.len() && a.keys.iter().zip(&b.keys).all(same)
}

/// What a snapshot flow and its neighbours must not be.
fn hybrid(flows: &[&FlowTerms]) -> Vec<Disagreement> {
    let snapshots: Vec<&&FlowTerms> = flows.iter().filter(|flow| flow.is_snapshot).collect();
    let mut problems = Vec::new();
    let mut refuse = |condition, flows: Vec<&FlowTerms>, problem: String, remedy| {
        let flows = flows.into_iter().map(|flow| flow.name.clone()).collect();
        problems.push(Disagreement { condition, flows, problem, remedy });
    };
    if let [first, second, ..] = snapshots.as_slice() {
        refuse(
            "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_SEVERAL_SNAPSHOT_FLOWS",
            vec![first, second],
            "are both snapshot flows".to_owned(),
            "keep one of them: two complete images contradict each other",
        );
    }
    let Some(snapshot) = snapshots.first().filter(|_| snapshots.len() < flows.len()) else { return problems };
    if snapshot.spec.stored_as != StoredAs::Scd1 {
        refuse(
            "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_REQUIRES_SCD1",
            vec![snapshot],
            format!("are stored as {}", snapshot.spec.stored_as),
            "a snapshot flow shares only an SCD TYPE 1 target with change flows",
        );
    }
    if snapshot.has_expectations {
        refuse(
            "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_EXPECTATIONS_NOT_SUPPORTED",
            vec![snapshot],
            "have expectations on the snapshot flow".to_owned(),
            "a dropped row would be taken for a deleted one: check the rows before",
        );
    }
    for flow in flows {
        let lacks = flow.spec.kept.fields().iter().find(|field| !has_column(&snapshot.spec, field.name()));
        if let Some(field) = lacks {
            refuse(
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_COLUMNS_MISMATCH",
                vec![snapshot, flow],
                format!("do not both have the column `{}`", field.name()),
                "a snapshot says all of a row: select the column in its query, as NULL if need be",
            );
        }
        if flow.is_continuous {
            refuse(
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_CONTINUOUS_NOT_SUPPORTED",
                vec![flow],
                "run continuously beside a snapshot flow".to_owned(),
                "run the pipeline triggered",
            );
        }
        if !flow.is_snapshot && flow.spec.partial.is_some() {
            refuse(
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_IGNORE_NULL_UNSUPPORTED",
                vec![flow],
                "set only some columns beside a snapshot flow".to_owned(),
                "drop IGNORE NULL UPDATES or COLUMNS TO UPDATE, or the snapshot flow",
            );
        }
    }
    problems
}

/// Several flows need a column for their sequences that is none of theirs.
fn sequence_columns(flows: &[&FlowTerms]) -> Option<Disagreement> {
    let kept = |flow: &&&FlowTerms| {
        flow.spec.stored_as == StoredAs::Scd1 && flow.spec.sequence_column != SequenceColumn::SystemColumn
    };
    let flow = flows.iter().find(kept).filter(|_| flows.len() > 1)?;
    Some(Disagreement {
        condition: "AUTOCDC_SEQUENCE_COLUMN_CONFLICT",
        flows: vec![flow.name.clone()],
        problem: format!("keep their sequences in the column `{}`", flow.spec.sequence_column_name()),
        remedy: "give the target the column `__SEQUENCE_AT`: other flows have other columns",
    })
}

fn has_column(spec: &CdcSpec, name: &str) -> bool {
    let keys = spec.key_names();
    let same = |own: &String| {
        own == name || (keys.contains(&own.as_str()) && own.to_lowercase() == name.to_lowercase())
    };
    spec.kept.fields().iter().any(|field| same(field.name()))
}

/// The columns of all flows: those of the first in its order, then what each other one has besides.
fn columns(flows: &[&FlowTerms]) -> Result<Schema, Disagreement> {
    let mut all: Vec<(FieldRef, &FlowTerms)> = Vec::new();
    for flow in flows {
        let keys: Vec<&str> = flow.spec.key_names();
        for field in flow.spec.kept.fields() {
            let is_key = keys.contains(&field.name().as_str());
            let known = all.iter_mut().find(|(known, _)| {
                known.name() == field.name()
                    || (is_key && known.name().to_lowercase() == field.name().to_lowercase())
            });
            let Some((known, owner)) = known else {
                all.push((Arc::clone(field), flow));
                continue;
            };
            match crate::spec::wider(known.data_type(), field.data_type()) {
                Some(wide) => *known = Arc::new(Field::new(known.name(), wide, true)),
                None => {
                    return Err(Disagreement {
                        condition: "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE",
                        flows: vec![owner.name.clone(), flow.name.clone()],
                        problem: format!(
                            "have different types of column `{}`: {} and {}",
                            field.name(),
                            known.data_type(),
                            field.data_type()
                        ),
                        remedy: "cast it in one of the flows",
                    });
                }
            }
        }
    }
    Ok(schema_of(all.into_iter().map(|(field, _)| field)).as_ref().clone())
}
