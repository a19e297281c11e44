//! What do Spark's types, operators and casts look like to an engine?
//!
//! Names of types that `DataFusion` has not, and defaults that differ: a TIMESTAMP is an instant with microseconds, and a
//! DECIMAL without digits has ten. Operators that it spells otherwise. `date(x)` and its like, which are casts.

use std::ops::ControlFlow;

use sqlparser::{
    ast::{
        ArrayElemTypeDef, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg,
        FunctionArgExpr, FunctionArguments, TimezoneInfo, UnaryOperator, Value, VisitMut, VisitorMut,
    },
    tokenizer::{Token, TokenWithSpan},
};

use crate::{error::Problem, lexer::Tok};

/// Spark counts microseconds.
const MICROSECONDS: Option<u64> = Some(6);

/// The tokens with standard quoting.
///
/// # Errors
/// Literals that would be read as something else.
pub(crate) fn tokens(tokens: &[Tok]) -> Result<Vec<TokenWithSpan>, Problem> {
    tokens.iter().zip(tokens.iter().skip(1)).try_for_each(|(tok, next)| literal(tok, next))?;
    Ok(tokens.iter().map(Tok::portable).collect())
}

/// Refuses two kinds of literal that other parsers take for a name with an alias.
pub(super) fn literal(tok: &Tok, next: &Tok) -> Result<(), Problem> {
    let range = tok.range.start..next.range.end;
    let adjacent = tok.range.end == next.range.start;
    let string = matches!(next.token, Token::SingleQuotedString(_) | Token::DoubleQuotedString(_));
    if adjacent && string && tok.is_keyword("R") {
        return Err(Problem::new(range, "not supported yet: strings without escapes")
            .help("leave out the r and write each backslash twice"));
    }
    let number = matches!(tok.token, Token::Number(..));
    let suffixes =
        [("D", "DOUBLE"), ("F", "FLOAT"), ("S", "SMALLINT"), ("Y", "TINYINT"), ("BD", "DECIMAL(38, 18)")];
    if adjacent
        && number
        && let Some((suffix, data_type)) = suffixes.iter().find(|(suffix, _)| next.is_keyword(suffix))
    {
        return Err(Problem::new(range, format!("not supported yet: numbers with the suffix {suffix}"))
            .help(format!("write CAST({} AS {data_type})", tok.token)));
    }
    Ok(())
}

/// Rewrites an expression and all in it.
pub(crate) fn rewrite(expr: &mut Expr) {
    let ControlFlow::Continue(()) = expr.visit(&mut All);
}

struct All;

impl VisitorMut for All {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        rewrite_one(expr);
        ControlFlow::Continue(())
    }
}

/// Rewrites what an expression is itself, not its parts.
#[expect(clippy::wildcard_enum_match_arm, reason = "whatever an engine spells the same stays as it is")]
pub(super) fn rewrite_one(expr: &mut Expr) {
    match expr {
        Expr::Cast { data_type, .. } => portable(data_type),
        Expr::TypedString(typed) => portable(&mut typed.data_type),
        Expr::BinaryOp { op: BinaryOperator::Spaceship, left, right } => {
            *expr = nested(Expr::IsNotDistinctFrom(take(left), take(right)));
        }
        Expr::RLike { negated, expr: text, pattern, .. } => {
            let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
            *expr = nested(Expr::BinaryOp { op, left: take(text), right: take(pattern) });
        }
        Expr::UnaryOp { op: op @ UnaryOperator::BangNot, .. } => *op = UnaryOperator::Not,
        Expr::Function(function) => {
            if let Some(cast) = cast(function) {
                *expr = cast;
            }
        }
        _ => {}
    }
}

/// In parentheses: the operator may bind otherwise than the one that it stands for.
fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn take(expr: &mut Expr) -> Box<Expr> {
    Box::new(std::mem::replace(expr, Expr::Value(Value::Null.into())))
}

/// `date(x)` is CAST(x AS DATE), and so on.
fn cast(function: &mut Function) -> Option<Expr> {
    let plain = function.over.is_none() && function.filter.is_none() && function.within_group.is_empty();
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_mut_slice() else {
        return None;
    };
    let data_type = match function.name.to_string().to_lowercase().as_str() {
        "bigint" => DataType::BigInt(None),
        "binary" => DataType::Bytea,
        "boolean" => DataType::Boolean,
        "date" => DataType::Date,
        "double" => DataType::Double(ExactNumberInfo::None),
        "float" => DataType::Float(ExactNumberInfo::None),
        "int" => DataType::Int(None),
        "smallint" => DataType::SmallInt(None),
        "string" => DataType::String(None),
        "timestamp" => instant(),
        "tinyint" => DataType::TinyInt(None),
        _ => return None,
    };
    plain.then(|| Expr::Cast {
        kind: CastKind::Cast,
        expr: take(argument),
        data_type,
        array: false,
        format: None,
    })
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
