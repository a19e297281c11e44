//! The file source from end to end: which files are taken, what is read of them, and how columns come to be.

use std::{
    io::Write,
    sync::Arc,
    time::{Duration, SystemTime},
};

use arrow_array::{Int64Array, RecordBatch, StringArray};
use serde_json::{Value, json};
use strandline_runtime::{
    FlowStatus, UpdateReport,
    definition::{FlowQuery, InputKind},
    sources::{FileOptions, FileSource, Source},
};

use crate::pipeline::{Bench, FORMATS, Format};

fn pipeline(arguments: &str) -> String {
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files({arguments});"
    )
}

async fn rows(bench: &Bench, columns: &str, order: &str) -> Value {
    json!(bench.rows(&format!("SELECT {columns} FROM t ORDER BY {order}")).await)
}

fn reason(report: &UpdateReport) -> String {
    assert_eq!(report.flows[0].status, FlowStatus::Failed, "{report:#?}");
    report.flows[0].reason.clone().unwrap()
}

fn set_modified(bench: &Bench, name: &str, millis: u64) {
    let file = std::fs::File::options().write(true).open(bench.path().join(name)).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)).unwrap();
}

#[tokio::test]
async fn r19_globs_name_filters_limits_and_partition_columns() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/year=2024/month=05/a.json", &[json!({"n": 1, "year": 1999})]);
        bench.file("in/year=2024/month=__HIVE_DEFAULT_PARTITION__/b.json", &[json!({"n": 2})]);
        bench.file("in/year=2025/month=1/c.json", &[json!({"n": 3})]);
        bench.file("in/year=2025/month=1/d.jsonl", &[json!({"n": 4})]);
        bench.file("in/year=2026/month=1/e.json", &[json!({"n": 5})]);
        bench.file("in/year=2024/_hidden/f.json", &[json!({"n": 6})]);
        let sql = pipeline(
            "'in/year={2024,2025}/**', format => 'json', pathGlobFilter => '*.json', maxFilesPerTrigger => 2",
        );
        let report = bench.succeed(&sql).await;
        assert_eq!(report.flows[0].batches, 2, "{format:?}: three files, two at a time");
        assert_eq!(
            rows(&bench, "n, year, month", "n").await,
            json!([
                {"n": 1, "year": 2024, "month": 5},
                {"n": 2, "year": 2024, "month": null},
                {"n": 3, "year": 2025, "month": 1},
            ]),
            "{format:?}"
        );
        let report = bench.succeed(&sql).await;
        assert_eq!(report.flows[0].batches, 0, "a file is taken once");
    }
}

#[tokio::test]
async fn r19_declared_and_switched_off_partition_columns() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/day=2024-02-29/a.json", &[json!({"n": 1})]);
    bench.succeed(&pipeline("'in', format => 'json', schema => 'n INT', partitionColumns => 'day'")).await;
    assert_eq!(rows(&bench, "*", "n").await, json!([{"n": 1, "day": "2024-02-29"}]));
    for (arguments, expected) in [
        ("'in', format => 'json', schema => 'n INT, day DATE'", json!([{"n": 1, "day": "2024-02-29"}])),
        (
            "'in', format => 'json', schema => 'n INT, day DATE', partitionColumns => ''",
            json!([{"n": 1, "day": null}]),
        ),
    ] {
        let bench = Bench { folder: tempfile::tempdir().unwrap(), ..Bench::new(Format::Delta) };
        bench.file("in/day=2024-02-29/a.json", &[json!({"n": 1})]);
        bench.succeed(&pipeline(arguments)).await;
        assert_eq!(rows(&bench, "*", "n").await, expected, "{arguments}");
    }
    let bench = Bench::new(Format::Delta);
    bench.file("in/n=soon/a.json", &[json!({"m": 1})]);
    let report = bench.run(&pipeline("'in', format => 'json', schema => 'm INT, n INT'")).await.unwrap();
    assert!(reason(&report).contains("n=soon"), "{report:?}");
}

