//! Which rows of a history held at a moment, and as it was known then?
//!
//! A history table has one or two time axes, by its system columns:
//!
//! | table | business axis | system axis |
//! | --- | --- | --- |
//! | SCD type 2 | `[__START_AT, __END_AT)` | |
//! | bitemporal | `[__START_AT, __END_AT)` | `[__SYSTEM_START_AT, __SYSTEM_END_AT)` |
//!
//! Intervals are half-open on both axes (Law 4), and a NULL end means open. So of the versions of a key that meet at a
//! moment the later one is the answer.

use arrow_schema::{DataType, Field, Schema};
use datafusion::{
    common::ScalarValue,
    functions::core::expr_ext::FieldAccessor,
    logical_expr::{Expr, ident, lit},
};
use strandline_cdc_core::names;

use super::literal::fitted;
use crate::error::{Error, ErrorKind, Result};

/// What kind of history a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// SCD type 2: versions in business time.
    Versions,
    /// Bitemporal: versions in business time, as believed in system time.
    Beliefs,
}

impl History {
    /// The history that a table with these columns holds; `None` when it holds none.
    pub fn of(schema: &Schema) -> Option<Self> {
        let has = |name| schema.index_of(name).is_ok();
        if !has(names::START_AT) || !has(names::END_AT) {
            return None;
        }
        let beliefs = has(names::SYSTEM_START_AT) && has(names::SYSTEM_END_AT);
        Some(if beliefs { Self::Beliefs } else { Self::Versions })
    }

    /// The rows that hold now and are believed now: the SCD type 1 table of the same changes.
    pub fn current(self) -> Expr {
        let open = ident(names::END_AT).is_null();
        match self {
            Self::Versions => open,
            Self::Beliefs => ident(names::SYSTEM_END_AT).is_null().and(open),
        }
    }

    /// The rows that are believed now, of whatever business time: the SCD type 2 table of the same changes. Without a
    /// system axis that is every row.
    pub fn believed(self) -> Expr {
        match self {
            Self::Versions => lit(true),
            Self::Beliefs => ident(names::SYSTEM_END_AT).is_null(),
        }
    }
}

/// A moment in business time, in system time, or in both.
///
/// Values may be given as text, as a number, or in the type of the column: they are brought to its type exactly, or
/// refused. A NULL value doesn't restrict.
///
/// ```
/// use arrow_schema::{DataType, Field, Schema};
/// use datafusion::common::ScalarValue;
/// use strandline_runtime::AsOf;
///
/// let schema = Schema::new(vec![
///     Field::new("id", DataType::Int64, false),
///     Field::new("__START_AT", DataType::Date32, true),
///     Field::new("__END_AT", DataType::Date32, true),
/// ]);
/// let moment = AsOf::default().business(ScalarValue::from("2025-01-03"));
/// let predicate = moment.predicate(&schema)?.to_string();
/// assert_eq!(
///     predicate,
///     r#"__START_AT <= Date32("2025-01-03") AND (__END_AT IS NULL OR __END_AT > Date32("2025-01-03"))"#
/// );
/// # Ok::<(), strandline_runtime::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AsOf {
    business: Option<ScalarValue>,
    system: Option<ScalarValue>,
}

impl AsOf {
    /// Restricts to rows that held at `moment` of business time, the time of `SEQUENCE BY`.
    #[must_use]
    pub fn business(self, moment: ScalarValue) -> Self {
        Self { business: Some(moment).filter(|moment| !moment.is_null()), ..self }
    }

    /// Restricts to rows that were believed at `moment` of system time, the time of `SYSTEM SEQUENCE BY`.
    #[must_use]
    pub fn system(self, moment: ScalarValue) -> Self {
        Self { system: Some(moment).filter(|moment| !moment.is_null()), ..self }
    }

    /// The condition that rows of a table with this schema meet: on each restricted axis
    /// `start <= moment AND (end IS NULL OR end > moment)`. Plain comparisons of columns with literals of their type, so
    /// that a source can prune by them. Structs compare field by field, NULL fields lowest.
    ///
    /// # Errors
    /// `Definition` when the table has no such axis, or a moment is no value of its type.
    pub fn predicate(&self, schema: &Schema) -> Result<Expr> {
        let axes = [
            ("business", &self.business, names::START_AT, names::END_AT),
            ("system", &self.system, names::SYSTEM_START_AT, names::SYSTEM_END_AT),
        ];
        let mut whole: Option<Expr> = None;
        for (axis, moment, start, end) in axes {
            let Some(moment) = moment else { continue };
            let (Ok(start), Ok(end)) = (schema.field_with_name(start), schema.field_with_name(end)) else {
                return Err(Error::new(
                    ErrorKind::Definition,
                    format!("the table has no {axis} time: it lacks {start} or {end}"),
                ));
            };
            let moment = fitted(moment, start.data_type()).map_err(|error| error.with("axis", axis))?;
            let on_axis = covers(start, end, &moment);
            whole = Some(match whole {
                Some(before) => before.and(on_axis),
                None => on_axis,
            });
        }
        Ok(whole.unwrap_or_else(|| lit(true)))
    }
}

/// `[start, end)` covers the moment.
fn covers(start: &Field, end: &Field, moment: &ScalarValue) -> Expr {
    let (from, to) = (ident(start.name()), ident(end.name()));
    if !matches!(start.data_type(), DataType::Struct(_)) {
        let began = from.lt_eq(lit(moment.clone()));
        return began.and(to.clone().is_null().or(to.gt(lit(moment.clone()))));
    }
    let began = from.clone().is_not_null().and(at_most(from, moment));
    let ended = to.clone().is_not_null().and(at_most(to, moment));
    began.and(!ended)
}

/// `value <= bound`, TRUE or FALSE: NULL is the lowest value, and structs compare field by field, the first one first.
fn at_most(value: Expr, bound: &ScalarValue) -> Expr {
    below(value.clone(), bound).or(equal(value, bound))
}

fn below(value: Expr, bound: &ScalarValue) -> Expr {
    if bound.is_null() {
        return lit(false);
    }
    let fields = fields_of(&value, bound);
    if fields.is_empty() {
        return value.clone().is_null().or(value.lt(lit(bound.clone())));
    }
    let mut earlier_fields_equal = lit(true);
    let mut found = value.is_null();
    for (field, bound) in fields {
        found = found.or(earlier_fields_equal.clone().and(below(field.clone(), &bound)));
        earlier_fields_equal = earlier_fields_equal.and(equal(field, &bound));
    }
    found
}

fn equal(value: Expr, bound: &ScalarValue) -> Expr {
    if bound.is_null() {
        return value.is_null();
    }
    let fields = fields_of(&value, bound);
    if fields.is_empty() {
        return value.clone().is_not_null().and(value.eq(lit(bound.clone())));
    }
    let all = fields.into_iter().map(|(field, bound)| equal(field, &bound));
    all.fold(value.is_not_null(), Expr::and)
}

/// The fields of a struct, each with the bound's value of it; empty for other types.
fn fields_of(value: &Expr, bound: &ScalarValue) -> Vec<(Expr, ScalarValue)> {
    let ScalarValue::Struct(array) = bound else { return Vec::new() };
    let fields = array.fields().iter().zip(array.columns());
    let parts = fields.filter_map(|(field, column)| {
        let part = ScalarValue::try_from_array(column, 0).ok()?;
        Some((value.clone().field(field.name().as_str()), part))
    });
    parts.collect()
}

#[cfg(test)]
#[path = "as_of_tests.rs"]
mod tests;
