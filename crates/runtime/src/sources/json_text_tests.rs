//! Texts that are JSON come back as they are, others never get through.

use super::{Node, shallow};

fn again(text: &str) -> String {
    let mut out = String::new();
    Node::parse(text).unwrap().write(&mut out);
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
                let ours = Node::parse(&text);
                assert_eq!(ours.is_ok(), other.is_ok(), "{text}: {ours:?} {other:?}");
                assert_eq!(shallow(&text).is_ok(), ours.is_ok(), "{text}");
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
    let found = shallow(r#" {"schema": {"a":[1]} , "payload":{"b":"}"}} "#).unwrap().unwrap();
    let parts: Vec<(&str, &str)> = found.iter().map(|(name, text)| (name.as_ref(), *text)).collect();
    assert_eq!(parts, [("schema", r#"{"a":[1]}"#), ("payload", r#"{"b":"}"}"#)]);
    assert_eq!(shallow("null").unwrap(), None);
    assert!(shallow("{\"a\":1").is_err());
}

#[test]
fn what_nests_too_deep_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Node::parse(&deep).is_err());
    assert!(shallow(&deep).is_err());
}
