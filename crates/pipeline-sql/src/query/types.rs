//! Which name has a type of Spark's in an engine?
//!
//! Spark's names that `DataFusion` has not, and defaults that differ: a TIMESTAMP is an instant with microseconds, and a
//! DECIMAL without digits has ten.

use std::ops::ControlFlow;

use sqlparser::ast::{ArrayElemTypeDef, DataType, ExactNumberInfo, Expr, TimezoneInfo, VisitMut, VisitorMut};

/// Spark counts microseconds.
const MICROSECONDS: Option<u64> = Some(6);

/// Renames every type in an expression.
pub(crate) fn rename(expr: &mut Expr) {
    let ControlFlow::Continue(()) = expr.visit(&mut Names);
}

/// Renames the type that an expression names itself.
pub(super) fn rename_one(expr: &mut Expr) {
    if let Expr::Cast { data_type, .. } = expr {
        portable(data_type);
    } else if let Expr::TypedString(typed) = expr {
        portable(&mut typed.data_type);
    }
}

struct Names;

impl VisitorMut for Names {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        rename_one(expr);
        ControlFlow::Continue(())
    }
}

fn portable(data_type: &mut DataType) {
    if let DataType::Array(ArrayElemTypeDef::AngleBracket(item)) = data_type {
        portable(item);
    } else if let Some(name) = other_name(data_type) {
        *data_type = name;
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever has the same name in an engine keeps it")]
fn other_name(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Timestamp(None, TimezoneInfo::None) => instant(),
        DataType::TimestampNtz(_) => DataType::Timestamp(MICROSECONDS, TimezoneInfo::None),
        DataType::Varchar(_) | DataType::Char(_) | DataType::Character(_) => DataType::Varchar(None),
        DataType::Binary(_) => DataType::Bytea,
        DataType::Dec(ExactNumberInfo::None)
        | DataType::Decimal(ExactNumberInfo::None)
        | DataType::Numeric(ExactNumberInfo::None) => {
            DataType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 0))
        }
        DataType::Dec(digits) => DataType::Decimal(*digits),
        DataType::Custom(name, arguments) if arguments.is_empty() => {
            match name.to_string().to_uppercase().as_str() {
                "BYTE" => DataType::TinyInt(None),
                "SHORT" => DataType::SmallInt(None),
                "LONG" => DataType::BigInt(None),
                "TIMESTAMP_LTZ" => instant(),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn instant() -> DataType {
    DataType::Timestamp(MICROSECONDS, TimezoneInfo::WithTimeZone)
}
