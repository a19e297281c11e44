//! What is read as JSON, and what is refused.

use std::borrow::Cow;

use super::{DEEPEST, Json, members};

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
    assert!(members(&nested(DEEPEST + 1)).unwrap_err().contains("nests"));
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

fn again(text: &str) -> String {
    let mut out = String::new();
    Json::of(text).unwrap().write(&mut out);
    out
}

#[test]
fn what_is_read_is_written_again_with_every_digit() {
    for text in [
        "null",
        "[true,false,null,[],{}]",
        r#"{"a":-0.10,"b":1e+400,"c":123456789012345678901234567890.123456789,"d":"x"}"#,
        r#"{"ä":"\"\\\n\u0001","é":[{"":0}]}"#,
    ] {
        assert_eq!(again(text), text);
    }
    assert_eq!(again(" { \"a\" : [ 1 , 2 ] } "), r#"{"a":[1,2]}"#);
    assert_eq!(again(r#""\u00e4\ud83d\ude00\/\b""#), "\"ä😀/\\u0008\"");
}

#[test]
fn it_agrees_with_another_parser_on_what_is_json() {
    let seeds = [r#"{"a":[1,-2.5e3,"x\u00e4\n",null,true],"b":{"c":{}}}"#, r#"["\ud83d\ude00", 0.5, 10]"#];
    let noise = ["", "\"", "{", "]", ",", ":", "\\", "0", "-", ".", "e", "u12", "nul", " ", "\n", "ä"];
    let mut tried = 0;
    for seed in seeds {
        for at in (0..=seed.len()).filter(|at| seed.is_char_boundary(*at)) {
            for (cut, extra) in noise.iter().flat_map(|extra| [(0, extra), (1, extra), (3, extra)]) {
                let Some(rest) = seed.get(at + cut..) else { continue };
                let text = format!("{}{extra}{rest}", &seed[..at]);
                let other = serde_json::from_str::<serde_json::Value>(&text);
                let ours = Json::of(&text);
                assert_eq!(ours.is_ok(), other.is_ok(), "{text}: {ours:?} {other:?}");
                assert_eq!(members(&text).is_ok(), ours.is_ok(), "{text}");
                if let Ok(other) = other {
                    assert_eq!(serde_json::from_str::<serde_json::Value>(&again(&text)).unwrap(), other);
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[test]
fn the_members_of_an_object_are_found_without_reading_them() {
    let found = members(r#" {"schema": {"a":[1]} , "payload":{"b":"}"}} "#).unwrap().unwrap();
    let parts: Vec<(&str, &str)> = found.iter().map(|(name, text)| (name.as_ref(), *text)).collect();
    assert_eq!(parts, [("schema", r#"{"a":[1]}"#), ("payload", r#"{"b":"}"}"#)]);
    assert_eq!(members("null").unwrap(), None);
    assert!(members("{\"a\":1").is_err());
}
