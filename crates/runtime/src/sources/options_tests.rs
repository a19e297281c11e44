//! Options by the names of Auto Loader.

use strandline_pipeline_sql::{FlowQuery, InputKind};

use super::{Evolution, FileFormat, FileOptions};
use crate::{
    ErrorKind,
    sources::{
        bytes::Compression,
        records::{Malformed, Unknown},
    },
};

fn read(arguments: &str) -> crate::Result<FileOptions> {
    let query = FlowQuery::parse(&format!("SELECT * FROM STREAM read_files({arguments})")).unwrap();
    let InputKind::ReadFiles(call) = &query.inputs[0].kind else { panic!("files are read") };
    FileOptions::new(call)
}

fn refused(arguments: &str) -> String {
    let error = read(arguments).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Definition, "{arguments}: {error}");
    format!("{} {}", error.full_text(), error.help_text().unwrap_or_default())
}

#[test]
fn formats_and_packing_come_from_the_path_or_the_option() {
    for (path, format) in [
        ("/a.json", FileFormat::Json),
        ("/*.json.gz", FileFormat::Json),
        ("/a.csv.bz2", FileFormat::Csv),
        ("/a.avro", FileFormat::Avro),
        ("/a.txt.zst", FileFormat::Text),
    ] {
        assert_eq!(read(&format!("'{path}'")).unwrap().format, format);
    }
    let options = read("'/in', format => 'json'").unwrap();
    assert_eq!(options.compression_of("x/a.json.gz"), Compression::Gzip);
    assert_eq!(options.compression_of("x/a.json"), Compression::None);
    let options = read("'/in', format => 'json', compression => 'ZSTD'").unwrap();
    assert_eq!(options.compression_of("x/a.json.gz"), Compression::Zstd);
    assert!(refused("'/in'").contains("format"));
    assert!(refused("'/in', format => 'xml'").contains("xml"));
    assert!(refused("'/in', format => 'json', compression => 'lz4'").contains("lz4"));
}

#[test]
fn r20_r21_evolution_depends_on_who_gives_the_columns() {
    let of = |more: &str| {
        let options = read(&format!("'/in', format => 'json'{more}")).unwrap();
        (options.evolution, options.records.unknown, options.records.rescue)
    };
    let rescued = Some("_rescued_data".to_owned());
    assert_eq!(of(""), (Evolution::AddNewColumns, Unknown::Evolve, rescued.clone()));
    assert_eq!(of(", schema => 'a INT'"), (Evolution::None, Unknown::Rest, None));
    assert_eq!(
        of(", schema => 'a INT', schemaEvolutionMode => 'rescue'"),
        (Evolution::Rescue, Unknown::Rest, rescued)
    );
    assert_eq!(of(", cloudFiles.schemaEvolutionMode => 'none'"), (Evolution::None, Unknown::Rest, None));
    assert_eq!(of(", schema => 'a INT', rescuedDataColumn => 'r'").2, Some("r".to_owned()));
    assert_eq!(of(", rescuedDataColumn => ''").2, None);
    assert_eq!(of(", schemaEvolutionMode => 'failOnNewColumns'").1, Unknown::Refuse);
    assert!(
        refused("'/in', format => 'json', schema => 'a INT', schemaEvolutionMode => 'addNewColumns'")
            .contains("schemaHints")
    );
    assert!(refused("'/in', format => 'json', schemaEvolutionMode => 'maybe'").contains("failOnNewColumns"));
}

#[test]
fn values_are_checked() {
    let of = |more: &str| read(&format!("'/in', format => 'csv'{more}"));
    for (text, bytes) in
        [("1024", 1024), ("512mb", 512 << 20), ("10g", 10 << 30), ("1 KB", 1024), ("2T", 2 << 40)]
    {
        assert_eq!(of(&format!(", maxBytesPerTrigger => '{text}'")).unwrap().max_bytes, bytes);
    }
    for text in ["0", "10x", "-1", "g", "99999999999t"] {
        assert!(
            refused(&format!("'/in', format => 'csv', maxBytesPerTrigger => '{text}'"))
                .contains("maxBytesPerTrigger")
        );
    }
    assert_eq!(of(", maxFilesPerTrigger => 5").unwrap().max_files, 5);
    assert!(refused("'/in', format => 'csv', maxFilesPerTrigger => 0").contains("at least 1"));
    assert_eq!(of(r", sep => '\t', quote => '', escape => '\\'").unwrap().csv.delimiter, b'\t');
    assert!(refused("'/in', format => 'csv', sep => '||'").contains("one ASCII character"));
    assert!(refused("'/in', format => 'csv', header => 'perhaps'").contains("true or false"));
    assert!(of(", modifiedAfter => '2025-01-01T00:00:00Z'").unwrap().modified_after.is_some());
    assert!(
        refused("'/in', format => 'csv', modifiedAfter => '2025-01-01T00:00:00.000'").contains("UTC+0"),
        "A-21"
    );
    assert_eq!(
        of(", partitionColumns => 'year, month'").unwrap().partition_columns.unwrap(),
        ["year", "month"]
    );
    assert_eq!(of(", partitionColumns => ''").unwrap().partition_columns.unwrap(), [""; 0]);
    assert_eq!(of(", schemaHints => 'a INT, b STRUCT<c: STRING>'").unwrap().hints.len(), 2);
    assert!(refused("'/in', format => 'csv', schemaHints => 'a NOPE'").contains("schemaHints"));
    assert!(
        refused("'/in', format => 'csv', schema => 'a INT', schemaHints => 'a INT'").contains("declared")
    );
    assert_eq!(of(", mode => 'DropMalformed'").unwrap().records.malformed, Malformed::Drop);
    assert!(
        refused("'/in', format => 'csv', schema => 'a INT', mode => 'PERMISSIVE'")
            .contains("rescuedDataColumn")
    );
}

#[test]
fn every_option_is_known_refused_or_corrected() {
    for harmless in [
        "cloudFiles.useNotifications => false",
        "cloudFiles.schemaLocation => '/tmp/x'",
        "backfillInterval => '1 day'",
        "recursiveFileLookup => true",
        "ignoreCorruptFiles => false",
        "encoding => 'UTF-8'",
        "timeZone => 'UTC'",
    ] {
        read(&format!("'/in', format => 'json', {harmless}")).unwrap();
    }
    for (option, part) in [
        ("useNotifications => true", "listed"),
        ("cleanSource => 'DELETE'", "not moved or removed"),
        ("ignoreMissingFiles => true", "ignoremissingfiles"),
        ("badRecordsPath => '/x'", "PERMISSIVE"),
        ("recursiveFileLookup => false", "below it"),
        ("maxFilesPerTriger => 1", "did you mean maxFilesPerTrigger?"),
        ("haeder => true", "did you mean header?"),
        ("somethingElse => 1", "known are format"),
    ] {
        let text = refused(&format!("'/in', format => 'json', {option}"));
        assert!(text.contains(part), "{option}: {text}");
    }
}
