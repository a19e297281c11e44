//! Does any text make the SQL reader panic, and does what it reads survive being printed?

use strandline_pipeline_sql::{
    FlowQuery, PipelineDefinition, SourceFile, SqlError, SqlExpr, Support, Values, parse_pipeline,
    parse_pipeline_with, parse_pipeline_with_values,
};

/// Longer texts find nothing that shorter ones don't.
const LONGEST: usize = 4096;

/// Reads a text in every way.
///
/// # Panics
/// When an error does not lie within the text, or a definition is another one after printing.
pub fn reads(text: &str) {
    if text.len() > LONGEST {
        return;
    }
    let file = [SourceFile::new("f", text)];
    checked(text, parse_pipeline(&file));
    if let Some(read) = checked(text, parse_pipeline_with(&file, &Support::everything())) {
        let printed = read.to_sql();
        let again = parse_pipeline_with(&[SourceFile::new("f", &printed)], &Support::everything());
        assert_eq!(Ok(read), again, "{text}\nis printed as\n{printed}");
    }
    // Values that are longer and shorter than their keys, and would close quotes if they could.
    let value = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let values = Values {
        defaults: [value("k", "it's \"`\\ ${n}")].into(),
        overrides: [value("n", ""), value("pipelines.x", "a_long_name")].into(),
    };
    checked(text, parse_pipeline_with_values(&file, &Support::everything(), &values));
    drop(SqlExpr::parse(text));
    drop(FlowQuery::parse(text));
}

fn checked(text: &str, read: Result<PipelineDefinition, Vec<SqlError>>) -> Option<PipelineDefinition> {
    match read {
        Ok(definition) => {
            definition.graph().map(|graph| graph.to_string()).unwrap_or_default();
            Some(definition)
        }
        Err(errors) => {
            assert!(!errors.is_empty(), "a refusal says why");
            for error in errors {
                assert!(text.get(error.span.start..error.span.end).is_some(), "{error:?}");
                assert!(!error.render(text).is_empty());
            }
            None
        }
    }
}
