//! Materialized views: computed as a whole, when something that they read has changed.

use std::sync::Arc;

use object_store::memory::InMemory;
use serde_json::{Value as Json, json};
use strandline_runtime::{FlowReport, FlowStatus, UpdateReport};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, FORMATS, Format};

const ORDERS: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('orders/*.json', format => 'json',
      schema => 'id BIGINT, customer STRING, amount BIGINT', maxFilesPerTrigger => 1);";

/// An aggregate over a join of a table with files, and a window over that.
fn views() -> String {
    format!(
        "{ORDERS}
         CREATE VIEW big AS SELECT * FROM orders WHERE amount >= 10;
         CREATE MATERIALIZED VIEW totals COMMENT 'by city' AS
           SELECT c.city, count(*) AS n, sum(o.amount) AS total
           FROM big AS o JOIN read_files('customers', format => 'json', schema => 'name STRING, city STRING') AS c ON c.name = o.customer
           GROUP BY c.city;
         CREATE MATERIALIZED VIEW ranked AS
           SELECT city, total, row_number() OVER (ORDER BY total DESC) AS place FROM totals;"
    )
}

fn bench(format: Format) -> Bench {
    let bench = Bench::new(format);
    fill(&bench);
    bench
}

fn fill(bench: &Bench) {
    bench.file("orders/1.json", &[order(1, "ada", 10), order(2, "bo", 20)]);
    bench.file("orders/2.json", &[order(3, "ada", 30), order(4, "bo", 1)]);
    bench.file(
        "customers/1.json",
        &[json!({"name": "ada", "city": "Oslo"}), json!({"name": "bo", "city": "Rome"})],
    );
}

fn order(id: i64, customer: &str, amount: i64) -> Json {
    json!({"id": id, "customer": customer, "amount": amount})
}

fn flow<'a>(report: &'a UpdateReport, name: &str) -> &'a FlowReport {
    report.flows.iter().find(|flow| flow.flow == name).unwrap()
}

async fn ranked(bench: &Bench) -> Json {
    json!(bench.rows("SELECT * FROM ranked ORDER BY place").await)
}

#[tokio::test]
async fn g26_a_view_reads_all_of_the_files_that_are_there() {
    let bench = bench(Format::Delta);
    let report = bench
        .succeed(
            "CREATE MATERIALIZED VIEW m AS SELECT name FROM read_files('customers', format => 'json', schema => 'name STRING',
               includeExistingFiles => false, maxFilesPerTrigger => 1);",
        )
        .await;
    assert_eq!(flow(&report, "m").output_rows, Some(2), "{report:#?}");
    assert_eq!(
        json!(bench.rows("SELECT * FROM m ORDER BY name").await),
        json!([{"name": "ada"}, {"name": "bo"}])
    );
}

#[tokio::test]
async fn g26_a_view_is_computed_after_what_it_reads_and_only_when_that_has_changed() {
    for format in FORMATS {
        let bench = bench(format);
        let report = bench.succeed(&views()).await;
        assert_eq!((flow(&report, "totals").output_rows, flow(&report, "totals").batches), (Some(2), 1));
        let first =
            json!([{"city": "Oslo", "total": 40, "place": 1}, {"city": "Rome", "total": 20, "place": 2}]);
        assert_eq!(ranked(&bench).await, first, "{format:?}");
        let version = (bench.version("totals").await, bench.version("ranked").await);
        // Nothing has changed.
        let report = bench.succeed(&views()).await;
        for name in ["totals", "ranked"] {
            let flow = flow(&report, name);
            assert_eq!((flow.status, flow.batches), (FlowStatus::Completed, 0));
            assert!(flow.notice.as_deref().unwrap().contains("not computed again"), "{flow:?}");
        }
        assert_eq!((bench.version("totals").await, bench.version("ranked").await), version);
        // A table that it reads has changed.
        bench.file("orders/3.json", &[order(5, "bo", 50)]);
        let report = bench.succeed(&views()).await;
        assert_eq!((flow(&report, "totals").batches, flow(&report, "ranked").batches), (1, 1));
        let second =
            json!([{"city": "Rome", "total": 70, "place": 1}, {"city": "Oslo", "total": 40, "place": 2}]);
        assert_eq!(ranked(&bench).await, second);
        // Files that it reads have changed.
        bench.file("customers/2.json", &[json!({"name": "cy", "city": "Lima"})]);
        bench.succeed(&views()).await;
        bench.file("orders/4.json", &[order(6, "cy", 90)]);
        bench.succeed(&views()).await;
        assert_eq!(ranked(&bench).await[0], json!({"city": "Lima", "total": 90, "place": 1}));
        // The text of a view behind it has changed: no order is big enough, and no row is left.
        let none = views().replace("amount >= 10", "amount >= 1000");
        let report = bench.succeed(&none).await;
        assert_eq!((flow(&report, "totals").batches, flow(&report, "totals").output_rows), (1, Some(0)));
        assert_eq!(ranked(&bench).await, json!([]));
    }
}

#[tokio::test]
async fn a_view_takes_other_columns_when_its_query_has_them() {
    for format in FORMATS {
        let bench = bench(format);
        let view = |query: &str| format!("{ORDERS} CREATE MATERIALIZED VIEW m AS {query};");
        bench.succeed(&view("SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")).await;
        bench.succeed(&view("SELECT count(*) AS total FROM orders")).await;
        assert_eq!(json!(bench.rows("SELECT * FROM m").await), json!([{"total": 4}]), "{format:?}");
        bench.succeed(&view("SELECT max(customer) AS total FROM orders")).await;
        assert_eq!(json!(bench.rows("SELECT * FROM m").await), json!([{"total": "bo"}]));
    }
}