#[tokio::test]
async fn r19_a21_files_between_two_moments() {
    let bench = Bench::new(Format::Delta);
    let cut = 1_735_689_600_000; // 2025-01-01T00:00:00Z
    for (name, at) in [("a", cut - 1), ("b", cut), ("c", cut + 1), ("d", cut + 3_600_000)] {
        bench.file(&format!("in/{name}.json"), &[json!({"n": name})]);
        set_modified(&bench, &format!("in/{name}.json"), at);
    }
    let sql = pipeline(
        "'in', format => 'json', schema => 'n STRING', modifiedAfter => '2025-01-01T00:00:00.000Z',
         modifiedBefore => '2025-01-01 02:00:00.000000 UTC+1'",
    );
    bench.succeed(&sql).await;
    assert_eq!(rows(&bench, "n", "n").await, json!([{"n": "c"}]), "strictly after, strictly before");
}

#[tokio::test]
async fn r19_an_overwritten_file_is_ignored_or_taken_again() {
    for (again, expected) in [(false, json!([{"n": 1}])), (true, json!([{"n": 1}, {"n": 2}, {"n": 3}]))] {
        let bench = Bench::new(Format::Delta);
        let sql = pipeline(&format!("'in', format => 'json', schema => 'n INT', allowOverwrites => {again}"));
        bench.file("in/a.json", &[json!({"n": 1})]);
        set_modified(&bench, "in/a.json", 1_000);
        bench.succeed(&sql).await;
        bench.succeed(&sql).await;
        bench.file("in/a.json", &[json!({"n": 2})]);
        set_modified(&bench, "in/a.json", 2_000);
        bench.succeed(&sql).await;
        bench.file("in/a.json", &[json!({"n": 3})]);
        set_modified(&bench, "in/a.json", 3_000);
        bench.succeed(&sql).await;
        bench.succeed(&sql).await;
        assert_eq!(rows(&bench, "n", "n").await, expected, "allowOverwrites {again}");
    }
}

/// The files of a folder, with the option `allowOverwrites`.
async fn listed(bench: &Bench, again: bool) -> FileSource {
    let path = bench.path().join("in");
    let text = format!(
        "SELECT * FROM STREAM read_files('{}', format => 'json', schema => 'n INT', allowOverwrites => {again})",
        path.display()
    );
    let query = FlowQuery::parse(&text).unwrap();
    let InputKind::ReadFiles(call) = &query.inputs[0].kind else { panic!("{query:?}") };
    let schema = FileSource::columns(call, None).await.unwrap();
    FileSource::open(&call.path, FileOptions::new(call).unwrap(), Some(schema)).await.unwrap()
}

#[tokio::test]
async fn r19_what_was_taken_before_overwrites_were_watched_is_not_taken_again() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/a.json", &[json!({"n": 1})]);
    let before = listed(&bench, false).await;
    let slice = before.next(&before.start()).await.unwrap().unwrap();
    let size = slice["files"][0]["size"].clone();
    let root = slice["root"].clone();
    // As it was written before slices had times.
    let older = json!({"root": root, "files": [{"path": "a.json", "size": size}]});
    set_modified(&bench, "in/a.json", 1_000);
    for slice in [slice, older] {
        let now = listed(&bench, true).await;
        let progress = now.advance(now.start(), &slice).unwrap();
        assert_eq!(now.next(&progress).await.unwrap(), None, "{slice}");
    }
    let now = listed(&bench, true).await;
    let slice = now.next(&now.start()).await.unwrap().unwrap();
    let progress = now.advance(now.start(), &slice).unwrap();
    set_modified(&bench, "in/a.json", 2_000);
    assert!(listed(&bench, true).await.next(&progress).await.unwrap().is_some(), "what is watched is seen");
}

