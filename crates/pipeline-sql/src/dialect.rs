//! How does the text of a pipeline fall into tokens and expressions?

use std::{any::TypeId, cell::Cell};

use sqlparser::{
    ast::Expr,
    dialect::{DatabricksDialect, Dialect},
    parser::{Parser, ParserError},
    tokenizer::TokenWithSpan,
};

/// How deep queries and expressions may nest.
const MAX_DEPTH: usize = 50;
/// Expressions that the parser may begin on, besides ten for each token. It goes back where one reading fails, and for a
/// few nested forms each level doubles the work.
const MIN_ATTEMPTS: usize = 20_000;

/// The SQL dialect of pipelines: that of Spark and Databricks.
///
/// Names are quoted with backquotes, `"text"` is a string, and backslashes escape within strings.
#[derive(Debug, Default, Clone)]
pub(crate) struct StrandlineDialect {
    attempts_left: Cell<usize>,
}

impl StrandlineDialect {
    /// A dialect that lets its parser do the work that so many tokens may need.
    pub(crate) fn for_tokens(count: usize) -> Self {
        Self { attempts_left: Cell::new(count.saturating_mul(10).saturating_add(MIN_ATTEMPTS)) }
    }

    /// A parser of `tokens` that stops at deep nesting and at too much work.
    pub(crate) fn parser(&self, tokens: Vec<TokenWithSpan>) -> Parser<'_> {
        Parser::new(self).with_recursion_limit(MAX_DEPTH).with_tokens_with_locations(tokens)
    }
}

impl Dialect for StrandlineDialect {
    /// The parser asks for this in the few places where it knows dialects by name.
    fn dialect(&self) -> TypeId {
        TypeId::of::<DatabricksDialect>()
    }

    /// Changes nothing, but counts: this error is the one that the parser does not take for a reason to try otherwise.
    fn parse_prefix(&self, _: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        match self.attempts_left.get().checked_sub(1) {
            None => Some(Err(ParserError::RecursionLimitExceeded)),
            Some(left) => {
                self.attempts_left.set(left);
                None
            }
        }
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_'
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }

    fn ignores_wildcard_escapes(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_bang_not_operator(&self) -> bool {
        true
    }

    fn supports_cte_without_as(&self) -> bool {
        true
    }

    fn supports_long_type_as_bigint(&self) -> bool {
        true
    }
}
