//! Does a table hear what a question restricts, so that it can leave files unread?

use std::sync::Mutex;

use arrow_schema::{DataType, Field, Schema};
use async_trait::async_trait;
use datafusion::{
    catalog::Session,
    datasource::{TableType, empty::EmptyTable},
    logical_expr::TableProviderFilterPushDown,
    physical_plan::ExecutionPlan,
};

use super::*;

/// A table without rows that remembers which conditions it was asked with.
#[derive(Debug)]
struct Listening {
    rows: EmptyTable,
    heard: Mutex<Vec<String>>,
}

#[async_trait]
impl TableProvider for Listening {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.heard.lock().unwrap().extend(filters.iter().map(ToString::to_string));
        self.rows.scan(session, projection, &[], limit).await
    }
}

async fn heard(sql: &str) -> Vec<String> {
    let names = ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"];
    let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
    let rows = EmptyTable::new(Arc::new(Schema::new(fields)));
    let table = Arc::new(Listening { rows, heard: Mutex::default() });
    let tables: BTreeMap<String, Arc<dyn TableProvider>> =
        [("t".to_owned(), Arc::clone(&table) as Arc<dyn TableProvider>)].into();
    answer(&Arc::new(tables), &store(), sql).await.unwrap().collect().await.unwrap();
    let mut heard = table.heard.lock().unwrap().clone();
    heard.sort();
    heard
}

fn store() -> Arc<dyn ObjectStore> {
    Arc::new(object_store::memory::InMemory::new())
}

#[tokio::test]
async fn moments_reach_the_table_as_comparisons_of_its_columns() {
    let found = heard("SELECT * FROM as_of(t, business => 7, system => 9)").await;
    for part in ["__START_AT <= Int64(7)", "__END_AT > Int64(7)", "__SYSTEM_START_AT <= Int64(9)"] {
        assert!(found.iter().any(|filter| filter.contains(part)), "{part}: {found:?}");
    }
    let found = heard("SELECT * FROM t_current WHERE __START_AT > 3").await;
    for part in ["__END_AT IS NULL", "__SYSTEM_END_AT IS NULL", "__START_AT > Int64(3)"] {
        assert!(found.iter().any(|filter| filter.contains(part)), "{part}: {found:?}");
    }
}

#[tokio::test]
async fn a_question_can_be_explained_and_nothing_can_be_changed() {
    heard("EXPLAIN SELECT * FROM as_of(t, system => 9, business => 7)").await;
    let tables = Arc::new(BTreeMap::new());
    for sql in ["CREATE TABLE x AS SELECT 1", "DROP TABLE t", "SET a = 1", "COPY (SELECT 1) TO 'f.csv'"] {
        assert!(answer(&tables, &store(), sql).await.is_err(), "{sql}");
    }
}
