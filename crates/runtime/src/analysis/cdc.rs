//! What does a change flow mean? Its clauses as options of the core, its expressions as columns beside the source's rows.

mod feed;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    dataframe::DataFrame,
    logical_expr::{Expr, Volatility, ident},
};
use strandline_cdc_core::{
    CdcOptions, CdcSpec, ColumnSelection, SequenceColumn, SequenceTypes, StoredAs, names,
};
use strandline_pipeline_sql::{AutoCdc, SqlExpr};

use crate::{
    error::{Error, ErrorKind, Result},
    properties::{Properties, TOMBSTONE_SECONDS},
    sources::Envelope,
    types::{is_lossless, storable},
};

/// Column that carries the value of `SEQUENCE BY` beside the source's rows.
pub(crate) const SEQUENCE: &str = "__strandline_sequence";
/// Column that carries the value of `SYSTEM SEQUENCE BY`.
pub(crate) const SYSTEM_SEQUENCE: &str = "__strandline_system_sequence";
/// Column that carries the value of `APPLY AS DELETE WHEN`.
pub(crate) const DELETE: &str = "__strandline_delete";
/// Column that carries the value of `APPLY AS TRUNCATE WHEN`.
pub(crate) const TRUNCATE: &str = "__strandline_truncate";
/// Column that carries the value of `APPLY AS RETRACT WHEN`.
pub(crate) const RETRACT: &str = "__strandline_retract";
/// Column that carries the value of `VALID TO`.
pub(crate) const VALID_TO: &str = "__strandline_valid_to";

/// The expressions of a flow: the clause, the column that carries its value, and the expression where it is written.
fn clauses(cdc: &AutoCdc) -> [(&'static str, &'static str, Option<&SqlExpr>); 6] {
    [
        ("SEQUENCE BY", SEQUENCE, Some(&cdc.sequence_by)),
        ("SYSTEM SEQUENCE BY", SYSTEM_SEQUENCE, cdc.system_sequence_by.as_ref()),
        ("APPLY AS DELETE WHEN", DELETE, cdc.apply_as_delete.as_ref()),
        ("APPLY AS TRUNCATE WHEN", TRUNCATE, cdc.apply_as_truncate.as_ref()),
        ("APPLY AS RETRACT WHEN", RETRACT, cdc.apply_as_retract.as_ref()),
        ("VALID TO", VALID_TO, cdc.valid_to.as_ref()),
    ]
}

/// What a CDC flow means, and how else it could mean the same.
#[derive(Debug, Clone)]
pub(crate) struct CdcWork {
    /// The clauses of an AUTO CDC flow, as they are meant: those of a change feed's rows are filled in.
    pub(crate) clauses: Option<AutoCdc>,
    /// For a target that does not exist yet.
    pub(crate) spec: CdcSpec,
    options: CdcOptions,
    source: SchemaRef,
    sequences: SequenceTypes,
    /// A kept column that is the flow's plain sequence.
    plain_sequence: Option<String>,
    /// The target's names of the keys, where it has names of its own: a snapshot flow and its neighbours may spell them in
    /// another case.
    key_names: Vec<String>,
    /// What all flows of the target give it; `None` for the only one.
    pub(super) shared: Option<SchemaRef>,
    /// A flow of the same target that could not be understood, so that what it gives is not known.
    pub(super) unknown_peer: Option<String>,
}

impl CdcWork {
    /// A flow of this meaning whose sequences are in no column of its source.
    pub(super) fn new(
        spec: CdcSpec,
        options: CdcOptions,
        source: SchemaRef,
        sequences: SequenceTypes,
    ) -> Self {
        Self {
            clauses: None,
            spec,
            options,
            source,
            sequences,
            plain_sequence: None,
            key_names: Vec::new(),
            shared: None,
            unknown_peer: None,
        }
    }

