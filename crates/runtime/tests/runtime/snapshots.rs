//! Snapshot flows: one complete image after another, each by one commit, with a target that shows what changed between them.

mod code;
mod refused;
mod restarts;
mod versions;

use serde_json::{Value, json};
use strandline_runtime::{FlowReport, FlowStatus, UpdateReport};

use crate::pipeline::{Bench, FORMATS, Format};

/// A flow that takes the exports below `in`, one version after another.
fn exports(stored_as: &str) -> String {
    exports_with("", "", stored_as)
}

fn exports_with(properties: &str, once: &str, stored_as: &str) -> String {
    let export = "read_files('in/*.json', format => 'json', schema => 'id BIGINT, tier STRING, v BIGINT')";
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t {properties};
         CREATE FLOW f AS AUTO CDC {once} INTO t
         FROM SNAPSHOT (SELECT id, tier FROM {export} WHERE v = (SELECT v FROM current_snapshot_version()) AND id > 0)
         WITH VERSION (SELECT min(v) AS v FROM {export}
                       WHERE v > (SELECT coalesce(max(v), 0) FROM last_snapshot_version()) HAVING min(v) IS NOT NULL)
         KEYS (id) STORED AS {stored_as};"
    )
}

/// One export: rows of (id, tier). Row 0 stands for the export itself.
fn export(bench: &Bench, version: i64, rows: &[(i64, &str)]) {
    let row = |(id, tier): &(i64, &str)| json!({"id": id, "tier": tier, "v": version});
    let lines: Vec<Value> = [(0, "")].iter().chain(rows).map(row).collect();
    bench.file(&format!("in/{version}.json"), &lines);
}

fn worked(bench: &Bench, versions: std::ops::RangeInclusive<i64>) {
    let all: [(i64, &[(i64, &str)]); 3] = [
        (1, &[(1, "basic"), (2, "gold"), (3, "basic")]),
        (2, &[(1, "gold"), (3, "basic")]),
        (3, &[(1, "gold"), (2, "basic"), (3, "basic"), (4, "basic")]),
    ];
    for (version, rows) in all.iter().filter(|(version, _)| versions.contains(version)) {
        export(bench, *version, rows);
    }
}

async fn shown(bench: &Bench, sql: &str) -> Value {
    json!(bench.rows(sql).await)
}

async fn scd1(bench: &Bench) -> Value {
    shown(bench, "SELECT id, tier FROM t ORDER BY id").await
}

async fn scd2(bench: &Bench) -> Value {
    shown(bench, "SELECT id, tier, __START_AT AS s, __END_AT AS e FROM t ORDER BY id, s").await
}

fn history_after_three() -> Value {
    json!([
        {"id": 1, "tier": "basic", "s": 1, "e": 2}, {"id": 1, "tier": "gold", "s": 2, "e": null},
        {"id": 2, "tier": "gold", "s": 1, "e": 2}, {"id": 2, "tier": "basic", "s": 3, "e": null},
        {"id": 3, "tier": "basic", "s": 1, "e": null}, {"id": 4, "tier": "basic", "s": 3, "e": null},
    ])
}

fn flow(report: &UpdateReport) -> &FlowReport {
    report.flows.iter().find(|flow| flow.flow == "f").unwrap()
}

