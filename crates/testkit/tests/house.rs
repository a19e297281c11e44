//! Does the house stand as ARCHITECTURE.md draws it? What the compiler can't check of it is checked here.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The triple of this machine: crates for other systems are not looked at, nor fetched.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").current_dir(root()).output().expect("rustc runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host").to_owned()
}

fn metadata(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1"])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Our crates, by name without prefix, with the names that their manifests depend on (dev-dependencies apart).
fn arrows(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let ours: BTreeSet<&str> =
        metadata["workspace_members"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let packages = metadata["packages"].as_array().unwrap();
    let mut arrows = BTreeMap::new();
    for package in packages.iter().filter(|p| ours.contains(text(p, "id"))) {
        let to = package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"] != "dev");
        arrows.insert(short(text(package, "name")), to.map(|d| short(text(d, "name"))).collect());
    }
    arrows
}

fn short(name: &str) -> String {
    match name {
        "strandline" => "cli".to_owned(),
        other => other.strip_prefix("strandline-").unwrap_or(other).to_owned(),
    }
}

#[test]
fn crates_depend_on_one_another_only_as_drawn() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("cdc-core", &[] as &[&str]),
        ("flow-graph", &[]),
        ("pipeline-sql", &["flow-graph", "cdc-core"]),
        ("table-formats", &["cdc-core"]),
        ("runtime", &["cdc-core", "flow-graph", "pipeline-sql", "table-formats"]),
        ("cli", &["runtime", "table-formats"]),
        // Only ever a dev-dependency of the others; its reference model uses no type of ours.
        ("testkit", &[]),
    ]);
    let arrows = arrows(&metadata(&["--no-deps"]));
    for (from, to) in &arrows {
        let allowed = allowed.get(from.as_str()).unwrap_or_else(|| panic!("{from} is not in the drawing"));
        for to in to.iter().filter(|to| arrows.contains_key(*to)) {
            assert!(allowed.contains(&to.as_str()), "{from} -> {to} is not drawn");
        }
    }
}

/// Every crate that `from` pulls in by normal dependencies, transitively.
fn closure(metadata: &Value, from: &str) -> BTreeSet<String> {
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (text(node, "id"), node))
        .collect();
    let names: BTreeMap<&str, &str> =
        metadata["packages"].as_array().unwrap().iter().map(|p| (text(p, "id"), text(p, "name"))).collect();
    let mut queue: Vec<&str> = names.iter().filter(|(_, name)| **name == from).map(|(id, _)| *id).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = queue.pop() {
        for dependency in nodes[id]["deps"].as_array().unwrap() {
            let normal =
                dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null());
            let id = text(dependency, "pkg");
            if normal && seen.insert(names[id].to_owned()) {
                queue.push(id);
            }
        }
    }
    seen
}

#[test]
fn pure_crates_pull_in_no_io() {
    let metadata = metadata(&["--all-features", "--filter-platform", &host()]);
    let heavy = [
        "tokio",
        "object_store",
        "parquet",
        "datafusion",
        "deltalake-core",
        "deltalake",
        "iceberg",
        "reqwest",
    ];
    for from in ["strandline-cdc-core", "strandline-flow-graph"] {
        let pulled = closure(&metadata, from);
        let found: Vec<_> = heavy.iter().filter(|name| pulled.contains(**name)).collect();
        assert!(found.is_empty(), "{from} pulls in {found:?}");
    }
    let graph = closure(&metadata, "strandline-flow-graph");
    assert!(!graph.iter().any(|name| name.starts_with("arrow")), "flow-graph knows no Arrow");
    let sql = closure(&metadata, "strandline-pipeline-sql");
    assert!(!sql.contains("datafusion"), "pipeline-sql parses without an engine");
}

#[test]
fn tables_without_features_pull_in_no_format() {
    let manifest = fs::read_to_string(root().join("crates/table-formats/Cargo.toml")).unwrap();
    assert!(manifest.contains("default = []"), "formats are off by default");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "-p", "strandline-table-formats", "-e", "normal", "--prefix", "none"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && tree.contains("parquet"), "{tree}");
    for format in ["deltalake", "iceberg", "buoyant_kernel", "delta_kernel"] {
        assert!(!tree.contains(format), "{format} is pulled in without its feature");
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn no_module_hides_in_a_mod_file_and_every_crate_takes_the_lints() {
    for (path, _) in all_sources() {
        // `tests/<name>/mod.rs` would be the only reason, and a folder with a main.rs serves as well.
        assert_ne!(path.file_name().unwrap(), "mod.rs", "{}", path.display());
    }
    for entry in fs::read_dir(root().join("crates")).unwrap().flatten() {
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}", entry.path().display());
    }
}