    /// The spec for a target that keeps sequences in `column`, if this flow can keep them there. Whether a column of its
    /// own is needed depends on how many flows feed a target, which may change; what the target has may not.
    pub(crate) fn with_sequences_in(&self, column: &str) -> Result<Option<CdcSpec>> {
        let sequence_column = match &self.plain_sequence {
            _ if column == names::SEQUENCE_AT => SequenceColumn::SystemColumn,
            Some(plain) if plain == column => SequenceColumn::KeptColumn(plain.clone()),
            _ => return Ok(None),
        };
        let options = CdcOptions { sequence_column, ..self.options.clone() };
        let spec = CdcSpec::new(&options, &self.source, self.sequences.clone())?;
        Ok(Some(named(&spec, &self.key_names)))
    }

    /// Calls the keys as the target does.
    pub(super) fn name_keys(&mut self, names: &[String]) {
        self.key_names = names.to_vec();
        self.spec = named(&self.spec, names);
    }

    /// The columns of a target that exists, and those that its other flows will give it.
    pub(crate) fn with_shared(&self, target: &SchemaRef) -> SchemaRef {
        self.shared.as_ref().map_or_else(|| Arc::clone(target), |shared| super::union(target, shared))
    }

    /// What the flow's clauses say.
    pub(crate) fn options(&self) -> &CdcOptions {
        &self.options
    }

    /// Another flow of the target that could not be understood.
    pub(crate) fn unknown_peer(&self) -> Option<&str> {
        self.unknown_peer.as_deref()
    }
}

fn named(spec: &CdcSpec, names: &[String]) -> CdcSpec {
    let own: Vec<String> = spec.key_names().into_iter().map(str::to_owned).collect();
    own.iter().zip(names).fold(spec.clone(), |spec, (own, name)| spec.with_key_named(own, name))
}

/// The clauses of a flow as they are meant: over a change feed its rows say what is not written.
pub(super) fn meant(cdc: &AutoCdc, rows: &DataFrame, feed: bool) -> Result<AutoCdc> {
    if feed { feed::filled_in(cdc, rows.schema().as_arrow()) } else { Ok(cdc.clone()) }
}

/// Understands a change flow over rows of its query. Also returns the columns of its change rows, in stored types.
pub(super) fn analyse(
    cdc: &AutoCdc,
    rows: &DataFrame,
    alone: bool,
    properties: &Properties,
) -> Result<(SchemaRef, CdcWork)> {
    let source = Arc::new(storable(rows.schema().as_arrow()));
    let with_clauses = change_rows(cdc, rows.clone())?;
    let with_clauses = checked(&storable(with_clauses.schema().as_arrow()))?;
    let type_of = |name: &str| with_clauses.field_with_name(name).map(|field| field.data_type().clone());
    let sequences = SequenceTypes { sequence: type_of(SEQUENCE)?, system: type_of(SYSTEM_SEQUENCE).ok() };
    let mut options = CdcOptions {
        on_tie: properties.on_tie,
        system_time: properties.system_time,
        null_sequence_fields: properties.null_sequence_fields,
        tombstones_expire: properties.tombstones_expire_after.is_some(),
        ..cdc.options.clone()
    };
    let plain_sequence = plain_kept_column(cdc, &source);
    if alone && let Some(column) = &plain_sequence {
        options.sequence_column = SequenceColumn::KeptColumn(column.clone());
    }
    let spec = CdcSpec::new(&options, &source, sequences.clone())?;
    if spec.stored_as() == StoredAs::Bitemporal && properties.tombstones_expire_after.is_some() {
        return Err(Error::new(ErrorKind::Unsupported, "deletes of a bitemporal target are kept for ever")
            .help(format!("leave out the property {TOMBSTONE_SECONDS}")));
    }
    let work = CdcWork {
        plain_sequence,
        clauses: Some(cdc.clone()),
        ..CdcWork::new(spec, options, source, sequences)
    };
    Ok((Arc::new(with_clauses), work))
}

/// Refuses a flow that takes an envelope's list of columns as it is, but not the columns that it names.
pub(super) fn check_lists(
    cdc: &AutoCdc,
    envelope: &Envelope,
    records: &[&str],
    rows: &DataFrame,
) -> Result<()> {
    if cdc.options.columns_to_update != Some(envelope.columns_name()) {
        return Ok(());
    }
    // A column that passes through untouched still belongs to the table that it comes from.
    let passed = rows.schema().iter().filter(|(table, _)| table.is_some());
    let passed = passed.map(|(_, field)| field.name().as_str()).collect();
    envelope.check_query(records, &passed)
}

