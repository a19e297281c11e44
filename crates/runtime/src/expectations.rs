//! Which rows keep what their table promises, and what becomes of those that don't?
//!
//! A constraint is judged row by row, as one expression over a batch of columns. Only TRUE passes. Of an AUTO CDC flow
//! the upserts are judged, as the target would keep them and before they meet what it holds: a row that is dropped
//! is not in the set of events, so the order of arrival still does not matter. A column that an upsert leaves unset is
//! not judged.

mod quarantine;

pub(crate) use quarantine::{
    Dropped, Quarantine, columns as quarantine_columns, definition as quarantine_definition,
};

use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch, cast::AsArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, SchemaRef};
use datafusion::{
    arrow::buffer::BooleanBuffer,
    common::{
        DFSchema,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    logical_expr::{Expr, ExprSchemable},
    physical_expr::PhysicalExpr,
    scalar::ScalarValue,
};
use strandline_cdc_core::Proposal;
use strandline_pipeline_sql::{Expectation, OnViolation};

use crate::{
    analysis::check_row_by_row,
    error::{Error, ErrorKind, Result},
    query,
    report::{DataQuality, ExpectationCounts},
};

/// The constraints of a table, ready to judge rows.
#[derive(Debug, Clone)]
pub(crate) struct Expectations {
    dataset: String,
    /// The columns that rows are judged with.
    schema: SchemaRef,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    name: String,
    text: String,
    on_violation: OnViolation,
    condition: Arc<dyn PhysicalExpr>,
    /// The columns, and fields of structs, that the condition looks at.
    paths: Vec<Vec<String>>,
}

/// What was found out about the rows of a batch.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Rows that stay.
    pub(crate) keep: BooleanArray,
    pub(crate) quality: DataQuality,
    /// Per constraint, the rows that violate it.
    violations: Vec<BooleanBuffer>,
}

impl Expectations {
    /// Understands the constraints of the table `dataset` over its columns.
    ///
    /// # Errors
    /// `Definition` and `Unsupported`, naming the constraint: for one that is no condition, names a column that the
    /// table does not keep, or looks at more than one row.
    pub(crate) fn new(dataset: &str, declared: &[Expectation], columns: &SchemaRef) -> Result<Self> {
        let rule = |one: &Expectation| Rule::new(one, columns).map_err(|error| error.with("table", dataset));
        let rules = declared.iter().map(rule).collect::<Result<_>>()?;
        Ok(Self { dataset: dataset.to_owned(), schema: Arc::clone(columns), rules })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The columns that rows are judged with.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Counts of no rows: each constraint is listed.
    pub(crate) fn no_counts(&self) -> DataQuality {
        let count = |rule: &Rule| ExpectationCounts {
            name: rule.name.clone(),
            dataset: self.dataset.clone(),
            passed_records: 0,
            failed_records: 0,
        };
        DataQuality { dropped_records: 0, expectations: self.rules.iter().map(count).collect() }
    }

    /// Judges rows; of events, those that are upserts.
    ///
    /// # Errors
    /// `Data` when a row violates a constraint `ON VIOLATION FAIL UPDATE`, with that row, or when a condition can't be
    /// computed.
    pub(crate) fn judge(&self, rows: &RecordBatch, events: Option<&Proposal>) -> Result<Verdict> {
        let n = rows.num_rows();
        let judged =
            events.map_or_else(|| BooleanBuffer::new_set(n), |events| events.upserts().values().clone());
        let mut quality = self.no_counts();
        let mut dropped = BooleanBuffer::new_unset(n);
        let mut violations = Vec::with_capacity(self.rules.len());
        for (rule, count) in self.rules.iter().zip(&mut quality.expectations) {
            let violating = rule.violating(rows, &judged, events)?;
            let failed = violating.count_set_bits();
            if failed > 0 && rule.on_violation == OnViolation::FailUpdate {
                return Err(self.violated(rule, rows, &violating));
            }
            if rule.on_violation == OnViolation::DropRow {
                dropped = &dropped | &violating;
            }
            count.failed_records = failed as u64;
            count.passed_records = judged.count_set_bits().saturating_sub(failed) as u64;
            violations.push(violating);
        }
        quality.dropped_records = dropped.count_set_bits() as u64;
        Ok(Verdict { keep: BooleanArray::new(!&dropped, None), quality, violations })
    }

    fn violated(&self, rule: &Rule, rows: &RecordBatch, violating: &BooleanBuffer) -> Error {
        let first = violating.set_indices().next().unwrap_or_default();
        let message = "EXPECTATION_VIOLATION: a row does not meet a constraint of its table";
        Error::new(ErrorKind::Data, message)
            .with("constraint", &rule.name)
            .with("condition", &rule.text)
            .with("table", &self.dataset)
            .with("rows", format!("{} of {}", violating.count_set_bits(), rows.num_rows()))
            .with("row", sample(rows, first))
            .help("mend the input; or let the constraint keep such rows, or drop them: ON VIOLATION DROP ROW")
    }
}

impl Verdict {
    /// Names of the constraints that a row violates.
    fn violated_by<'a>(
        &'a self,
        expectations: &'a Expectations,
        row: usize,
    ) -> impl Iterator<Item = &'a str> {
        let rules = expectations.rules.iter().zip(&self.violations);
        rules.filter(move |(_, rows)| rows.value(row)).map(|(rule, _)| rule.name.as_str())
    }
}

