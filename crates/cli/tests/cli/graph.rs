//! The three drawings of a pipeline, as they are in `tests/golden`; `UPDATE_EXPECT=1` writes them anew.

use std::path::Path;

use crate::{run_in, succeed_in, write};

const PIPELINE: &str = "
    CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT');
    CREATE TEMPORARY VIEW clean AS SELECT * FROM STREAM(raw) WHERE k IS NOT NULL;
    CREATE STREAMING TABLE customers COMMENT 'Two flows: a seed and a live feed';
    CREATE FLOW legacy AS AUTO CDC ONCE INTO customers
      FROM read_files('old/*.json', format => 'json', schema => 'k STRING, seq BIGINT') KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2;
    CREATE FLOW live DEPENDS ON (legacy) AS AUTO CDC INTO customers FROM STREAM(clean) KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2;
    CREATE STREAMING TABLE `odd \"name\"`;
    CREATE FLOW copy DEPENDS ON (live, raw) AS INSERT INTO `odd \"name\"` BY NAME SELECT * FROM STREAM(raw);";

#[expect(clippy::disallowed_methods, reason = "that is how the drawings are written anew")]
fn expect(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var("UPDATE_EXPECT").is_ok() {
        write(&path, found);
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{file}");
}

#[test]
fn a_pipeline_is_drawn_as_text_mermaid_and_dot_with_order_edges_apart() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("p.sql"), PIPELINE);
    for (format, file) in [("text", "graph.txt"), ("mermaid", "graph.mmd"), ("dot", "graph.dot")] {
        let drawn = succeed_in(folder.path(), &["graph", "p.sql", "--format", format]);
        expect(file, &drawn);
    }
}

#[test]
fn all_that_is_wrong_with_a_graph_is_told_and_nothing_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder.path().join("p.sql"),
        "CREATE STREAMING TABLE a AS SELECT * FROM STREAM(nope); CREATE STREAMING TABLE b AS SELECT * FROM STREAM(neither);",
    );
    let refused = run_in(folder.path(), &["graph", "p.sql"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stdout.is_empty());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("nope") && said.contains("neither"), "{said}");
}
