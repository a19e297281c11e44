//! What a pipeline's text says of a table and of a flow's name, and what that decides.

use serde_json::{Value, json};
use strandline_runtime::{ErrorKind, FlowStatus, UpdateReport};

use crate::pipeline::{Bench, FORMATS, Format};

fn row(k: &str, seq: i64) -> Value {
    json!({ "k": k, "seq": seq, "v": seq })
}

const READ: &str =
    "STREAM read_files('{}/*.json', format => 'json', schema => 'k STRING, seq BIGINT, v BIGINT')";

/// Append flows into one table, each from the folder of the same place.
fn appending(flows: &[(&str, &str)]) -> String {
    let flow = |(name, folder): &(&str, &str)| {
        format!("CREATE FLOW {name} AS INSERT INTO t BY NAME SELECT * FROM {};", READ.replace("{}", folder))
    };
    format!("CREATE STREAMING TABLE t; {}", flows.iter().map(flow).collect::<String>())
}

fn rows_in(report: &UpdateReport, flow: &str) -> u64 {
    report.flows.iter().find(|report| report.flow == flow).unwrap().rows_in
}

#[tokio::test]
async fn r02_each_flow_has_a_checkpoint_of_its_own_by_its_name() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("north/1.json", &[row("a", 1), row("b", 1)]);
        bench.file("south/1.json", &[row("c", 1)]);
        let text = appending(&[("north", "north"), ("south", "south")]);
        bench.succeed(&text).await;
        // One goes on, the other has nothing to do, in whatever order they are written.
        bench.file("south/2.json", &[row("d", 2)]);
        let report = bench.succeed(&appending(&[("south", "south"), ("north", "north")])).await;
        assert_eq!((rows_in(&report, "north"), rows_in(&report, "south")), (0, 1), "{format:?}");
        // Without one of them, the other one's place is kept, and so is that of the one that is gone for a while.
        let report = bench.succeed(&appending(&[("south", "south")])).await;
        assert_eq!(rows_in(&report, "south"), 0);
        let report = bench.succeed(&text).await;
        assert_eq!((rows_in(&report, "north"), rows_in(&report, "south")), (0, 0), "{format:?}");
        // Under another name it is another flow, which begins at the beginning.
        let report = bench.succeed(&appending(&[("north", "north"), ("south_2", "south")])).await;
        assert_eq!((rows_in(&report, "north"), rows_in(&report, "south_2")), (0, 2), "{format:?}");
        let keys = bench.rows("SELECT k FROM t ORDER BY k").await;
        let keys: Vec<&str> = keys.iter().map(|row| row["k"].as_str().unwrap()).collect();
        assert_eq!(keys, ["a", "b", "c", "c", "d", "d"], "{format:?}");
    }
}

#[tokio::test]
async fn g15_a_declared_history_has_its_intervals_with_the_type_of_the_sequence() {
    let text = |intervals: &str| {
        format!(
            "CREATE STREAMING TABLE t (k STRING, seq BIGINT, v BIGINT{intervals});
             CREATE FLOW f AS AUTO CDC INTO t FROM {} KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2;",
            READ.replace("{}", "in")
        )
    };
    for (intervals, column) in [
        ("", "__START_AT"),
        (", __START_AT BIGINT", "__END_AT"),
        (", __END_AT BIGINT", "__START_AT"),
        (", __START_AT INT, __END_AT BIGINT", "__START_AT"),
        (", __START_AT BIGINT, __END_AT TIMESTAMP", "__END_AT"),
    ] {
        let bench = Bench::new(Format::Delta);
        bench.file("in/1.json", &[row("a", 1)]);
        let errors = bench.project(&text(intervals)).dry_run().await.unwrap_err();
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        assert_eq!(error.kind(), ErrorKind::Definition, "{intervals}: {error}");
        let told = error.full_text();
        assert!(told.contains(column) && told.contains("Int64"), "{intervals}: {told}");
        assert!(bench.storage.format.open("t").await.unwrap().is_none(), "nothing was made");
    }
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[row("a", 1), row("a", 4)]);
        let report = bench.succeed(&text(", __START_AT BIGINT, __END_AT BIGINT")).await;
        assert_eq!(report.flows[0].status, FlowStatus::Completed);
        let rows = bench.rows("SELECT __START_AT AS s, __END_AT AS e FROM t ORDER BY s").await;
        assert_eq!(json!(rows), json!([{ "s": 1, "e": 4 }, { "s": 4, "e": null }]), "{format:?}");
    }
}