#[tokio::test]
async fn a_view_that_depends_on_the_moment_is_computed_in_each_update() {
    for format in FORMATS {
        let bench = bench(format);
        let sql = format!(
            "{ORDERS} CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, max(date_trunc('second', now())) AS at FROM orders;"
        );
        bench.succeed(&sql).await;
        let version = bench.version("m").await;
        let report = bench.succeed(&sql).await;
        assert_eq!((flow(&report, "m").batches, bench.version("m").await), (1, version + 1), "{format:?}");
    }
}

#[tokio::test]
async fn r16_constraints_of_a_view_keep_drop_and_fail() {
    let view = |rule: &str| {
        format!(
            "{ORDERS} CREATE MATERIALIZED VIEW m (CONSTRAINT rich EXPECT (total > 30) {rule}, CONSTRAINT known EXPECT (customer IS NOT NULL)) AS
             SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;"
        )
    };
    for format in FORMATS {
        let bench = bench(format);
        let report = bench.succeed(&view("")).await;
        let counts = |report: &UpdateReport| {
            let quality = flow(report, "m").data_quality.clone().unwrap();
            let rich = &quality.expectations[0];
            (quality.dropped_records, rich.passed_records, rich.failed_records)
        };
        assert_eq!(counts(&report), (0, 1, 1));
        // Another rule is another view.
        let report = bench.succeed(&view("ON VIOLATION DROP ROW")).await;
        assert_eq!(counts(&report), (1, 1, 1));
        assert_eq!(json!(bench.rows("SELECT * FROM m").await), json!([{"customer": "ada", "total": 40}]));
        let report = bench.run(&view("ON VIOLATION FAIL UPDATE")).await.unwrap();
        assert_eq!(flow(&report, "m").status, FlowStatus::Failed);
        assert!(flow(&report, "m").reason.as_deref().unwrap().contains("rich"), "{report:?}");
        assert_eq!(bench.rows("SELECT * FROM m").await.len(), 1, "{format:?}: the rows of before stay");
    }
}

#[tokio::test]
async fn a36_an_aggregate_of_a_stream_is_refused_with_what_to_write_instead() {
    let bench = bench(Format::Memory);
    let sql = format!(
        "{ORDERS} CREATE STREAMING TABLE sums AS SELECT customer, sum(amount) AS s FROM STREAM(orders) GROUP BY customer;"
    );
    let errors = bench.project(&sql).dry_run().await.unwrap_err();
    assert!(errors[0].full_text().contains("batch by batch"), "{errors:?}");
    assert!(errors[0].help_text().unwrap().contains("MATERIALIZED VIEW"), "{errors:?}");
}

#[tokio::test]
async fn a_table_that_is_no_view_is_not_replaced_and_a_lost_one_is_made_again() {
    let bench = bench(Format::Delta);
    bench.succeed("CREATE STREAMING TABLE m AS SELECT * FROM STREAM read_files('customers', format => 'json', schema => 'name STRING');").await;
    let sql = format!("{ORDERS} CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM orders;");
    let report = bench.run(&sql).await.unwrap();
    assert!(flow(&report, "m").reason.as_deref().unwrap().contains("no materialized view"), "{report:?}");
    assert_eq!(bench.rows("SELECT * FROM m").await.len(), 2);
    let outline = bench.project(&sql).dry_run().await.unwrap();
    let m = outline.flows.iter().find(|flow| flow.flow == "m").unwrap();
    assert_eq!((m.kind.as_str(), m.columns.len()), ("materialized view", 1));
}

#[tokio::test]
async fn killing_the_process_at_any_store_operation_gives_the_same_views() {
    let over = |store: &FaultStore<InMemory>| {
        let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
        fill(&bench);
        bench
    };
    let store = FaultStore::new(InMemory::new());
    let undisturbed = over(&store);
    undisturbed.succeed(&views()).await;
    let expected = ranked(&undisturbed).await;
    let every = if cfg!(slow) { 1 } else { 3 };
    for (offset, fault) in [(1, Fault::Before), (3, Fault::After)] {
        for n in (offset..=store.faults().count()).step_by(every) {
            let store = FaultStore::new(InMemory::new());
            let bench = over(&store);
            store.faults().add(Rule::nth(n, fault).and_dies());
            drop(bench.run(&views()).await);
            store.faults().revive();
            bench.succeed(&views()).await;
            assert_eq!(ranked(&bench).await, expected, "killed {fault:?} at operation {n}");
            // Not again, once all is done.
            let report = bench.succeed(&views()).await;
            assert_eq!(flow(&report, "ranked").batches, 0);
        }
    }
}

#[tokio::test]
async fn r07_a_full_refresh_computes_a_view_again() {
    for format in FORMATS {
        let bench = bench(format);
        bench.succeed(&views()).await;
        let before = ranked(&bench).await;
        let request = strandline_runtime::UpdateRequest::default().with_full_refresh(["totals"]);
        let report = bench.request(&views(), &request).await;
        assert_eq!(flow(&report, "totals").batches, 1, "{format:?}");
        assert_eq!(ranked(&bench).await, before);
    }
}
