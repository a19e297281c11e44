//! Do the examples of the guide say what the language takes?

use std::path::Path;

use strandline_pipeline_sql::{SourceFile, Support, parse_pipeline_with};

#[test]
fn flows_of_the_guide_parse_and_survive_being_printed() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pipelines.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let blocks = guide.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let flows: Vec<&str> = blocks.filter(|block| block.starts_with("CREATE")).collect();
    assert!(flows.len() >= 6, "{flows:?}");
    for text in flows {
        let parse =
            |text: &str| parse_pipeline_with(&[SourceFile::new("guide", text)], &Support::everything());
        let definition = parse(text).unwrap_or_else(|errors| panic!("{text}: {}", errors[0]));
        assert_eq!(parse(&definition.to_sql()), Ok(definition), "{text}");
    }
}
