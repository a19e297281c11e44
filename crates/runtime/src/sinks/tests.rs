use super::*;

fn sink(format: &str, options: &[(&str, &str)]) -> SinkDefinition {
    SinkDefinition {
        name: "out".to_owned(),
        format: format.to_owned(),
        options: options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
        comment: None,
        span: strandline_pipeline_sql::Span::default(),
    }
}

fn understood(format: &str, options: &[(&str, &str)]) -> Result<SinkPlan> {
    SinkPlan::new(&sink(format, options), &Registered::default(), "delta")
}

#[test]
fn what_a_sink_does_not_know_is_refused_by_name_with_what_it_does() {
    for (format, options, parts) in [
        ("json", &[][..], &["`path`", "OPTIONS"][..]),
        ("json", &[("path", "x"), ("Compresion", "gzip")], &["`Compresion`", "path, compression"]),
        ("json", &[("path", "x"), ("compression", "snappy")], &["snappy", "none, gzip, bzip2, zstd"]),
        ("parquet", &[("path", "x"), ("compression", "gzip")], &["gzip", "none, snappy, zstd"]),
        ("parquet", &[("path", "s3://x/y")], &["s3://x/y", "local folder"]),
        ("delta", &[("table", "x")], &["`path`"]),
        ("iceberg", &[("path", "x")], &["iceberg", "json, parquet, delta and foreachBatch"]),
        ("foreachbatch", &[], &["registered", "with_sink(\"out\""]),
    ] {
        let error = understood(format, options).unwrap_err();
        let text = format!("{} {}", error.full_text(), error.help_text().unwrap_or_default());
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    }
    for (format, options) in [
        ("json", &[("PATH", "x"), ("compression", "GZIP")][..]),
        ("parquet", &[("path", "x"), ("compression", "none")]),
        ("delta", &[("path", "x")]),
    ] {
        understood(format, options).unwrap();
    }
}
