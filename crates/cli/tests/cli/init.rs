//! A new pipeline runs as it is, and nothing that exists is overwritten.

use crate::{run_in, succeed_in, text, write};

#[test]
fn a_new_pipeline_runs_as_it_is_and_is_found_from_folders_below() {
    let folder = tempfile::tempdir().unwrap();
    let said = succeed_in(folder.path(), &["init", "shop"]);
    assert!(said.contains("cd shop") && said.contains("strandline run"), "{said}");
    let shop = folder.path().join("shop");
    let report = succeed_in(&shop, &["run"]);
    assert!(report.contains("customers_then") && report.contains("COMPLETED"), "{report}");
    // Ada moved to Turin before she moved to Bergen; the files tell it afterwards. Ben left.
    let history =
        "SELECT name, city, __END_AT IS NULL AS open FROM customers_history ORDER BY name, __START_AT";
    let rows = succeed_in(&shop, &["query", history, "--output", "csv"]);
    let expected =
        "name,city,open\nAda,Oslo,false\nAda,Turin,false\nAda,Bergen,true\nBen,Rome,false\nCleo,Lima,true\n";
    assert_eq!(rows, expected);
    let below = shop.join("transformations");
    let again = succeed_in(&below, &["run", "--json"]);
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert!(again["flows"].as_array().unwrap().iter().all(|flow| flow["batches"] == 0), "{again}");
    assert!(succeed_in(&below, &["status"]).contains("customers_history"));
    assert!(succeed_in(&below, &["graph"]).contains("customers_now (AUTO CDC, SCD TYPE 1)"));
}

#[test]
fn files_that_exist_are_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("pipeline.yml"), "mine");
    let refused = run_in(folder.path(), &["init"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("pipeline.yml exists") && said.contains("nothing was written"), "{said}");
    assert_eq!(std::fs::read_to_string(folder.path().join("pipeline.yml")).unwrap(), "mine");
    assert!(!folder.path().join("transformations").exists());
}

#[test]
fn without_a_pipeline_the_error_says_how_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    for call in [&["run"][..], &["graph"], &["status"], &["query", "SELECT 1"], &["dry-run"]] {
        let refused = run_in(folder.path(), call);
        assert_eq!(refused.status.code(), Some(2), "{call:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("no pipeline.yml") && said.contains("strandline init"), "{said}");
    }
    let odd = folder.path().join("odd name: #1");
    succeed_in(folder.path(), &["init", text(&odd)]);
    succeed_in(&odd, &["dry-run"]);
}
