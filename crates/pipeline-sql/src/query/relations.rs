//! Which plain table references does a parsed query have?
//!
//! Names of common table expressions are none of the pipeline's. Their scope is followed as the query is walked: within
//! a WITH list each one sees those before it, the body sees all.

use std::{collections::BTreeMap, ops::ControlFlow};

use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, SetExpr, Statement, TableAlias, TableFactor, VisitorMut,
};

use super::{InputKind, QueryInput, paths, placeholder, portable};
use crate::{
    Span,
    cursor::{Cursor, dataset_name},
    error::Problem,
};

/// Replaces plain table references by placeholders, and gives every placeholder its alias.
pub(super) struct Relations<'a> {
    cursor: Cursor<'a>,
    pub(super) inputs: Vec<QueryInput>,
    scopes: Vec<Scope>,
}

/// The common table expressions of one query.
struct Scope {
    /// Name, and address of the query that defines it.
    tables: Vec<(String, usize)>,
    /// How many of them can be seen at this point of the walk.
    visible: usize,
}

impl<'a> Relations<'a> {
    pub(super) fn new(cursor: &Cursor<'a>, inputs: Vec<QueryInput>) -> Self {
        Self { cursor: *cursor, inputs, scopes: Vec::new() }
    }

    fn names_common_table(&self, parts: &[String]) -> bool {
        let [name] = parts else { return false };
        self.scopes.iter().any(|scope| {
            scope
                .tables
                .iter()
                .take(scope.visible)
                .any(|(table, _)| table.to_lowercase() == name.to_lowercase())
        })
    }

    fn span_of(&self, name: &ObjectName) -> Span {
        let place = |ident: &Ident| self.cursor.token_at(ident.span.start).unwrap_or_default();
        let mut idents = name.0.iter().filter_map(ObjectNamePart::as_ident);
        let first = idents.next().map(place).unwrap_or_default();
        let end = idents.next_back().map_or(first.end, |last| place(last).end);
        Span { file: self.cursor.file, start: first.start, end }
    }

    /// The placeholder and alias for a table reference; none where it stays as it is.
    fn replacement(&mut self, name: &ObjectName) -> Result<Option<(String, Option<String>)>, Problem> {
        let parts = parts(name);
        if let [only] = parts.as_slice()
            && let Some(input) = self.inputs.iter().find(|input| input.placeholder == *only)
        {
            let alias = match &input.kind {
                InputKind::Dataset(name) => Some(last_part(name)),
                InputKind::Table(table) => Some(last_part(&table.path)),
                InputKind::LastSnapshotVersion => Some("last_snapshot_version".to_owned()),
                InputKind::CurrentSnapshotVersion => Some("current_snapshot_version".to_owned()),
                InputKind::ReadFiles(_) | InputKind::ReadKafka(_) => None,
            };
            return Ok(Some((only.clone(), alias)));
        }
        if self.names_common_table(&parts) {
            return Ok(None);
        }
        let span = self.span_of(name);
        let alias = parts.last().cloned();
        let quoted =
            name.0.iter().filter_map(ObjectNamePart::as_ident).map(|ident| ident.quote_style.is_some());
        let places: Vec<_> = parts.iter().cloned().zip(quoted).collect();
        let kind = paths::input(&places, &(span.start..span.end))?
            .unwrap_or_else(|| InputKind::Dataset(dataset_name(parts)));
        if kind == InputKind::Dataset(String::new()) {
            return Err(Problem::new(span.start..span.end, "this table name can't be resolved"));
        }
        let placeholder = placeholder(self.inputs.len());
        self.inputs.push(QueryInput {
            placeholder: placeholder.clone(),
            kind,
            options: BTreeMap::new(),
            streaming: false,
            span,
        });
        Ok(Some((placeholder, alias)))
    }
}

impl VisitorMut for Relations<'_> {
    type Break = Problem;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Problem> {
        if !matches!(
            *query.body,
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::SetOperation { .. } | SetExpr::Values(_)
        ) {
            return ControlFlow::Break(self.cursor.expected("a query that only reads"));
        }
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        let tables: Vec<_> = query
            .with
            .iter()
            .flat_map(|with| &with.cte_tables)
            .map(|cte| (cte.alias.name.value.clone(), address(&cte.query)))
            .collect();
        let visible = if recursive { tables.len() } else { 0 };
        self.scopes.push(Scope { tables, visible });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Problem> {
        self.scopes.pop();
        let here = address(query);
        if let Some(scope) = self.scopes.last_mut()
            && let Some(place) = scope.tables.iter().position(|(_, at)| *at == here)
        {
            scope.visible = scope.visible.max(place + 1);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, _: &mut Statement) -> ControlFlow<Problem> {
        ControlFlow::Break(self.cursor.expected("a query that only reads"))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Problem> {
        portable::rewrite_one(expr);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Problem> {
        if let TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } =
            factor
        {
            let problem = Problem::new(self.cursor.here(), "not supported yet: TABLESAMPLE in this query");
            return ControlFlow::Break(problem.help("filter the rows, by a hash of a column for example"));
        }
        let TableFactor::Table { name, alias, args: None, version, with_hints, .. } = factor else {
            return ControlFlow::Continue(());
        };
        if !with_hints.is_empty() {
            let span = self.span_of(name);
            let message = "WITH (..) goes directly behind a table that is read as a stream";
            return ControlFlow::Break(
                Problem::new(span.start..span.end, message)
                    .help("write STREAM t WITH (option = value) AS name"),
            );
        }
        if version.is_some() {
            let span = self.span_of(name);
            return ControlFlow::Break(Problem::new(
                span.start..span.end,
                "not supported yet: reading a table AS OF a version or time",
            ));
        }
        match self.replacement(name) {
            Err(problem) => ControlFlow::Break(problem),
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some((placeholder, default_alias))) => {
                *name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(placeholder))]);
                if alias.is_none() {
                    *alias = default_alias.map(table_alias);
                }
                ControlFlow::Continue(())
            }
        }
    }
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

/// Quotes were doubled for printing; a name has them once.
fn parts(name: &ObjectName) -> Vec<String> {
    name.0
        .iter()
        .filter_map(ObjectNamePart::as_ident)
        .map(|ident| ident.value.replace("\"\"", "\""))
        .collect()
}

fn last_part(name: &str) -> String {
    name.rsplit('.').next().unwrap_or(name).to_owned()
}

fn table_alias(name: String) -> TableAlias {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let name = if plain { Ident::new(name) } else { Ident::with_quote('"', name.replace('"', "\"\"")) };
    TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}