#[tokio::test]
async fn r19_files_that_were_there_before_the_flow_can_be_left_out() {
    for files_at_first in [0, 2] {
        let bench = Bench::new(Format::Delta);
        std::fs::create_dir(bench.path().join("in")).unwrap();
        for n in 0..files_at_first {
            bench.file(&format!("in/old{n}.json"), &[json!({"n": n})]);
        }
        let sql =
            pipeline("'in', format => 'json', schema => 'n INT', cloudFiles.includeExistingFiles => false");
        bench.succeed(&sql).await;
        bench.file("in/new.json", &[json!({"n": 7})]);
        bench.succeed(&sql).await;
        assert_eq!(rows(&bench, "n", "n").await, json!([{"n": 7}]), "{files_at_first} files before");
    }
}

#[tokio::test]
async fn csv_is_read_by_name_and_by_place() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.raw_file(
            "in/1.csv",
            "# made by hand\nid;name;day\n1;\"a; \"\"b\"\"\nc\";29.02.2024\n2;\"\";\n3;NA;01.03.2024\n",
        );
        bench.raw_file("in/2.csv", "day;id\n02.03.2024;4\n");
        let options = "format => 'csv', header => true, sep => ';', comment => '#', nullValue => 'NA',
            dateFormat => 'dd.MM.yyyy', schema => 'id BIGINT, name STRING, day DATE'";
        bench.succeed(&pipeline(&format!("'in', {options}"))).await;
        assert_eq!(
            rows(&bench, "*", "id").await,
            json!([
                {"id": 1, "name": "a; \"b\"\nc", "day": "2024-02-29"},
                {"id": 2, "name": "", "day": null},
                {"id": 3, "name": null, "day": "2024-03-01"},
                {"id": 4, "name": null, "day": "2024-03-02"},
            ]),
            "{format:?}"
        );
    }
    let bench = Bench::new(Format::Delta);
    bench.raw_file("in/1.csv", "1,x\n2\n3,y,z\n");
    let report = bench.run(&pipeline("'in', format => 'csv', schema => 'n INT, s STRING'")).await.unwrap();
    let why = reason(&report);
    assert!(why.contains("line 2") && why.contains("bad lines 2") && why.contains("1 fields"), "{why}");
    bench.raw_file("in/1.csv", "1,\"x\n2,y\n");
    let report = bench
        .run(&pipeline("'in', format => 'csv', schema => 'n INT, s STRING', mode => 'DROPMALFORMED'"))
        .await
        .unwrap();
    assert!(
        reason(&report).contains("not closed"),
        "what a quote may have swallowed is never left out: {report:?}"
    );
    bench.raw_file("in/1.csv", "a,b\n1,2\n");
    let report = bench
        .run(&pipeline("'in', format => 'csv', header => true, schema => 'n INT, s STRING'"))
        .await
        .unwrap();
    assert!(reason(&report).contains("a, b"), "{report:?}");
}

fn packed(ending: &str, text: &[u8]) -> Vec<u8> {
    match ending {
        "gz" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        "bz2" => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        _ => zstd::encode_all(text, 1).unwrap(),
    }
}

#[tokio::test]
async fn packed_files_are_unpacked_as_they_are_read() {
    let bench = Bench::new(Format::Delta);
    let lines: String = (0..20_000).map(|n| json!({"n": n}).to_string() + "\n").collect();
    for ending in ["gz", "bz2", "zst"] {
        bench.raw_file(&format!("in/a.json.{ending}"), packed(ending, lines.as_bytes()));
    }
    // Several members in one file, as log shippers write them.
    let mut twice = packed("gz", b"{\"n\": 1}\n");
    twice.extend(packed("gz", b"{\"n\": 2}\n"));
    bench.raw_file("in/b.json.gz", twice);
    bench.succeed(&pipeline("'in', format => 'json', schema => 'n BIGINT'")).await;
    let found = bench.rows("SELECT count(*) AS rows, sum(n) AS total FROM t").await;
    assert_eq!(json!(found), json!([{"rows": 60_002, "total": 3 * 199_990_000_i64 + 3}]));
    let whole = packed("gz", lines.as_bytes());
    bench.raw_file("in/c.json.gz", &whole[..whole.len() / 2]);
    let report = bench.run(&pipeline("'in', format => 'json', schema => 'n BIGINT'")).await.unwrap();
    assert!(
        reason(&report).contains("c.json.gz"),
        "a file that ends too early is no shorter file: {report:?}"
    );
    let report = bench
        .run(
            &pipeline("'in/b.json.gz', format => 'json', compression => 'none', schema => 'n BIGINT'")
                .replace("TABLE t", "TABLE u"),
        )
        .await
        .unwrap();
    assert!(reason(&report).contains("b.json.gz"), "{report:?}");
}

