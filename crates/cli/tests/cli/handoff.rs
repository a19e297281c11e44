//! `handoff` as a user calls it, and its exit codes.

use crate::{run, succeed, text, write};

const PIPELINE: &str = "
    CREATE STREAMING TABLE customers;
    CREATE FLOW legacy AS AUTO CDC ONCE INTO customers
      FROM read_files('old', format => 'json', schema => 'id STRING, at TIMESTAMP, plan STRING') KEYS (id) SEQUENCE BY at;
    CREATE FLOW live AS AUTO CDC INTO customers
      FROM STREAM read_files('new', format => 'json', schema => 'id STRING, at TIMESTAMP, plan STRING') KEYS (id) SEQUENCE BY at;";

#[test]
fn keys_that_overlap_are_shown_and_end_with_a_code_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = folder.path().join("p.sql");
    write(&pipeline, PIPELINE);
    write(
        &folder.path().join("old/1.json"),
        "{\"id\": \"a\", \"at\": \"2025-01-31T00:00:00Z\"}\n{\"id\": \"b\", \"at\": \"2025-01-31T00:00:00Z\"}\n",
    );
    let live = folder.path().join("new/1.json");
    write(
        &live,
        "{\"id\": \"a\", \"at\": \"2025-01-30T00:00:00Z\"}\n{\"id\": \"b\", \"at\": \"2025-02-01T00:00:00Z\"}\n",
    );
    let storage = folder.path().join("lake");
    let call = ["handoff", text(&pipeline), "--storage", text(&storage)];
    let output = run(&call);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(4), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    for said in
        ["customers: seed legacy, live live", "seeded keys          2", "id = a", "2025-01-31", "2025-01-30"]
    {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    assert!(!printed.contains("id = b"), "{printed}");
    assert!(!storage.exists(), "nothing is written");
    let output = run(&["handoff", text(&pipeline), "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report[0]["offending_keys"], 1, "{report}");
    assert_eq!(report[0]["samples"][0]["key"]["id"], "a", "{report}");

    write(&live, "{\"id\": \"a\", \"at\": \"2025-02-01T00:00:00Z\"}\n");
    assert!(succeed(&call).contains("keys that overlap    0"), "a clean hand-off ends with success");
    let output = run(&["handoff", text(&pipeline), "--target", "nope"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("customers"), "it says which targets there are");
}
