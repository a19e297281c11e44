//! How are arguments by name brought to table functions that take them by position?
//!
//! `as_of(prices, system => '2025-01-06')` becomes `as_of('prices', NULL, '2025-01-06')`. The engine knows arguments by
//! position only, and would take a table's name for a column.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Statement, TableFactor, Value,
    VisitMut, VisitorMut,
};

use crate::error::{Error, ErrorKind, Result};

/// A table function: its name, and its parameters in order; the first one is a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [&'static str],
}

/// Rewrites all calls of these functions in a statement.
///
/// # Errors
/// `Definition` for an unknown name, or one that is given twice.
pub(super) fn by_position(statement: &mut Statement, functions: &'static [Signature]) -> Result<()> {
    match statement.visit(&mut Calls(functions)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Calls(&'static [Signature]);

impl VisitorMut for Calls {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let (name, arguments) = match factor {
            TableFactor::Table { name, args: Some(call), .. } => (name, &mut call.args),
            TableFactor::Function { name, args, .. } => (name, args),
            _ => return ControlFlow::Continue(()),
        };
        let Some(signature) = self.0.iter().find(|signature| is_called(name, signature.name)) else {
            return ControlFlow::Continue(());
        };
        *name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(signature.name))]);
        match placed(signature, std::mem::take(arguments)) {
            Ok(placed) => {
                *arguments = placed;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error.with("function", signature.name)),
        }
    }
}

fn is_called(name: &ObjectName, function: &str) -> bool {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(one)] => one.value.eq_ignore_ascii_case(function),
        _ => false,
    }
}

/// The arguments by position. Parameters left out between given ones are NULL; positions behind the last given one stay out.
fn placed(signature: &Signature, arguments: Vec<FunctionArg>) -> Result<Vec<FunctionArg>> {
    let mut places: Vec<Option<FunctionArg>> = Vec::new();
    let mut any_named = false;
    for argument in arguments {
        let (place, value) = match argument {
            FunctionArg::Named { name, arg, .. } => {
                any_named = true;
                let place = signature.parameters.iter().position(|p| p.eq_ignore_ascii_case(&name.value));
                let place = place.ok_or_else(|| {
                    Error::new(ErrorKind::Definition, "the function has no parameter of this name")
                        .with("parameter", &name.value)
                        .help(format!("parameters are {}", signature.parameters.join(", ")))
                })?;
                (place, FunctionArg::Unnamed(arg))
            }
            positional if any_named => {
                return Err(Error::new(
                    ErrorKind::Definition,
                    "an argument without a name stands behind one with a name",
                )
                .with("argument", positional));
            }
            positional => (places.len(), positional),
        };
        if places.len() <= place {
            places.resize_with(place + 1, || None);
        }
        let Some(free @ None) = places.get_mut(place) else {
            let name = signature.parameters.get(place).copied().unwrap_or_default();
            return Err(
                Error::new(ErrorKind::Definition, "a parameter is given twice").with("parameter", name)
            );
        };
        *free = Some(if place == 0 { table_name(value) } else { value });
    }
    if any_named {
        places.resize_with(signature.parameters.len().max(places.len()), || None);
    }
    Ok(places.into_iter().map(|place| place.unwrap_or_else(null)).collect())
}

fn null() -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::value(Value::Null)))
}

/// A name as text.
fn table_name(argument: FunctionArg) -> FunctionArg {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name))) => text(name.value),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::CompoundIdentifier(parts))) => {
            text(parts.into_iter().map(|part| part.value).collect::<Vec<_>>().join("."))
        }
        other => other,
    }
}

fn text(value: String) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::value(Value::SingleQuotedString(value))))
}