#[tokio::test]
async fn json_lists_and_objects_over_lines() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.raw_file(
            "in/1.json",
            "\u{feff}[\n {\"id\": 1,\n  \"tags\": [\"a\", \"b\"]},\n {\"id\": 2, \"at\": {\"x\": 1.5}}\n]\n",
        );
        bench.raw_file("in/2.json", "{\n \"id\": 3\n}");
        bench.succeed(&pipeline("'in', format => 'json', multiLine => true")).await;
        assert_eq!(
            rows(&bench, "id, tags, at", "id").await,
            json!([
                {"id": 1, "tags": ["a", "b"], "at": null},
                {"id": 2, "tags": null, "at": {"x": 1.5}},
                {"id": 3, "tags": null, "at": null},
            ]),
            "{format:?}"
        );
    }
    let bench = Bench::new(Format::Delta);
    bench.raw_file("in/1.json", "[{\"id\": 1},\n{\"id\": 2}");
    let report =
        bench.run(&pipeline("'in', format => 'json', multiLine => true, schema => 'id INT'")).await.unwrap();
    assert!(reason(&report).contains("1.json"), "{report:?}");
}

fn avro(batch: &RecordBatch) -> Vec<u8> {
    let mut writer =
        arrow_avro::writer::AvroWriter::new(Vec::new(), batch.schema().as_ref().clone()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner()
}

fn numbers(columns: &[(&str, &[i64])], names: &[&str]) -> RecordBatch {
    let mut all: Vec<(&str, arrow_array::ArrayRef)> = Vec::new();
    for (name, values) in columns {
        all.push((name, Arc::new(Int64Array::from(values.to_vec()))));
    }
    all.push(("name", Arc::new(StringArray::from(names.to_vec()))));
    RecordBatch::try_from_iter(all).unwrap()
}

#[tokio::test]
async fn r20_r21_avro_brings_its_columns() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let sql = pipeline("'in', format => 'avro'");
        bench.raw_file("in/1.avro", avro(&numbers(&[("n", &[1, 2])], &["a", "b"])));
        bench.succeed(&sql).await;
        bench.raw_file("in/2.avro", avro(&numbers(&[("n", &[3]), ("more", &[7])], &["c"])));
        bench.succeed(&sql).await;
        assert_eq!(
            rows(&bench, "n, name, more, _rescued_data", "n").await,
            json!([
                {"n": 1, "name": "a", "more": null, "_rescued_data": null},
                {"n": 2, "name": "b", "more": null, "_rescued_data": null},
                {"n": 3, "name": "c", "more": 7, "_rescued_data": null},
            ]),
            "{format:?}"
        );
    }
    let bench = Bench::new(Format::Delta);
    bench.raw_file("in/1.avro", avro(&numbers(&[("n", &[1]), ("more", &[7])], &["a"])));
    bench
        .succeed(&pipeline(
            "'in', format => 'avro', schema => 'n INT, name STRING', rescuedDataColumn => 'rest'",
        ))
        .await;
    let found = bench.rows("SELECT * FROM t").await;
    let rest: Value = serde_json::from_str(found[0]["rest"].as_str().unwrap()).unwrap();
    assert_eq!((&rest["n"], &rest["more"]), (&json!(1), &json!(7)), "a wider type is rescued: {found:?}");
    bench.raw_file("in/2.avro", "no avro");
    let report = bench
        .run(&pipeline("'in', format => 'avro', schema => 'n INT, name STRING', rescuedDataColumn => 'rest'"))
        .await
        .unwrap();
    assert!(reason(&report).contains("2.avro"), "{report:?}");
}