#[test]
fn every_public_trait_states_its_contract() {
    for (path, source) in all_sources() {
        if path.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        let lines: Vec<&str> = source.lines().collect();
        for (at, line) in
            lines.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with("pub trait "))
        {
            let docs = lines[..at]
                .iter()
                .rev()
                .take_while(|l| l.trim_start().starts_with("///") || l.trim_start().starts_with("#["));
            let stated = docs.into_iter().any(|l| l.contains("# Contract") || l.contains("# Laws"));
            assert!(stated, "{}: `{}` has no `# Contract` section", path.display(), line.trim());
        }
    }
}

#[test]
fn every_invariant_of_the_architecture_names_a_test_that_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let all: String = all_sources().into_iter().map(|(_, source)| source).collect();
    let invariants: Vec<&str> = page.lines().filter(|line| line.contains("**Invariant")).collect();
    assert!(invariants.len() >= 7, "the page lists its invariants");
    for line in invariants {
        let tests: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        let tests = tests.iter().filter(|name| {
            name.len() > 8 && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        });
        let mut named = 0;
        for name in tests {
            named += 1;
            assert!(
                all.contains(&format!("fn {name}(")),
                "the test `{name}` of this line does not exist: {line}"
            );
        }
        assert!(named > 0, "no test is named: {line}");
    }
}

/// Names of the functions of all our sources, each with the file that has it, relative to `crates/`.
fn functions() -> BTreeSet<(String, String)> {
    let crates = root().join("crates");
    let mut found = BTreeSet::new();
    for (path, source) in all_sources() {
        let file = path.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
        for rest in source.split("fn ").skip(1) {
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
            found.extend(name.map(|name| (file.clone(), name.to_owned())));
        }
    }
    found
}

/// Statements of one letter: the page that maps them to tests, and the number of the last one.
const STATEMENTS: [(char, &str, usize); 4] = [
    ('C', "statements.md", 73),
    ('G', "flow-statements.md", 28),
    ('R', "flow-statements.md", 27),
    ('T', "table-statements.md", 22),
];

/// The rows of a page that map the statements of one letter, in order.
fn statement_rows(letter: char, page: &str) -> Vec<(String, String)> {
    let page = fs::read_to_string(root().join("docs/semantics").join(page)).unwrap();
    let rows = page.lines().filter(|line| line.starts_with(&format!("| {letter}-")));
    rows.map(|row| (row[2..6].to_owned(), row.to_owned())).collect()
}

/// Whether a test carries an id in its name: `C-01` as `c01` or `c_01`, alone or within `c01_to_c08`.
fn names(test: &str, id: &str) -> bool {
    let letter = id[..1].to_ascii_lowercase();
    let parts: Vec<&str> = test.split('_').collect();
    let number = |at: usize| -> Option<usize> {
        let digits = parts.get(at)?.strip_prefix(&letter)?;
        let digits = if digits.is_empty() { *parts.get(at + 1)? } else { digits };
        digits.parse().ok().filter(|_| digits.len() == 2)
    };
    let wanted: usize = id[2..].parse().unwrap();
    (0..parts.len()).any(|at| {
        let last = if parts.get(at + 1) == Some(&"to") { number(at + 2) } else { None };
        number(at).is_some_and(|first| (first..=last.unwrap_or(first)).contains(&wanted))
    })
}

/// Every statement has a row, and in it tests that exist, one of which carries the statement's id in its name.
#[test]
fn every_statement_has_a_test_that_names_it() {
    let functions = functions();
    for (letter, page, last) in STATEMENTS {
        let rows = statement_rows(letter, page);
        let expected: Vec<String> = (1..=last).map(|number| format!("{letter}-{number:02}")).collect();
        assert_eq!(rows.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), expected, "{page}");
        for (id, row) in rows.iter().filter(|(_, row)| !row.ends_with("| not yet |")) {
            let tests: Vec<_> =
                row.split('`').skip(1).step_by(2).filter_map(|test| test.split_once("::")).collect();
            for (file, name) in &tests {
                let exists = functions.contains(&((*file).to_owned(), (*name).to_owned()));
                assert!(exists, "{file} has no test {name}, which this line names: {row}");
            }
            let of_its_own = tests.iter().any(|(_, name)| names(name, id));
            assert!(of_its_own, "no test of this line names {id}: {row}");
        }
    }
}
