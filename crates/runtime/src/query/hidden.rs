//! The column `_metadata` of files: there for queries that name it, and not part of `*`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::{
    ast::{
        ExcludeSelectItem, Ident, ObjectName, Query, SelectItem, SetExpr, TableFactor, VisitMut, VisitorMut,
        WildcardAdditionalOptions,
    },
    dialect::GenericDialect,
    parser::Parser,
};
use strandline_pipeline_sql::{FlowQuery, InputKind, PipelineDefinition};

use super::{DEEPEST_VIEW, view_read};
use crate::{
    error::{Error, ErrorKind, Result},
    sources::metadata::METADATA,
};

/// Whether `query`, or a view that it reads, names the column beside the files that have it.
pub(crate) fn wants_metadata(definition: &PipelineDefinition, query: &FlowQuery) -> bool {
    wants(definition, query, 0)
}

fn wants(definition: &PipelineDefinition, query: &FlowQuery, depth: usize) -> bool {
    let reads_files = query.inputs.iter().any(|input| matches!(input.kind, InputKind::ReadFiles(_)));
    let views = query.inputs.iter().filter_map(|input| view_read(definition, input));
    (reads_files && query.sql.contains(METADATA))
        || (depth < DEEPEST_VIEW && views.into_iter().any(|view| wants(definition, view, depth + 1)))
}

/// The query with `*` over the tables `placeholders` meaning all columns but this one.
///
/// # Errors
/// `Definition` for a text that is no query.
pub(super) fn without_metadata(sql: &str, placeholders: &[&str]) -> Result<String> {
    let mut statements = Parser::parse_sql(&GenericDialect {}, sql)
        .map_err(|e| Error::new(ErrorKind::Definition, "the query can't be read").because(e))?;
    // Nothing breaks the visit off.
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = statements.visit(&mut Narrow(placeholders));
    Ok(statements.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

struct Narrow<'a>(&'a [&'a str]);

impl VisitorMut for Narrow<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.narrow(&mut query.body);
        ControlFlow::Continue(())
    }
}

impl Narrow<'_> {
    fn is_meant(&self, name: &ObjectName) -> bool {
        let part = name.0.last().and_then(|part| part.as_ident());
        part.is_some_and(|ident| self.0.contains(&ident.value.as_str()))
    }

    fn narrow(&self, body: &mut SetExpr) {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.narrow(left);
                self.narrow(right);
            }
            SetExpr::Select(select) => {
                let factors = select.from.iter().flat_map(|from| {
                    std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
                });
                let mut names = Vec::new();
                for factor in factors {
                    if let TableFactor::Table { name, alias, .. } = factor
                        && self.is_meant(name)
                    {
                        names.push(
                            alias.as_ref().map_or_else(|| name.to_string(), |alias| alias.name.to_string()),
                        );
                    }
                }
                if names.is_empty() {
                    return;
                }
                for item in &mut select.projection {
                    match item {
                        SelectItem::Wildcard(options) => exclude(options),
                        SelectItem::QualifiedWildcard(kind, options)
                            if names.iter().any(|name| kind.to_string() == format!("{name}.*")) =>
                        {
                            exclude(options);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

fn exclude(options: &mut WildcardAdditionalOptions) {
    let name = ObjectName::from(vec![Ident::with_quote('"', METADATA)]);
    options.opt_exclude = Some(match options.opt_exclude.take() {
        None => ExcludeSelectItem::Single(name),
        Some(ExcludeSelectItem::Single(one)) => ExcludeSelectItem::Multiple(vec![one, name]),
        Some(ExcludeSelectItem::Multiple(mut more)) => {
            more.push(name);
            ExcludeSelectItem::Multiple(more)
        }
    });
}

#[cfg(test)]
mod tests {
    use super::without_metadata;

    #[test]
    fn a_star_leaves_the_column_out_where_files_are_read() {
        let narrowed = |sql: &str| without_metadata(sql, &["__f"]).unwrap();
        assert_eq!(narrowed("SELECT * FROM __f"), "SELECT * EXCLUDE \"_metadata\" FROM __f");
        assert_eq!(
            narrowed("SELECT *, _metadata.file_path AS p FROM (SELECT * FROM \"__f\") AS x"),
            "SELECT *, _metadata.file_path AS p FROM (SELECT * EXCLUDE \"_metadata\" FROM \"__f\") AS x"
        );
        assert_eq!(
            narrowed("SELECT a.*, b.* FROM __f AS a JOIN t AS b ON true"),
            "SELECT a.* EXCLUDE \"_metadata\", b.* FROM __f AS a JOIN t AS b ON true"
        );
        assert_eq!(
            narrowed("SELECT * EXCEPT (a) FROM __f"),
            "SELECT * EXCLUDE \"_metadata\" EXCEPT (a) FROM __f"
        );
        assert_eq!(narrowed("SELECT * FROM t"), "SELECT * FROM t");
        assert!(without_metadata("SELEC", &[]).is_err());
    }
}
