//! Do the examples of the guides say what the language takes?

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::path::{Path, PathBuf};

use strandline_pipeline_sql::{SourceFile, Support, Values, parse_pipeline_with, parse_pipeline_with_values};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The statements of a page, as far as they are those of a pipeline.
fn examples(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let blocks = text.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let statements =
        blocks.filter(|block| ["CREATE", "SET", "AUTO CDC"].iter().any(|word| block.starts_with(word)));
    statements.map(str::to_owned).collect()
}

fn check(text: &str) {
    let values = Values { defaults: [("env".to_owned(), "test".to_owned())].into(), ..Values::default() };
    let source = [SourceFile::new("guide", text)];
    let definition = parse_pipeline_with_values(&source, &Support::everything(), &values)
        .unwrap_or_else(|errors| panic!("{}", errors[0].render(text)));
    let printed = definition.to_sql();
    let again = parse_pipeline_with(&[SourceFile::new("printed", printed.as_str())], &Support::everything());
    assert_eq!(again, Ok(definition), "{printed}");
}

#[test]
fn statements_of_the_guide_parse_and_survive_being_printed() {
    let statements = examples(&docs().join("pipelines.md"));
    assert!(statements.len() >= 12, "{statements:?}");
    for text in &statements {
        check(text);
    }
}

#[test]
fn statements_of_all_pages_parse() {
    let folders = [docs(), docs().join("semantics"), docs().join("sources"), docs().join("adapters")];
    let pages = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let pages =
        pages.map(|page| page.unwrap().path()).filter(|page| page.extension().is_some_and(|e| e == "md"));
    let mut count = 0;
    for page in pages {
        for text in examples(&page) {
            check(&text);
            count += 1;
        }
    }
    assert!(count > 12, "{count}");
}