#[tokio::test]
async fn lines_of_text_are_rows() {
    let bench = Bench::new(Format::Delta);
    bench.raw_file("in/1.txt", "one\n\ntwo \r\n");
    bench.succeed(&pipeline("'in/*.txt'")).await;
    assert_eq!(rows(&bench, "*", "value").await, json!([{"value": ""}, {"value": "one"}, {"value": "two "}]));
}

#[tokio::test]
async fn r20_new_fields_become_columns_within_the_update() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let sql = format!(
            "{} CREATE STREAMING TABLE behind AS SELECT * FROM STREAM(t);",
            pipeline("'in/*.json', format => 'json', maxFilesPerTrigger => 1")
        );
        bench.file("in/1.json", &[json!({"n": 1})]);
        bench.succeed(&sql).await;
        bench.file("in/2.json", &[json!({"n": 2})]);
        bench.file(
            "in/3.json",
            &[json!({"n": 3, "city": "Oslo"}), json!({"n": 4, "geo": {"x": 1, "y": 2.5}})],
        );
        bench.file("in/4.json", &[json!({"n": 5, "more": [true], "city": null})]);
        let report = bench.succeed(&sql).await;
        assert_eq!(
            report.flows.iter().map(|flow| flow.status).collect::<Vec<_>>(),
            [FlowStatus::Completed; 2]
        );
        assert_eq!(report.flows[0].batches, 3, "{format:?}: {report:#?}");
        let expected = json!([
            {"n": 1, "city": null, "geo": null, "more": null},
            {"n": 2, "city": null, "geo": null, "more": null},
            {"n": 3, "city": "Oslo", "geo": null, "more": null},
            {"n": 4, "city": null, "geo": {"x": 1, "y": 2.5}, "more": null},
            {"n": 5, "city": null, "geo": null, "more": [true]},
        ]);
        assert_eq!(rows(&bench, "n, city, geo, more", "n").await, expected, "{format:?}");
        let behind = bench.rows("SELECT n, city, geo, more FROM behind ORDER BY n").await;
        assert_eq!(json!(behind), expected, "flows behind it know the columns too: {format:?}");
        bench.file("in/5.json", &[json!({"n": 6, "city": 7})]);
        bench.succeed(&sql).await;
        assert_eq!(
            rows(&bench, "city, _rescued_data", "n DESC LIMIT 1").await,
            json!([{"city": "7", "_rescued_data": null}])
        );
    }
}

#[tokio::test]
async fn r20_fields_called_like_a_folders_column_or_the_rescue_column_are_rescued() {
    let bench = Bench::new(Format::Delta);
    let sql = pipeline("'in', format => 'json'");
    bench.file("in/year=2024/1.json", &[json!({"n": 1})]);
    bench.succeed(&sql).await;
    bench.file("in/year=2024/2.json", &[json!({"n": 2, "Year": 1, "_rescued_data": "x"})]);
    bench.succeed(&sql).await;
    let found = bench.rows("SELECT * FROM t WHERE n = 2").await;
    let rest: Value = serde_json::from_str(found[0]["_rescued_data"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&found[0]["year"], &rest["Year"], &rest["_rescued_data"]),
        (&json!(2024), &json!(1), &json!("x"))
    );
    // Columns that come with types.
    let bench = Bench::new(Format::Delta);
    let sql = pipeline("'in', format => 'avro'");
    bench.raw_file("in/year=2024/1.avro", avro(&numbers(&[("n", &[1])], &["a"])));
    bench.succeed(&sql).await;
    bench.raw_file("in/year=2024/2.avro", avro(&numbers(&[("n", &[2]), ("Year", &[1])], &["b"])));
    bench.succeed(&sql).await;
    let found = bench.rows("SELECT * FROM t WHERE n = 2").await;
    let rest: Value = serde_json::from_str(found[0]["_rescued_data"].as_str().unwrap()).unwrap();
    assert_eq!((&found[0]["year"], &rest["Year"]), (&json!(2024), &json!(1)));
}