/// Conditions must be conditions, and `VALID TO` takes the sequence's type.
fn checked(columns: &Schema) -> Result<Schema> {
    let sequence = columns.field_with_name(SEQUENCE)?.data_type().clone();
    let field = |field: &Arc<Field>| -> Result<Arc<Field>> {
        let refused = |why: &str| {
            Err(Error::new(ErrorKind::Definition, why.to_owned()).with("type", field.data_type()))
        };
        let is_condition = matches!(field.data_type(), DataType::Boolean | DataType::Null);
        match field.name().as_str() {
            DELETE if !is_condition => refused("APPLY AS DELETE WHEN must be a condition"),
            TRUNCATE if !is_condition => refused("APPLY AS TRUNCATE WHEN must be a condition"),
            RETRACT if !is_condition => refused("APPLY AS RETRACT WHEN must be a condition"),
            VALID_TO if is_lossless(field.data_type(), &sequence) => {
                Ok(Arc::new(field.as_ref().clone().with_data_type(sequence.clone())))
            }
            VALID_TO => refused("VALID TO must have the type of SEQUENCE BY").map_err(|error| {
                error.with("SEQUENCE BY has", &sequence).help("cast one to the other's type")
            }),
            _ => Ok(Arc::clone(field)),
        }
    };
    Ok(Schema::new(columns.fields().iter().map(field).collect::<Result<Vec<_>>>()?))
}

/// The column that holds the sequence in an SCD1 target already, so that no system column is needed. Under partial
/// updates a row's columns come from several events, so that none of them says where the row's newest one lies.
fn plain_kept_column(cdc: &AutoCdc, source: &Schema) -> Option<String> {
    let partial = cdc.options.ignore_null_updates.is_some() || cdc.options.columns_to_update.is_some();
    if cdc.options.stored_as != StoredAs::Scd1 || partial {
        return None;
    }
    let written = cdc.sequence_by.text().trim();
    let name = written.strip_prefix('`').and_then(|n| n.strip_suffix('`')).unwrap_or(written);
    source.field_with_name(name).ok()?;
    let listed = |list: &[String]| list.iter().any(|column| column == name);
    let kept = match &cdc.options.columns {
        ColumnSelection::All => true,
        ColumnSelection::Only(list) => listed(list),
        ColumnSelection::Except(list) => !list.iter().any(|column| column.eq_ignore_ascii_case(name)),
    };
    kept.then(|| name.to_owned())
}

/// The source's rows with the values of the flow's expressions beside them: [`SEQUENCE`] and what else is written.
pub(crate) fn change_rows(cdc: &AutoCdc, rows: DataFrame) -> Result<DataFrame> {
    let mut columns: Vec<_> = rows.schema().fields().iter().map(|field| ident(field.name())).collect();
    for (clause, name, expression) in clauses(cdc) {
        let Some(expression) = expression else { continue };
        let parsed = rows.parse_sql_expr(expression.sql()).map_err(|e| {
            let error = Error::from(e);
            Error::new(ErrorKind::Definition, format!("{clause} can't be understood: {}", error.full_text()))
        })?;
        check_row_by_row(clause, &parsed)?;
        columns.push(parsed.alias(name));
    }
    Ok(rows.select(columns)?)
}

/// A clause speaks of one row, and says the same of it whenever it is asked.
pub(crate) fn check_row_by_row(clause: &str, expression: &Expr) -> Result<()> {
    let mut wrong = None;
    expression.apply(|part| {
        wrong = match part {
            Expr::AggregateFunction(_) => Some("an aggregate"),
            Expr::WindowFunction(_) => Some("a window function"),
            Expr::Unnest(_) => Some("unnest, which makes several rows"),
            Expr::Placeholder(_) => Some("a placeholder"),
            Expr::ScalarFunction(call) if call.func.signature().volatility != Volatility::Immutable => {
                Some("a function whose value changes from call to call, such as now() or random()")
            }
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    })?;
    match wrong {
        None => Ok(()),
        Some(what) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("{clause} speaks of one row, so it can't hold {what}"),
        )
        .with("expression", expression)
        .help("compute it in the flow's source, and name the column here")),
    }
}
