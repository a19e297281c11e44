//! The format reads what it prints, finds typos, and every scenario file agrees with the reference.

use proptest::prelude::*;

use super::*;

const SMALL: &str = r#"
title a tie of texts
stored as scd2
types k text, seq int, n int, op text, note text, at struct(city text, zip list(int)), m map(text, float), raw bytes
keys k
sequence by seq, n
delete when op = D
columns except op, seq, n
track history on note

batch
| k | seq | n | op | note | at | m | raw |
| k1 | 1 | 2 | U | "a | \"b\"" | {city: Oslo, zip: [1, NULL]} | {a: 1.5, "b c": NaN} | 0x0aff |
| k2 | 1 | 3 | NULL | "" | NULL | NULL | 0x |

crash before target
batch
| k | seq | n | op |
| k2 | 2 | 1 | D |

restart

replay all

expect target
| k | note | at | m | raw | __START_AT | __END_AT |
| k1 | "a | \"b\"" | {city: Oslo, zip: [1, NULL]} | {"b c": NaN, a: 1.5} | 0x0aff | {seq: 1, n: 2} | NULL |
| k2 | "" | NULL | NULL | 0x | {seq: 1, n: 3} | {seq: 2, n: 1} |
"#;

#[test]
fn what_is_printed_is_read_again() {
    let scenario = parse(SMALL).unwrap();
    assert_eq!(parse(&print(&scenario)), Ok(scenario));
}

#[test]
fn a_scenario_runs_against_the_reference() {
    let scenario = parse(SMALL).unwrap();
    run(&scenario, &mut ReferenceSubject::new(&scenario)).unwrap();
}

#[test]
fn a_wrong_row_is_shown() {
    let scenario = parse(&SMALL.replace("{seq: 2, n: 1} |\n", "NULL |\n")).unwrap();
    let failure = run(&scenario, &mut ReferenceSubject::new(&scenario)).unwrap_err();
    assert_eq!((failure.step, failure.batch), (5, 2));
    assert_eq!(failure.message.lines().filter(|line| line.starts_with("| missing")).count(), 1);
    assert_eq!(failure.message.lines().filter(|line| line.starts_with("| surplus")).count(), 1);
}

#[test]
fn typos_are_found_with_their_line() {
    let cases = [
        ("stored as scd2", "stored as scd3", 3),
        ("keys k\n", "kyes k\n", 5),
        ("keys k\n", "keys id\n", 11),
        ("restart\n", "restrat\n", 21),
        ("replay all", "replay 3", 23),
        ("| k2 | 2 | 1 | D |", "| k2 | 2 | D |", 19),
        ("| k2 | 2 | 1 | D |", "| k2 | two | 1 | D |", 19),
        ("| k | seq | n | op |\n", "| k | seq | n | po |\n", 18),
        ("| k | seq | n | op |\n", "| k | seq | op |\n", 18),
        ("| k | note |", "| k | nite |", 26),
        ("| raw | __START_AT |", "| raw |", 26),
        ("{city: Oslo, zip: [1, NULL]} | {a", "{zip: [1, NULL]} | {a", 13),
        ("keys k\n", "keys k\nkeys k\n", 6),
        ("restart\n", "keys k\n", 21),
        ("restart\n", "expect error X\nexpect error Y\n", 22),
        ("track history on note", "track history note", 9),
    ];
    for (right, wrong, line) in cases {
        let text = SMALL.replacen(right, wrong, 1);
        assert_ne!(text, SMALL, "{right}");
        let error = parse(&text).unwrap_err();
        assert_eq!(error.line, line, "{wrong}: {error}");
    }
}

fn values() -> impl Strategy<Value = (Type, Value)> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(|truth| (Type::Bool, Value::Bool(truth))),
        any::<i64>().prop_map(|int| (Type::Int, Value::Int(int))),
        any::<f64>().prop_map(|float| (Type::Float, Value::Float(float))),
        "[a-b|\"\\\\NUL {},:\n\\[\\] ]{0,8}".prop_map(|text| (Type::Text, Value::Text(text))),
        proptest::collection::vec(any::<u8>(), 0..4).prop_map(|bytes| (Type::Bytes, Value::Bytes(bytes))),
        Just((Type::Text, Value::Null)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let fields = proptest::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            fields.prop_map(|fields| {
                let names = ["a", "b_c", "d"].map(str::to_owned);
                let (types, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
                let types = names.iter().cloned().zip(types).collect();
                (Type::Struct(types), Value::Struct(names.into_iter().zip(values).collect()))
            }),
            inner.clone().prop_map(|(kind, value)| {
                (Type::List(Box::new(kind)), Value::List(vec![value.clone(), Value::Null, value]))
            }),
            (inner.clone(), inner).prop_map(|((key, k), (value, v))| {
                (Type::Map(Box::new(key), Box::new(value)), Value::Map(vec![(k, v)]))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn cells_and_types_read_what_they_print((kind, value) in values()) {
        prop_assert_eq!(parse_type(&print_type(&kind)), Ok(kind.clone()));
        prop_assert_eq!(parse_cell(&print_cell(&value), &kind), Ok(value));
    }
}

/// Every file of a folder parses, survives printing, and agrees with the reference.
fn check(folder: &str, at_least: usize) {
    let scenarios = load_dir(&directory(folder)).unwrap();
    assert!(scenarios.len() >= at_least, "{folder} holds {} scenarios", scenarios.len());
    for scenario in scenarios {
        let again = parse(&print(&scenario)).map(|again| Scenario { name: scenario.name.clone(), ..again });
        assert_eq!(again.as_ref(), Ok(&scenario));
        if let Err(failure) = run(&scenario, &mut ReferenceSubject::new(&scenario)) {
            panic!("{failure}");
        }
    }
}

#[test]
fn worked_tables_agree_with_the_reference() {
    check("worked", 1);
}

#[test]
fn worked_tables_of_later_shapes_agree_with_the_reference() {
    check("worked-next", 1);
}

#[test]
fn spark_cases_agree_with_the_reference() {
    check("spark", 1);
}