impl Rule {
    fn new(declared: &Expectation, columns: &SchemaRef) -> Result<Self> {
        let what = format!("constraint `{}`", declared.name);
        let context = query::session();
        let known = DFSchema::try_from(columns.as_ref().clone())?;
        let parsed = context.parse_sql_expr(declared.condition.sql(), &known).map_err(|error| {
            let why = Error::from(error).full_text();
            let names: Vec<&str> = columns.fields().iter().map(|field| field.name().as_str()).collect();
            Error::new(ErrorKind::Definition, format!("{what} can't be understood: {why}"))
                .help(format!("it can name what the table keeps: {}", names.join(", ")))
        })?;
        check_row_by_row(&what, &parsed)?;
        let found = parsed.get_type(&known).map_err(|error| {
            let why = Error::from(error).full_text();
            Error::new(ErrorKind::Definition, format!("{what} can't be understood: {why}"))
        })?;
        if !matches!(found, DataType::Boolean | DataType::Null) {
            return Err(Error::new(ErrorKind::Definition, format!("{what} is no condition"))
                .with("expression", &declared.condition)
                .with("type", found)
                .help("write what is TRUE of a good row"));
        }
        let paths = paths_of(&parsed)?;
        let condition = context.create_physical_expr(parsed, &known).map_err(|error| {
            let why = Error::from(error).full_text();
            Error::new(ErrorKind::Definition, format!("{what} can't be understood: {why}"))
        })?;
        Ok(Self {
            name: declared.name.clone(),
            text: declared.condition.text().to_owned(),
            on_violation: declared.on_violation,
            condition,
            paths,
        })
    }

    /// The rows that do not pass. A row that leaves a column unset which the condition looks at is not asked.
    fn violating(
        &self,
        rows: &RecordBatch,
        judged: &BooleanBuffer,
        events: Option<&Proposal>,
    ) -> Result<BooleanBuffer> {
        let set =
            events.into_iter().flat_map(|events| self.paths.iter().filter_map(|path| events.sets(path)));
        let asked = set.fold(judged.clone(), |asked, set| &asked & set.values());
        if asked.count_set_bits() == 0 {
            return Ok(asked);
        }
        let selection = BooleanArray::new(asked.clone(), None);
        let value = self.condition.evaluate_selection(rows, &selection);
        let value = value.and_then(|value| value.into_array(rows.num_rows())).map_err(|error| {
            Error::new(ErrorKind::Data, "the condition of a constraint can't be computed")
                .with("constraint", &self.name)
                .with("condition", &self.text)
                .because(Error::from(error).full_text())
        })?;
        // A condition that is NULL for every row has no type of its own, and holds for none.
        let passes = value.as_boolean_opt().map_or_else(
            || BooleanBuffer::new_unset(rows.num_rows()),
            |flags| {
                flags.nulls().map_or_else(|| flags.values().clone(), |nulls| flags.values() & nulls.inner())
            },
        );
        Ok(&asked & &!&passes)
    }
}

/// The columns that an expression looks at; where it looks at a field of a struct alone, the field.
fn paths_of(expression: &Expr) -> Result<Vec<Vec<String>>> {
    let mut paths = Vec::new();
    expression.apply(|part| {
        let Some(path) = path_of(part) else { return Ok(TreeNodeRecursion::Continue) };
        if !paths.contains(&path) {
            paths.push(path);
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(paths)
}

fn path_of(expression: &Expr) -> Option<Vec<String>> {
    match expression {
        Expr::Column(column) => Some(vec![column.name.clone()]),
        Expr::ScalarFunction(call) if call.func.name() == "get_field" => {
            let (base, fields) = call.args.split_first()?;
            let mut path = path_of(base)?;
            for field in fields {
                let Expr::Literal(ScalarValue::Utf8(Some(name)), _) = field else { return Some(path) };
                path.push(name.clone());
            }
            Some(path)
        }
        _ => None,
    }
}

const LONGEST: usize = 200;

/// One row as `name=value, ..`, shortened.
fn sample(rows: &RecordBatch, row: usize) -> String {
    let options = FormatOptions::default().with_null("NULL");
    let value = |column: &Arc<dyn Array>| {
        ArrayFormatter::try_new(column.as_ref(), &options)
            .map_or_else(|_| "?".to_owned(), |formatter| formatter.value(row).to_string())
    };
    let schema = rows.schema();
    let parts = schema.fields().iter().zip(rows.columns());
    let parts: Vec<String> =
        parts.map(|(field, column)| format!("{}={}", field.name(), value(column))).collect();
    let text = parts.join(", ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
#[path = "expectations/tests.rs"]
mod tests;
