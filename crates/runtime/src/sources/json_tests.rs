//! What is read as JSON, and what is refused.

use std::borrow::Cow;

use super::{DEEPEST, Json};

fn error(text: &str) -> String {
    Json::parse(text.as_bytes()).unwrap_err()
}

#[test]
fn values_keep_their_digits_and_their_text() {
    let text = br#" {"n": 12345678901234567890.120, "s": "a\"\u00e4\ud83d\ude00\n", "l": [1, {"x": null}], "t": true, "n": -0.5e+3} "#;
    let value = Json::parse(text).unwrap();
    assert_eq!(value.get("n"), Some(&Json::Number("-0.5e+3")), "the last field of a name counts");
    assert_eq!(value.get("s"), Some(&Json::Text("a\"ä😀\n".into())));
    assert_eq!(value.get("l").unwrap().raw(), r#"[1, {"x": null}]"#);
    assert_eq!(value.get("t"), Some(&Json::Bool(true)));
    assert_eq!(value.get("none"), None);
    assert!(matches!(Json::parse(br#""plain""#), Ok(Json::Text(Cow::Borrowed("plain")))));
    assert_eq!(Json::parse(b"NaN").unwrap().raw(), "\"NaN\"");
    assert_eq!(Json::parse(b"-Infinity"), Ok(Json::Number("-Infinity")));
    assert_eq!(Json::parse(br#""a\tb""#).unwrap().raw(), r#""a\tb""#);
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    for (text, part) in [
        ("", "ends"),
        ("{", "name of a field"),
        (r#"{"k": oops}"#, "`o` at byte 6"),
        (r#"{"k" 1}"#, "`:`"),
        (r#"{"k": 1,}"#, "name of a field"),
        ("[1 2]", "`,` or `]`"),
        ("01", "may not begin with 0"),
        ("1.", "digit"),
        ("-", "digit"),
        ("1e", "digit"),
        (r#""open"#, "no end"),
        (r#""\x""#, "no escape"),
        (r#""\u12g4""#, "hexadecimal"),
        (r#""\ud800""#, "half a character"),
        (r#""\ud800\u0041""#, "half a character"),
        ("\"a\nb\"", "unescaped"),
        ("1 2", "something after the record"),
        ("nul", "a value is expected"),
        ("not json", "a value is expected"),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
    assert!(Json::parse(b"\"\xff\"").unwrap_err().contains("UTF-8"));
}

#[test]
fn depth_is_limited_and_any_bytes_are_survived() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(Json::parse(nested(DEEPEST).as_bytes()).is_ok());
    assert!(error(&nested(DEEPEST + 1)).contains("nests"));
    assert!(error(&"[".repeat(1 << 20)).contains("nests"));
    let whole = br#"{"a": [1, -2.5e3, "\u00e4x", {"b": null}], "c": true}"#;
    for cut in 0..whole.len() {
        assert!(Json::parse(&whole[..cut]).is_err());
        for byte in [0, b'"', b'{', b'\\', 0xff] {
            let mut changed = whole.to_vec();
            changed[cut] = byte;
            drop(Json::parse(&changed));
        }
    }
}