/// The reason why the flow failed.
async fn refused(bench: &Bench, sql: &str) -> String {
    match bench.run(sql).await {
        Ok(report) => {
            assert_eq!(flow(&report).status, FlowStatus::Failed, "{report:#?}");
            format!(
                "{} ({})",
                flow(&report).reason.clone().unwrap(),
                flow(&report).help.clone().unwrap_or_default()
            )
        }
        Err(errors) => errors
            .iter()
            .map(|error| format!("{} ({})", error.full_text(), error.help_text().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

#[tokio::test]
async fn r22_c55_c56_all_versions_are_taken_in_one_update_or_one_by_one() {
    for format in FORMATS {
        for at_once in [true, false] {
            let [now, history] = [Bench::new(format), Bench::new(format)];
            let updates: &[std::ops::RangeInclusive<i64>] =
                if at_once { &[1..=3] } else { &[1..=1, 2..=2, 3..=3] };
            for versions in updates {
                for bench in [&now, &history] {
                    worked(bench, versions.clone());
                }
                let report = now.succeed(&exports("SCD TYPE 1")).await;
                assert_eq!(flow(&report).batches, versions.clone().count() as u64);
                history.succeed(&exports("SCD TYPE 2")).await;
            }
            assert_eq!(
                scd1(&now).await,
                json!([
                    {"id": 1, "tier": "gold"}, {"id": 2, "tier": "basic"},
                    {"id": 3, "tier": "basic"}, {"id": 4, "tier": "basic"},
                ])
            );
            assert_eq!(scd2(&history).await, history_after_three(), "{format:?}");
            let version = history.version("t").await;
            let idle = history.succeed(&exports("SCD TYPE 2")).await;
            assert_eq!((flow(&idle).batches, history.version("t").await), (0, version), "nothing is new");
        }
    }
}

#[tokio::test]
async fn c55_unchanged_rows_are_not_rewritten_and_counts_are_those_of_written_rows() {
    let bench = Bench::new(Format::Delta);
    worked(&bench, 1..=1);
    let report = bench.succeed(&exports("SCD TYPE 1")).await;
    assert_eq!((flow(&report).output_rows, flow(&report).rows_in), (Some(3), 3));
    worked(&bench, 2..=2);
    let report = bench.succeed(&exports("SCD TYPE 1")).await;
    let flow = flow(&report);
    // 1 changes, 2 goes, 3 stays as it is.
    assert_eq!(
        (flow.output_rows, flow.upserted, flow.deleted),
        (Some(2), 0, 0),
        "r18: no upserts of snapshot flows"
    );
    let at = bench.rows("SELECT id, __SEQUENCE_AT AS at FROM t ORDER BY id").await;
    assert_eq!(json!(at), json!([{"id": 1, "at": 2}, {"id": 3, "at": 1}]));
}

#[tokio::test]
async fn a_snapshot_reads_tables_views_and_files_of_the_pipeline_as_they_are_then() {
    let sql = "
        SET pipelines.maxFlowRetryAttempts = 0;
        CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'id BIGINT, tier STRING, v BIGINT');
        CREATE VIEW exported AS SELECT id, tier, v FROM raw WHERE id > 0;
        CREATE STREAMING TABLE t;
        CREATE FLOW f AS AUTO CDC INTO t
        FROM SNAPSHOT (
          SELECT e.id, upper(e.tier) AS tier, max(n.name) AS name
          FROM exported e JOIN current_snapshot_version() c ON e.v = c.v
          LEFT JOIN read_files('names.json', format => 'json', schema => 'id BIGINT, name STRING') n ON n.id = e.id
          GROUP BY e.id, e.tier)
        WITH VERSION (SELECT min(v) AS v FROM raw WHERE v > coalesce((SELECT v FROM last_snapshot_version()), 0) HAVING count(*) > 0)
        KEYS (id) STORED AS SCD TYPE 2;";
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("names.json", &[json!({"id": 1, "name": "one"})]);
        worked(&bench, 1..=2);
        let report = bench.succeed(sql).await;
        assert_eq!(flow(&report).batches, 2, "the table of this update is read after it was filled");
        let rows =
            bench.rows("SELECT id, tier, name, __START_AT AS s, __END_AT AS e FROM t ORDER BY id, s").await;
        assert_eq!(
            json!(rows),
            json!([
                {"id": 1, "tier": "BASIC", "name": "one", "s": 1, "e": 2},
                {"id": 1, "tier": "GOLD", "name": "one", "s": 2, "e": null},
                {"id": 2, "tier": "GOLD", "name": null, "s": 1, "e": 2},
                {"id": 3, "tier": "BASIC", "name": null, "s": 1, "e": null},
            ])
        );
    }
}
