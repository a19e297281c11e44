//! Where fields and records end.

use std::io::{BufReader, Cursor};

use super::{CsvDialect, CsvRecords};

fn dialect() -> CsvDialect {
    CsvDialect {
        header: false,
        delimiter: b',',
        quote: Some(b'"'),
        escape: None,
        comment: None,
        skip_rows: 0,
        trim_start: false,
        trim_end: false,
        null_value: None,
    }
}

type Found = Vec<(u64, Vec<(String, bool)>, bool)>;

fn read(text: &str, dialect: CsvDialect, buffer: usize) -> Result<Found, String> {
    let reader = BufReader::with_capacity(buffer, Cursor::new(text.as_bytes().to_vec()));
    let mut records = CsvRecords::new(reader, dialect);
    records.skip_rows().map_err(|e| e.to_string())?;
    let mut found = Vec::new();
    while let Some(record) = records.next().map_err(|e| e.to_string())? {
        let fields = record.fields().unwrap().map(|(text, quoted)| (text.to_owned(), quoted)).collect();
        found.push((record.line, fields, record.problem.is_some()));
    }
    Ok(found)
}

fn texts(text: &str, dialect: &CsvDialect) -> Vec<Vec<String>> {
    let mut same: Vec<Found> = [1, 2, 5, 100].map(|n| read(text, dialect.clone(), n).unwrap()).into();
    let found = same.pop().unwrap();
    assert!(same.iter().all(|other| *other == found), "the buffer makes no difference: {same:?}");
    found.into_iter().map(|(_, fields, _)| fields.into_iter().map(|(text, _)| text).collect()).collect()
}

#[test]
fn quotes_hold_delimiters_line_ends_and_quotes() {
    let text = "a,b\r\n\"x, y\",\"l1\nl2\"\n\n\"say \"\"hi\"\"\",\n,\"\"\n1\"2,3";
    let expected =
        [["a", "b"], ["x, y", "l1\nl2"], ["say \"hi\"", ""], ["", ""], ["1\"2", "3"]].map(Vec::from);
    assert_eq!(texts(text, &dialect()), expected);
    let found = read(text, dialect(), 100).unwrap();
    assert_eq!(found.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [1, 2, 5, 6, 7]);
    assert_eq!(
        found[3].1,
        [(String::new(), false), (String::new(), true)],
        "a quoted empty text is told apart"
    );
}

#[test]
fn escapes_comments_blanks_and_skipped_lines() {
    let backslash = CsvDialect { escape: Some(b'\\'), ..dialect() };
    assert_eq!(texts(r#""a\"b","c\\","d\e""#, &backslash), [["a\"b", "c\\", "d\\e"]]);
    let comments = CsvDialect { comment: Some(b'#'), ..dialect() };
    assert_eq!(texts("# one, \"\na,#b\n#end", &comments), [["a", "#b"]]);
    let trimmed = CsvDialect { trim_start: true, trim_end: true, ..dialect() };
    assert_eq!(texts("  a , b c ,   \n\" x \",y", &trimmed), [vec!["a", "b c", ""], vec![" x ", "y"]]);
    let skipping = CsvDialect { skip_rows: 2, ..dialect() };
    assert_eq!(texts("made by \"x\nat noon\na,b", &skipping), [["a", "b"]]);
    let unquoted = CsvDialect { quote: None, delimiter: b'\t', ..dialect() };
    assert_eq!(texts("\"a\tb", &unquoted), [["\"a", "b"]]);
}

#[test]
fn what_quotes_may_have_swallowed_is_an_error() {
    let error = read("a,b\nc,\"d\ne,f\n", dialect(), 3).unwrap_err();
    assert!(error.contains("line 2") && error.contains("not closed"), "{error}");
    let found = read("\"a\"b,c\nd,e\n", dialect(), 3).unwrap();
    assert!(found[0].2 && !found[1].2, "text behind a quoted field is no record");
}

#[test]
fn fields_are_texts_each_by_itself() {
    // Latin-1: the bytes of two fields would make one character of UTF-8.
    for (bytes, is_text) in [(&b"x\xC3,\xA9y\n"[..], false), (b"x,\xC3\xA9y\n", true), (b"x\xC3,y\n", false)]
    {
        let mut records = CsvRecords::new(Cursor::new(bytes.to_vec()), dialect());
        let record = records.next().unwrap().unwrap();
        assert_eq!(record.fields().is_some(), is_text, "{bytes:?}");
    }
}