#[tokio::test]
async fn r21_names_in_two_cases_are_one_column() {
    for (option, expected) in [
        ("", json!([{"id": 1}, {"id": null}])),
        (", readerCaseSensitive => false", json!([{"id": 1}, {"id": 2}])),
    ] {
        let bench = Bench::new(Format::Delta);
        bench.file("in/1.json", &[json!({"id": 1}), json!({"ID": 2})]);
        bench.succeed(&pipeline(&format!("'in', format => 'json'{option}"))).await;
        assert_eq!(rows(&bench, "id", "id NULLS LAST").await, expected, "{option}");
        let kept = bench.rows("SELECT _rescued_data AS rest FROM t WHERE _rescued_data IS NOT NULL").await;
        assert_eq!(kept.len(), usize::from(option.is_empty()), "{kept:?}");
    }
}

#[tokio::test]
async fn a_header_that_ends_in_a_comma_names_its_last_column_by_place() {
    let bench = Bench::new(Format::Delta);
    bench.raw_file("in/1.csv", "n,s,\n1,a,x\n");
    bench.succeed(&pipeline("'in', format => 'csv', header => true")).await;
    assert_eq!(rows(&bench, "n, s, _c2", "n").await, json!([{"n": 1, "s": "a", "_c2": "x"}]));
}

#[tokio::test]
async fn r20_new_columns_of_change_targets() {
    for format in FORMATS {
        for scd in ["1", "2"] {
            let bench = Bench::new(format);
            let sql = format!(
                "CREATE STREAMING TABLE t;
                 CREATE FLOW t AS AUTO CDC INTO t FROM STREAM read_files('in', format => 'json', rescuedDataColumn => '')
                 KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE {scd};"
            );
            bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "v": 1})]);
            bench.succeed(&sql).await;
            bench.file("in/2.json", &[json!({"k": "a", "seq": 2, "v": 1, "plan": "pro"})]);
            let report = bench.succeed(&sql).await;
            assert!(report.flows[0].notice.as_deref().unwrap_or_default().contains("plan"), "{report:#?}");
            let newest = bench.rows("SELECT k, v, plan FROM t WHERE plan IS NOT NULL").await;
            assert_eq!(json!(newest), json!([{"k": "a", "v": 1, "plan": "pro"}]), "{format:?} type {scd}");
        }
    }
}

#[tokio::test]
async fn r21_rescue_fail_and_none() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"n": 1})]);
        let mode = |mode: &str| pipeline(&format!("'in', format => 'json', schemaEvolutionMode => '{mode}'"));
        bench.succeed(&mode("rescue")).await;
        bench.file("in/2.json", &[json!({"n": 2, "new": {"x": [1]}}), json!({"n": "soon"}), json!({"N": 4})]);
        bench.succeed(&mode("rescue")).await;
        let found = bench.rows("SELECT * FROM t ORDER BY n, _rescued_data").await;
        assert_eq!(found.len(), 4);
        assert_eq!(found[0].keys().collect::<Vec<_>>(), ["_rescued_data", "n"]);
        let rescued = |row: usize| -> Value {
            let mut value: Value =
                serde_json::from_str(found[row]["_rescued_data"].as_str().unwrap()).unwrap();
            let file = value.as_object_mut().unwrap().remove("_file_path").unwrap();
            assert!(file.as_str().unwrap().ends_with("in/2.json"));
            value
        };
        assert_eq!(found[0]["_rescued_data"], Value::Null);
        assert_eq!(rescued(1), json!({"new": {"x": [1]}}));
        assert_eq!([rescued(2), rescued(3)], [json!({"N": 4}), json!({"n": "soon"})]);
        bench.file("in/3.json", &[json!({"n": 5, "other": true})]);
        let report = bench.run(&mode("failOnNewColumns")).await.unwrap();
        let why = reason(&report);
        for part in ["UNKNOWN_FIELD_EXCEPTION", "other", "3.json", "line 1"] {
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(bench.rows("SELECT count(*) AS n FROM t").await[0]["n"], json!(4));
        bench.succeed(&mode("none")).await;
        assert_eq!(
            rows(&bench, "n", "n DESC NULLS LAST LIMIT 1").await,
            json!([{"n": 5}]),
            "other is left out"
        );
    }
}

