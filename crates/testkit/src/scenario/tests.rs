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

const TYPED: &str = "
title columns with physical types
stored as scd2
types id decimal(4, 1), at timestamp(us, UTC), n int, doc struct(head text, body text), seen timestamp(ms)
keys id
sequence by at
columns except at
unavailable value ?
permute yes

batch
| id | at | n int32 | doc | seen |
| 1 | 2024-01-01T01:00:00+01:00 | 1 | {head: a, body: b} | 2024-01-01T01:00:00 |
| 1.0 | 2024-01-02T00:00:00.5Z | 2 | {head: \"?\", body: c} | NULL |

expect target
| id | n | doc | seen | __START_AT | __END_AT |
| 1.0 | 1 | {head: a, body: b} | 2024-01-01T01:00:00 | 2024-01-01T00:00:00Z | 2024-01-02T00:00:00.5Z |
| 1.0 | 2 | {head: a, body: c} | NULL | 2024-01-02T00:00:00.5Z | NULL |
";

#[test]
fn physical_types_are_read_printed_and_compared() {
    let scenario = parse(TYPED).unwrap();
    assert_eq!(parse(&print(&scenario)).as_ref(), Ok(&scenario));
    run(&scenario, &mut ReferenceSubject::new(&scenario)).unwrap();
    assert_eq!(scenario.physical_of("__END_AT"), scenario.physical_of("at"));
    assert_eq!(scenario.batches().next().unwrap().types.len(), 1);
    for (right, wrong, line) in [
        ("permute yes", "permute perhaps", 9),
        ("n int32", "n int46", 12),
        ("| id | n | doc", "| id | n int32 | doc", 17),
        ("2024-01-02T00:00:00.5Z | 2", "2024-01-02 | 2", 14),
        ("unavailable value ?", "rekey id", 9),
        ("expect target\n", "expect error X\n\nexpect target\n", 21),
    ] {
        let text = TYPED.replacen(right, wrong, 1);
        assert_ne!(text, TYPED, "{right}");
        let error = parse(&text).unwrap_err();
        assert_eq!(error.line, line, "{wrong}: {error}");
    }
}

const MANY: &str = "
title rows that stand for many
stored as scd1
types id int, s1 int, s2 int, Plan text
keys id
sequence by greatest(s1, s2)
columns except s1, s2
case sensitive no

batches
| ID | s1 | s2  | plan |
for n in 0..3
| n  | n  | n+1 | n    |
| 9  | 1  | 0   | x    |

batch
| id | s1 | s2  | Plan |
for number in 0..3 shuffled
| number | number-1 | 0 | old |

expect target
| id | Plan | __SEQUENCE_AT |
for n in 0..3
| n  | n    | n+1           |
| 9  | x    | 1             |
";

#[test]
fn one_row_stands_for_many() {
    let scenario = parse(MANY).unwrap();
    assert_eq!(parse(&print(&scenario)).as_ref(), Ok(&scenario));
    run(&scenario, &mut ReferenceSubject::new(&scenario)).unwrap();
    let rows: Vec<_> = scenario.batches().map(|batch| (batch.number, batch.table.rows.len())).collect();
    assert_eq!(rows, [(1, 1), (2, 1), (3, 1), (4, 1), (5, 3)]);
    let Some(Step::ExpectTarget(expected)) = scenario.steps.last() else { panic!("{scenario:?}") };
    assert_eq!(expected.rows[2], [2.into(), Value::text("n"), 3.into()]);
    for (right, wrong, line) in [
        ("for n in 0..3\n", "for n in 3\n", 12),
        ("for n in 0..3\n", "for n in 0..3 twice\n", 12),
        ("for n in 0..3\n| n  | n  | n+1 | n    |\n| 9  | 1  | 0   | x    |\n", "for n in 0..3\n\n", 15),
        ("| n  | n  | n+1 | n    |", "| n  | n  | n*2 | n    |", 13),
        ("case sensitive no", "case sensitive yes", 11),
        ("| ID | s1", "| ID | id | s1", 11),
    ] {
        let text = MANY.replacen(right, wrong, 1);
        assert_ne!(text, MANY, "{right}");
        let error = parse(&text).unwrap_err();
        assert_eq!(error.line, line, "{wrong}: {error}");
    }
}

/// The events of the first batch of a scenario with these options, over the columns `a` and `b`.
fn authored(options: &str, cells: &str) -> Option<Vec<String>> {
    let text = format!(
        "title t\nstored as scd1\ntypes k int, seq int, a text, b text, m list(text)\nkeys k\nsequence by seq\n\
         {options}\nbatch\n{cells}\nexpect error X"
    );
    let scenario = parse(&text).unwrap();
    let events = scenario.events(scenario.batches().next().unwrap()).unwrap();
    events.into_iter().next().unwrap().authored.map(|leaves| leaves.into_iter().collect())
}

#[test]
fn only_a_flow_without_partial_updates_authors_whole_rows() {
    let all = "| k | seq | a | b |\n| 1 | 1 | x | y |";
    let kept = "columns k, a, b";
    assert_eq!(authored(kept, all), None);
    assert_eq!(authored(kept, "| k | seq | a |\n| 1 | 1 | x |"), Some(vec!["a".to_owned()]));
    let both = Some(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(authored(&format!("{kept}\nignore null updates"), all), both);
    assert_eq!(authored(&format!("{kept}\nignore null updates on a"), all), both);
    assert_eq!(authored(&format!("{kept}\nunavailable value ?"), all), both);
    assert_eq!(authored(&format!("{kept}\nunavailable value y"), all), Some(vec!["a".to_owned()]));
    let masked = |mask: &str| format!("| k | seq | a | b | m |\n| 1 | 1 | x | y | {mask} |");
    let option = format!("{kept}\ncolumns to update m");
    assert_eq!(authored(&option, &masked("[a, b]")), both);
    assert_eq!(authored(&option, &masked("NULL")), both);
    assert_eq!(authored(&option, &masked("[b]")), Some(vec!["b".to_owned()]));
}

#[test]
fn a_flow_that_means_nothing_is_refused() {
    let small = || parse(SMALL).unwrap();
    let when = || Some(Condition { column: "op".to_owned(), value: Value::text("X") });
    let keyed = Some(Selection::Only(vec!["k".to_owned()]));
    let refused = [
        (Scenario { keys: vec![], ..small() }, "AUTOCDC_EMPTY_KEYS"),
        (Scenario { retract_when: when(), ..small() }, "AUTOCDC_RETRACT_REQUIRES_BITEMPORAL"),
        (Scenario { truncate_when: when(), ..small() }, "AUTOCDC_TRUNCATE_REQUIRES_SCD1"),
        (Scenario { stored_as: StoredAs::Scd1, ..small() }, "AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2"),
        (Scenario { ignore_null_updates: keyed, ..small() }, "IGNORE NULL UPDATES ON names key"),
    ];
    for (scenario, condition) in refused {
        let error = scenario.check_definition().unwrap_err();
        assert!(error.starts_with(condition), "{error}");
    }
    assert_eq!(parse(SMALL).unwrap().check_definition(), Ok(()));
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

/// Every file of a folder parses, survives printing, and agrees with the reference; where it says so, in any arrival.
fn check(folder: &str, at_least: usize) {
    let scenarios = load_dir(&directory(folder)).unwrap();
    assert!(scenarios.len() >= at_least, "{folder} holds {} scenarios", scenarios.len());
    let mut failures = Vec::new();
    for scenario in scenarios {
        let again = parse(&print(&scenario)).map(|again| Scenario { name: scenario.name.clone(), ..again });
        assert_eq!(again.as_ref(), Ok(&scenario));
        failures.extend(run(&scenario, &mut ReferenceSubject::new(&scenario)).err());
        if scenario.permute {
            let arrivals =
                (0..20).map(|seed| run_permuted(&scenario, seed, &mut ReferenceSubject::new(&scenario)));
            failures.extend(arrivals.filter_map(Result::err).take(1));
        }
    }
    let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn worked_tables_agree_with_the_reference() {
    check("worked", 57);
}

#[test]
fn spark_cases_agree_with_the_reference() {
    check("spark", 85);
}

#[test]
fn reported_cases_agree_with_the_reference() {
    check("reports", 122);
}
