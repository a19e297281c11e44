//! What does a constraint expect of rows?
//!
//! A condition is judged row by row, so nothing in it may look at other rows (G-28).

use std::ops::{ControlFlow, Range};

use sqlparser::ast::{Expr, Function, FunctionArguments, Visit, Visitor};

use crate::{Expectation, OnViolation, cursor::Cursor, error::Problem, expr};

/// Functions over many rows, whatever they are called with.
const AGGREGATES: &[&str] = &[
    "any_value",
    "approx_count_distinct",
    "approx_percentile",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "collect_list",
    "collect_set",
    "corr",
    "count",
    "count_if",
    "covar_pop",
    "covar_samp",
    "every",
    "first",
    "first_value",
    "grouping",
    "kurtosis",
    "last",
    "last_value",
    "listagg",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "mode",
    "percentile",
    "percentile_approx",
    "regr_slope",
    "skewness",
    "some",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "try_avg",
    "try_sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Functions that only make sense over a window.
const WINDOW: &[&str] =
    &["cume_dist", "dense_rank", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank", "row_number"];

/// Reads `CONSTRAINT name EXPECT (condition) [ON VIOLATION ..]`, and gives the places of what it may not have in it.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<(Expectation, Vec<Problem>), Problem> {
    cursor.expect_words(&["CONSTRAINT"])?;
    let (name, _) = cursor.name("a constraint's name")?;
    cursor
        .expect_words(&["EXPECT"])
        .map_err(|problem| problem.help("write CONSTRAINT name EXPECT (condition)"))?;
    let mut inner = cursor.parenthesized()?;
    let whole = inner;
    let (condition, parsed) = expr::read_parsed(&mut inner)?;
    inner.expect_end()?;
    let problems = forbidden(&parsed, &whole);
    let on_violation = if cursor.eat_words(&["ON", "VIOLATION"]).is_none() {
        OnViolation::Keep
    } else if cursor.eat_words(&["DROP", "ROW"]).is_some() {
        OnViolation::DropRow
    } else if cursor.eat_words(&["FAIL", "UPDATE"]).is_some() {
        OnViolation::FailUpdate
    } else {
        return Err(cursor
            .expected("DROP ROW or FAIL UPDATE")
            .help("leave out ON VIOLATION where such rows should be kept and counted"));
    };
    Ok((Expectation { name, condition, on_violation }, problems))
}

fn forbidden(expr: &Expr, cursor: &Cursor<'_>) -> Vec<Problem> {
    let mut functions = Functions { cursor: *cursor, problems: Vec::new() };
    let ControlFlow::Continue(()) = expr.visit(&mut functions);
    functions.problems
}

struct Functions<'a> {
    cursor: Cursor<'a>,
    problems: Vec<Problem>,
}

impl Functions<'_> {
    fn place(&self, function: &Function) -> Range<usize> {
        let name = function.name.0.last().and_then(|part| part.as_ident());
        let place = name.and_then(|ident| self.cursor.token_at(ident.span.start));
        place.unwrap_or_else(|| self.cursor.here())
    }
}

impl Visitor for Functions<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let name = function.name.to_string().to_lowercase();
        let distinct = match &function.args {
            FunctionArguments::List(list) => list.duplicate_treatment.is_some(),
            FunctionArguments::None | FunctionArguments::Subquery(_) => false,
        };
        let kind = if function.over.is_some() || WINDOW.contains(&name.as_str()) {
            "a window function"
        } else if distinct || function.filter.is_some() || AGGREGATES.contains(&name.as_str()) {
            "an aggregate"
        } else {
            return ControlFlow::Continue(());
        };
        self.problems.push(
            Problem::new(
                self.place(function),
                format!("a constraint is about one row, but {name} is {kind} over many"),
            )
            .help("compute it in a view and compare with that, or check it in a materialized view"),
        );
        ControlFlow::Continue(())
    }
}