#[tokio::test]
async fn r21_csv_rescues_further_fields_and_keeps_broken_lines() {
    let bench = Bench::new(Format::Delta);
    bench.raw_file("in/1.csv", "n,s,x\n1,a,new\nsoon,b,\n2,c,d,e\n3\n");
    let sql = pipeline(
        "'in', format => 'csv', header => true, schema => 'n INT, s STRING', rescuedDataColumn => 'rest', mode => 'PERMISSIVE'",
    );
    bench.succeed(&sql).await;
    let found = bench.rows("SELECT * FROM t ORDER BY s").await;
    let rest = |row: usize| -> Value { serde_json::from_str(found[row]["rest"].as_str().unwrap()).unwrap() };
    assert_eq!(rest(0)["x"], json!("new"));
    assert_eq!(rest(1)["n"], json!("soon"));
    assert_eq!((&rest(2)["x"], &rest(2)["_c3"]), (&json!("d"), &json!("e")));
    assert_eq!(rest(3)["_corrupt_record"], json!("3"));
}

#[tokio::test]
async fn hints_and_columns_of_text() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &[json!({"id": 1, "n": 2, "deep": {"x": 1}})]);
    bench
        .succeed(&pipeline(
            "'in', format => 'json', inferColumnTypes => false, schemaHints => 'id BIGINT, later DATE'",
        ))
        .await;
    let found = bench.rows("SELECT * EXCEPT (_rescued_data) FROM t").await;
    assert_eq!(json!(found), json!([{"id": 1, "n": "2", "deep": {"x": "1"}, "later": null}]));
}

#[tokio::test]
async fn r19_many_files_are_taken_without_listing_them_again_in_every_plan() {
    let bench = Bench::new(Format::Delta);
    for n in 0..300 {
        bench.raw_file(&format!("in/{:02}/{n:05}.json", n % 7), format!("{{\"n\": {n}}}"));
    }
    let sql = pipeline("'in', format => 'json', schema => 'n INT', maxFilesPerTrigger => 2");
    let report = bench.succeed(&sql).await;
    assert_eq!(report.flows[0].batches, 150);
    bench.raw_file("in/00/zzz.json", "{\"n\": 300}");
    bench.succeed(&sql).await;
    let found = bench.rows("SELECT count(*) AS rows, count(DISTINCT n) AS each FROM t").await;
    assert_eq!(json!(found), json!([{"rows": 301, "each": 301}]));
}

#[tokio::test]
async fn the_file_of_a_row_is_known_and_not_part_of_a_star() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/a.json", &[json!({"n": 1})]);
    bench.file("in/b.json", &[json!({"n": 2})]);
    set_modified(&bench, "in/a.json", 1_735_689_600_123);
    let sql = "CREATE TEMPORARY VIEW v AS SELECT *, _metadata.file_name AS file, _metadata FROM STREAM read_files('in', format => 'json', schema => 'n INT');
        CREATE STREAMING TABLE t AS SELECT n, file, _metadata.file_path AS path, _metadata.file_size AS size,
          _metadata.file_modification_time AS at FROM STREAM(v);
        CREATE STREAMING TABLE plain AS SELECT *, _metadata.file_name AS file FROM STREAM read_files('in', format => 'json', schema => 'n INT') WHERE _metadata.file_size > 0;";
    bench.succeed(sql).await;
    let found = bench.rows("SELECT * FROM t ORDER BY n").await;
    assert_eq!(found[0]["file"], json!("a.json"));
    assert!(found[0]["path"].as_str().unwrap().ends_with("/in/a.json"));
    assert_eq!((&found[0]["size"], &found[0]["at"]), (&json!(7), &json!("2025-01-01T00:00:00.123Z")));
    let plain = bench.rows("SELECT * FROM plain ORDER BY n").await;
    assert_eq!(json!(plain), json!([{"n": 1, "file": "a.json"}, {"n": 2, "file": "b.json"}]));
}
