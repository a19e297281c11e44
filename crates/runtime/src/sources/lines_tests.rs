//! Records come out of a stream whole, however the bytes arrive.

use std::io::{BufReader, Cursor};

use super::{LONGEST, Lines, Values, skip_mark};

fn values(text: &[u8], buffer: usize) -> Vec<(u64, String)> {
    let mut values = Values::new(BufReader::with_capacity(buffer, Cursor::new(text)));
    let mut found = Vec::new();
    while let Some(value) = values.next().unwrap() {
        let value = String::from_utf8_lossy(value).into_owned();
        found.push((values.begins, value));
    }
    found
}

#[test]
fn values_are_cut_the_same_way_for_any_buffer() {
    let text = b"\n[ {\"a\": \"]}\\\"\",\n \"b\": [1, {}]},\n{\"c\": 2}, 3, \"x,y\" ]\n{\"d\": 4}{\"e\": 5}";
    for buffer in [1, 2, 3, 7, 100] {
        let found = values(text, buffer);
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        let expected = [
            "{\"a\": \"]}\\\"\",\n \"b\": [1, {}]}",
            "{\"c\": 2}",
            "3",
            "\"x,y\"",
            "{\"d\": 4}",
            "{\"e\": 5}",
        ];
        assert_eq!(texts, expected, "buffer of {buffer}");
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4, 4, 4, 5, 5]);
    }
}

#[test]
fn what_does_not_end_is_no_value() {
    for text in ["[{\"a\": 1}", "{\"a\": 1", "[", "{\"a\": \"open}"] {
        let found = values(text.as_bytes(), 4);
        let last = &found.last().unwrap().1;
        assert!(crate::sources::json::Json::parse(last.as_bytes()).is_err(), "{text}: {last}");
    }
    assert!(values(b" \n ", 4).is_empty() && values(b"[]", 4).is_empty());
}

#[test]
fn lines_end_where_they_end() {
    for buffer in [1, 3, 100] {
        let text = b"\xef\xbb\xbfa\r\n\n bc \nd";
        let mut reader = BufReader::with_capacity(buffer.max(3), Cursor::new(text));
        skip_mark(&mut reader).unwrap();
        let mut lines = Lines::new(reader);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(String::from_utf8_lossy(line).into_owned());
        }
        assert_eq!(found, ["a", "", " bc ", "d"]);
    }
}

#[test]
fn a_record_without_end_does_not_fill_the_memory() {
    let long = vec![b'x'; LONGEST + 1];
    assert!(Lines::new(Cursor::new(&long)).next().unwrap_err().to_string().contains("longer than"));
    assert!(Values::new(Cursor::new(&long)).next().unwrap_err().to_string().contains("longer than"));
    assert!(skip_mark(&mut Cursor::new(b"\xff\xfea\0")).unwrap_err().to_string().contains("UTF-16"));
}
