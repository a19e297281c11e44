//! What is a materialized view computed from, and when must it be computed again?

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    dataframe::DataFrame,
    logical_expr::{Expr, LogicalPlan, Volatility, cast},
};
use strandline_pipeline_sql::{DatasetDefinition, FlowDefinition, FlowQuery, PipelineDefinition};

use super::{FlowAnalysis, Place, Work, append_target, target_of};
use crate::{
    error::{Error, ErrorKind, Result},
    properties::QUARANTINE,
    query::{self, SourceInput, Whole},
    types::storable,
};

/// A materialized view, understood.
#[derive(Debug, Clone)]
pub(crate) struct ViewWork {
    pub(crate) whole: Whole,
    /// All text that says what its rows are: they are other rows when it is another text.
    pub(crate) text: String,
    /// Whether its rows depend on the moment, or on chance.
    pub(crate) is_volatile: bool,
}

/// Understands the query of a materialized view.
pub(super) async fn analyse(
    definition: &PipelineDefinition,
    flow: &FlowDefinition,
    query: &FlowQuery,
    tables: &BTreeMap<String, SchemaRef>,
    place: Place<'_>,
) -> Result<FlowAnalysis> {
    let (table, properties) = target_of(definition, flow, place)?;
    properties.check_append()?;
    if properties.quarantine.is_some() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a materialized view is computed anew, so it has no quarantine",
        )
        .with("property", QUARANTINE)
        .help("check the rows in a streaming table, and read that"));
    }
    let whole = Whole::of(definition, [query], tables, place.format).await?;
    let rows = signed(query::plan(definition, query, &whole.columns_only()?).await?)?;
    let is_volatile = is_volatile(rows.logical_plan())?;
    let rows = Arc::new(storable(rows.schema().as_arrow()));
    let target = append_target(table, &rows)?;
    let rules = table.into_iter().flat_map(|table| &table.expectations);
    let rules = rules.map(|rule| format!("{} {:?} {}", rule.name, rule.on_violation, rule.condition.sql()));
    let columns = target.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
    let text =
        texts(definition, query).into_iter().chain(rules).chain(columns).collect::<Vec<_>>().join("\n");
    Ok(FlowAnalysis {
        source: SourceInput::Whole,
        source_schema: Arc::new(Schema::empty()),
        inferred: false,
        rows,
        work: Work::View(Box::new(ViewWork { whole, text, is_volatile })),
        snapshot: None,
        judged: Arc::clone(&target),
        target,
        properties,
    })
}

/// Numbers that the engine counts without a sign, those of `row_number()` for example, as the BIGINT that tables hold. One
/// that does not fit is an error.
pub(crate) fn signed(rows: DataFrame) -> Result<DataFrame> {
    let columns: Vec<Expr> = rows
        .schema()
        .columns()
        .into_iter()
        .zip(rows.schema().fields())
        .map(|(column, field)| match field.data_type() {
            DataType::UInt64 => cast(Expr::Column(column), DataType::Int64).alias(field.name()),
            _ => Expr::Column(column),
        })
        .collect();
    Ok(rows.select(columns)?)
}

/// The query's text, what its placeholders stand for, and the same of each view behind it.
fn texts(definition: &PipelineDefinition, query: &FlowQuery) -> Vec<String> {
    let mut texts = Vec::new();
    let mut seen = Vec::new();
    let mut open = vec![query];
    while let Some(query) = open.pop() {
        texts.push(query.text.clone());
        for name in query.dataset_names() {
            let view = definition.datasets.iter().find_map(|dataset| match dataset {
                DatasetDefinition::View(view) if view.name == name => Some(view),
                _ => None,
            });
            if let Some(view) = view.filter(|view| !seen.contains(&view.name.as_str())) {
                seen.push(&view.name);
                texts.push(view.name.clone());
                open.push(&view.query);
            }
        }
    }
    texts
}

/// Whether some function of the plan gives another value in another moment.
fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::ScalarFunction(call) = part
                    && call.func.signature().volatility != Volatility::Immutable
                {
                    found = true;
                    return Ok(TreeNodeRecursion::Stop);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}
