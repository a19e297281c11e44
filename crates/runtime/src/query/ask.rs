//! What may be asked of a storage's tables?
//!
//! Every table by its name; of a history table `t` also the views `t_current` and (bitemporal) `t_believed`, where no
//! table has that name, and what it held as of a moment:
//!
//! | table function | rows that |
//! | --- | --- |
//! | `as_of(t, business)` | held then; SCD type 2 only, since a bitemporal table has two axes |
//! | `as_of(t, business, system)` | held then, as it was believed then; NULL does not restrict |
//! | `as_of_business(t, business)` | held then, in whichever belief |
//! | `as_of_system(t, system)` | were believed then, of whatever business time |
//!
//! Arguments may be given by name: `as_of(t, business => .., system => ..)`. And `events()`: what happened in updates,
//! see [`crate::events::table`].

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{
    catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider},
    common::{ScalarValue, TableReference},
    dataframe::DataFrame,
    datasource::{ViewTable, provider_as_source},
    error::Result as DfResult,
    execution::context::{SQLOptions, SessionContext},
    logical_expr::{Expr, LogicalPlanBuilder},
    sql::parser::Statement,
};
use object_store::ObjectStore;

use super::{
    as_of::{AsOf, History},
    named::{Signature, by_position},
    session,
};
use crate::{
    error::{Error, ErrorKind, Result},
    events::table::{self as events, EventsFunction},
    relation::SnapshotTable,
    storage::Storage,
};

const FUNCTIONS: &[Signature] = &[
    Signature { name: "as_of", parameters: &["table", "business", "system"] },
    Signature { name: "as_of_business", parameters: &["table", "business"] },
    Signature { name: "as_of_system", parameters: &["table", "system"] },
    Signature { name: events::NAME, parameters: &[] },
];

/// Tables by name, as of one moment of asking.
type Tables = Arc<BTreeMap<String, Arc<dyn TableProvider>>>;

/// Runs a query that only reads.
pub(crate) async fn ask(storage: &Storage, sql: &str) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let format = storage.format.as_ref();
    let mut tables: BTreeMap<String, Arc<dyn TableProvider>> = BTreeMap::new();
    for name in format.list().await? {
        if let Some(table) = format.open(&name).await? {
            tables.insert(name, Arc::new(SnapshotTable::new(table.snapshot().await?)));
        }
    }
    let rows = answer(&Arc::new(tables), &storage.store, sql).await?;
    let schema = Arc::clone(rows.schema().inner());
    Ok((schema, rows.collect().await?))
}

/// The rows of a query over these tables and the event log of that store, lazily.
async fn answer(tables: &Tables, log: &Arc<dyn ObjectStore>, sql: &str) -> Result<DataFrame> {
    let context = session();
    register(&context, tables)?;
    context.register_udtf(events::NAME, Arc::new(EventsFunction::new(Arc::clone(log))));
    let state = context.state();
    let dialect = state.config_options().sql_parser.dialect;
    let mut statement = state.sql_to_statement(sql, &dialect)?;
    let mut inner = &mut statement;
    while let Statement::Explain(explained) = inner {
        inner = &mut explained.statement;
    }
    if let Statement::Statement(query) = inner {
        by_position(query, FUNCTIONS)?;
    }
    let plan = state.statement_to_plan(statement).await?;
    let only_reading =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    only_reading.verify_plan(&plan)?;
    Ok(context.execute_logical_plan(plan).await?)
}

fn register(context: &SessionContext, tables: &Tables) -> Result<()> {
    for (name, table) in tables.iter() {
        context.register_table(TableReference::bare(name.as_str()), Arc::clone(table))?;
        let Some(history) = History::of(&table.schema()) else { continue };
        let mut views = vec![(format!("{name}_current"), history.current())];
        if history == History::Beliefs {
            views.push((format!("{name}_believed"), history.believed()));
        }
        for (view, condition) in views {
            if !tables.contains_key(&view) {
                let rows = restricted(name, table, condition)?;
                context.register_table(TableReference::bare(view), rows)?;
            }
        }
    }
    for Signature { name, .. } in FUNCTIONS.iter().filter(|function| function.name != events::NAME) {
        context.register_udtf(name, Arc::new(AsOfFunction { name, tables: Arc::clone(tables) }));
    }
    Ok(())
}

/// The rows that meet a condition, as a view: the engine plans it together with the query around it, and hands the
/// condition to the table.
fn restricted(
    name: &str,
    table: &Arc<dyn TableProvider>,
    condition: Expr,
) -> DfResult<Arc<dyn TableProvider>> {
    let source = provider_as_source(Arc::clone(table));
    let plan =
        LogicalPlanBuilder::scan(TableReference::bare(name), source, None)?.filter(condition)?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

#[derive(Debug)]
struct AsOfFunction {
    name: &'static str,
    tables: Tables,
}

impl AsOfFunction {
    fn rows(&self, arguments: &[Expr]) -> Result<Arc<dyn TableProvider>> {
        let values = arguments.iter().map(literal).collect::<Result<Vec<_>>>()?;
        let Some((table, moments)) = values.split_first() else { return Err(self.wrong_call()) };
        let (ScalarValue::Utf8(Some(name)) | ScalarValue::Utf8View(Some(name))) = table else {
            return Err(self.wrong_call());
        };
        let table = self.tables.get(name).ok_or_else(|| {
            Error::new(ErrorKind::Definition, "there is no such table")
                .with("table", name)
                .help(format!("tables are {}", self.tables.keys().cloned().collect::<Vec<_>>().join(", ")))
        })?;
        let schema = table.schema();
        let history = History::of(&schema).ok_or_else(|| {
            Error::new(ErrorKind::Definition, "the table holds no history: it has no __START_AT and __END_AT")
                .with("table", name)
                .help("only tables STORED AS SCD TYPE 2 or BITEMPORAL can be read as of a moment")
        })?;
        let moment = self.moment(history, moments).map_err(|error| error.with("table", name))?;
        let condition = moment.predicate(&schema).map_err(|error| error.with("table", name))?;
        Ok(restricted(name, table, condition)?)
    }

    fn moment(&self, history: History, moments: &[ScalarValue]) -> Result<AsOf> {
        match (self.name, moments) {
            ("as_of", [_]) if history == History::Beliefs => Err(Error::new(
                ErrorKind::Definition,
                "a bitemporal table is read as of two moments: when it held, and when it was believed",
            )
            .help("say as_of(table, business, system), where NULL does not restrict")),
            ("as_of" | "as_of_business", [business]) => Ok(AsOf::default().business(business.clone())),
            ("as_of", [business, system]) => {
                Ok(AsOf::default().business(business.clone()).system(system.clone()))
            }
            ("as_of_system", [system]) => Ok(AsOf::default().system(system.clone())),
            _ => Err(self.wrong_call()),
        }
    }

    fn wrong_call(&self) -> Error {
        let parameters = FUNCTIONS.iter().find(|f| f.name == self.name).map_or(&[][..], |f| f.parameters);
        Error::new(ErrorKind::Definition, "the call does not fit the function")
            .with("function", self.name)
            .help(format!("say {}({})", self.name, parameters.join(", ")))
    }
}

impl TableFunctionImpl for AsOfFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> DfResult<Arc<dyn TableProvider>> {
        Ok(self.rows(args.exprs())?)
    }
}

fn literal(argument: &Expr) -> Result<ScalarValue> {
    match argument {
        Expr::Literal(value, _) => Ok(value.clone()),
        other => Err(Error::new(ErrorKind::Definition, "a moment must be a literal")
            .with("argument", other)
            .help("write a value, such as '2025-01-31' or 42")),
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
