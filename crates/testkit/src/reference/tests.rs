//! Every worked table of the semantics must come out of the model.

use super::*;

fn columns_of(values: &[(&str, Value)]) -> BTreeMap<String, Value> {
    values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn event(key: &str, seq: impl Into<Value>, op: Op, values: &[(&str, Value)]) -> Event {
    Event {
        key: vec![key.into()],
        seq: seq.into(),
        op,
        values: columns_of(values),
        authored: None,
        sys: None,
    }
}

fn upsert(key: &str, seq: i64, plan: &str, city: &str) -> Event {
    event(key, seq, Op::Upsert, &[("plan", plan.into()), ("city", city.into())])
}

fn v(key: &str, seq: i64, v: &str) -> Event {
    event(key, seq, Op::Upsert, &[("v", v.into())])
}

fn delete(key: &str, seq: i64) -> Event {
    event(key, seq, Op::Delete, &[])
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Int(int) => int.to_string(),
        Value::Text(text) => text.clone(),
        Value::Struct(fields) => fields.iter().map(|(_, value)| show(value)).collect::<Vec<_>>().join("."),
        Value::Bool(_) | Value::Float(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => {
            format!("{value:?}")
        }
    }
}

/// The named columns of the rows, one row a line, sorted.
fn table(rows: &[Row], columns: &str) -> Vec<String> {
    let line = |row: &Row| {
        columns.split(' ').map(|c| row.get(c).map_or("?".into(), show)).collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.sort();
    lines
}

fn scd1_of(events: &[Event], columns: &str) -> Vec<String> {
    table(&scd1(&["k"], events), columns)
}

fn scd2_of(events: &[Event], columns: &str) -> Vec<String> {
    table(&scd2(&["k"], events, None), &format!("{columns} __START_AT __END_AT"))
}

fn late_events() -> Vec<Event> {
    vec![
        upsert("k1", 10, "free", "Oslo"),
        upsert("k1", 30, "pro", "Bergen"),
        upsert("k2", 10, "free", "Rome"),
        upsert("k1", 20, "free", "Bergen"),
        delete("k2", 25),
        delete("k3", 15),
        upsert("k3", 12, "pro", "Lima"),
        upsert("k2", 22, "pro", "Rome"),
    ]
}

#[test]
fn table_2_1_scd1_deletes_and_late_events() {
    let mut events = late_events();
    assert_eq!(scd1_of(&events, "k plan city __SEQUENCE_AT"), ["k1 pro Bergen 30"]);
    events.push(upsert("k2", 40, "free", "Turin"));
    assert_eq!(scd1_of(&events, "k plan city"), ["k1 pro Bergen", "k2 free Turin"]);
}

#[test]
fn table_2_2_truncate_is_a_floor() {
    let events = [
        v("a", 1, "x"),
        v("b", 2, "y"),
        event("", 5, Op::Truncate, &[]),
        v("b", 6, "z"),
        v("c", 4, "late"),
        v("d", 5, "same"),
    ];
    assert_eq!(scd1_of(&events, "k v"), ["b z", "d same"]);
}

#[test]
fn table_2_3_scd2() {
    let expected = [
        "k1 free Bergen 20 30",
        "k1 free Oslo 10 20",
        "k1 pro Bergen 30 -",
        "k2 free Rome 10 22",
        "k2 pro Rome 22 25",
        "k3 pro Lima 12 15",
    ];
    assert_eq!(scd2_of(&late_events(), "k plan city"), expected);
}

#[test]
fn table_2_3_out_of_order_states() {
    let arrivals = [
        upsert("k1", 30, "pro", "Bergen"),
        upsert("k1", 10, "free", "Oslo"),
        upsert("k1", 20, "free", "Bergen"),
        delete("k1", 25),
    ];
    let states: [&[&str]; 4] = [
        &["pro Bergen 30 -"],
        &["free Oslo 10 30", "pro Bergen 30 -"],
        &["free Bergen 20 30", "free Oslo 10 20", "pro Bergen 30 -"],
        &["free Bergen 20 25", "free Oslo 10 20", "pro Bergen 30 -"],
    ];
    for (arrived, expected) in (1..).zip(states) {
        assert_eq!(scd2_of(&arrivals[..arrived], "plan city"), expected);
    }
}

#[test]
fn table_2_3_bisected_run() {
    let mut events = vec![v("k", 5, "Al"), v("k", 10, "Al"), v("k", 15, "Al"), v("k", 20, "Cy")];
    assert_eq!(scd2_of(&events, "v"), ["Al 5 20", "Cy 20 -"]);
    events.push(v("k", 12, "Bo"));
    assert_eq!(scd2_of(&events, "v"), ["Al 15 20", "Al 5 12", "Bo 12 15", "Cy 20 -"]);
}

#[test]
fn table_2_4_tracked_columns() {
    let rows = scd2(&["k"], &late_events(), Some(&BTreeSet::from(["plan".to_owned()])));
    let expected = [
        "k1 free Bergen 10 30",
        "k1 pro Bergen 30 -",
        "k2 free Rome 10 22",
        "k2 pro Rome 22 25",
        "k3 pro Lima 12 15",
    ];
    assert_eq!(table(&rows, "k plan city __START_AT __END_AT"), expected);
}

#[test]
fn table_2_5_ties() {
    let twice = [v("k", 1, "a"), v("k", 1, "a")];
    assert_eq!(scd1_of(&twice, "v"), ["a"]);
    assert_eq!(scd2_of(&twice, "v"), ["a 1 -"]);
    let closes_and_opens = [v("k", 1, "a"), delete("k", 5), v("k", 5, "b")];
    assert_eq!(scd1_of(&closes_and_opens, "v"), ["b"]);
    assert_eq!(scd2_of(&closes_and_opens, "v"), ["a 1 5", "b 5 -"]);
    assert_eq!(scd2_of(&[v("k", 1, "a"), v("k", 5, "a"), delete("k", 5)], "v"), ["a 1 -"]);
    for pair in [[v("k", 1, "a"), v("k", 1, "b")], [v("k", 1, "b"), v("k", 1, "a")]] {
        assert_eq!(scd1_of(&pair, "v"), ["b"]);
        assert_eq!(scd2_of(&pair, "v"), ["b 1 -"]);
    }
    let at = |ts: i64, n: i64, v: &str| Event {
        seq: Value::fields([("ts", ts.into()), ("n", n.into())]),
        ..self::v("k", 0, v)
    };
    assert_eq!(
        scd2_of(&[at(1, 2, "b"), at(1, 1, "a"), at(0, 9, "c")], "v"),
        ["a 1.1 1.2", "b 1.2 -", "c 0.9 1.1"]
    );
}

fn tiers(version: i64, rows: &[(&str, &str)]) -> Vec<Event> {
    let row = |(id, tier): &(&str, &str)| (vec![(*id).into()], columns_of(&[("tier", (*tier).into())]));
    snapshot(&version.into(), rows.iter().map(row).collect())
}

#[test]
fn table_2_6_snapshots() {
    let mut events = tiers(1, &[("1", "basic"), ("2", "gold"), ("3", "basic")]);
    events.extend(tiers(2, &[("1", "gold"), ("3", "basic")]));
    assert_eq!(scd1_of(&events, "k tier __SEQUENCE_AT"), ["1 gold 2", "3 basic 1"]);
    events.extend(tiers(3, &[("1", "gold"), ("2", "basic"), ("3", "basic"), ("4", "basic")]));
    assert_eq!(scd1_of(&events, "k tier"), ["1 gold", "2 basic", "3 basic", "4 basic"]);
    let expected = ["1 basic 1 2", "1 gold 2 -", "2 basic 3 -", "2 gold 1 2", "3 basic 1 -", "4 basic 3 -"];
    assert_eq!(scd2_of(&events, "k tier"), expected);
    events.extend(tiers(4, &[]));
    assert!(scd1(&["k"], &events).is_empty());
}

#[test]
fn table_2_7_hybrid() {
    let t = |key, seq, tier: &str| event(key, seq, Op::Upsert, &[("tier", tier.into())]);
    let mut events = vec![
        t("c1", 90, "basic"),
        t("c2", 120, "gold"),
        t("c3", 95, "basic"),
        t("c4", 110, "basic"),
        delete("c5", 130),
        t("c6", 80, "gold"),
        t("c6", 140, "gold"),
        delete("c7", 99),
        t("c8", 95, "basic"),
    ];
    events.extend(tiers(100, &[("c1", "gold"), ("c2", "basic"), ("c5", "basic")]));
    assert_eq!(scd1_of(&events, "k tier"), ["c1 gold", "c2 gold", "c4 basic", "c6 gold"]);
    // At the version itself CDC wins, upsert and delete alike.
    events.extend([t("c1", 100, "basic"), delete("c2", 100)]);
    assert_eq!(scd1_of(&events, "k tier"), ["c1 basic", "c2 gold", "c4 basic", "c6 gold"]);
}

/// An upsert that authors `sets` only.
fn person(seq: i64, name: Option<&str>, age: Option<i64>, sets: &str) -> Event {
    let authored = Some(sets.split(' ').filter(|set| !set.is_empty()).map(str::to_owned).collect());
    Event { authored, ..event("1", seq, Op::Upsert, &[("name", name.into()), ("age", age.into())]) }
}

#[test]
fn table_2_8_partial_updates_scd1() {
    let first = || person(1, Some("A"), Some(20), "name age");
    let after = |events: &[Event]| scd1_of(&[&[first()], events].concat(), "name age");
    assert_eq!(after(&[person(3, None, Some(30), "name age")]), ["- 30"]);
    assert_eq!(after(&[person(3, None, Some(30), "age")]), ["A 30"]);
    assert_eq!(after(&[person(2, None, None, "age")]), ["A -"]);
    assert_eq!(after(&[person(2, Some("zzz"), None, "age")]), ["A -"]);
    assert_eq!(
        after(&[person(3, None, Some(30), "age"), person(2, Some("B"), Some(25), "name age")]),
        ["B 30"]
    );
    assert_eq!(after(&[delete("1", 4), person(5, None, Some(9), "age")]), ["- 9"]);
    assert_eq!(scd1_of(&[person(1, None, Some(5), "age")], "name age"), ["- 5"]);
}

#[test]
fn table_2_9_partial_updates_scd2() {
    let both = || vec![person(1, Some("A"), Some(20), "name age"), person(3, None, Some(30), "age")];
    let after = |events: &[Event]| scd2_of(&[&both(), events].concat(), "name age");
    assert_eq!(after(&[]), ["A 20 1 3", "A 30 3 -"]);
    assert_eq!(after(&[person(2, Some("B"), Some(25), "name age")]), ["A 20 1 2", "B 25 2 3", "B 30 3 -"]);
    assert_eq!(after(&[person(2, Some("B"), None, "name")]), ["A 20 1 2", "B 20 2 3", "B 30 3 -"]);
    assert_eq!(
        after(&[delete("1", 4), person(5, None, Some(9), "age")]),
        ["- 9 5 -", "A 20 1 3", "A 30 3 4"]
    );
    assert_eq!(after(&[delete("1", 2)]), ["- 30 3 -", "A 20 1 2"]);
    // An update that sets nothing opens no version (C-50).
    assert_eq!(after(&[person(4, None, None, "")]), ["A 20 1 3", "A 30 3 -"]);
}

#[test]
fn ties_of_partial_updates_merge_leaf_by_leaf() {
    let events = [
        person(1, Some("A"), None, "name"),
        person(1, Some("B"), None, "name"),
        person(1, None, Some(7), "age"),
    ];
    assert_eq!(scd1_of(&events, "name age"), ["B 7"]);
    let with_delete = [&[person(0, Some("Z"), Some(1), "name age"), delete("1", 1)], &events[2..]].concat();
    assert_eq!(scd2_of(&with_delete, "name age"), ["- 7 1 -", "Z 1 0 1"]);
}

/// An upsert that authors the whole row.
fn whole(seq: i64, name: Option<&str>, age: Option<i64>) -> Event {
    Event { authored: None, ..person(seq, name, age, "") }
}

#[test]
fn whole_rows_are_settled_before_parts_are_merged() {
    // The columns in the order of their names are `age`, `name`: of the whole rows (9, A) wins.
    let (older, larger) = (whole(1, Some("Z"), Some(1)), whole(1, Some("A"), Some(9)));
    let age = person(1, None, Some(5), "age");
    let name = person(1, Some("M"), None, "name");
    let expect = |events: &[&Event], row: &str| {
        for arrival in crate::generate::every_arrival(events) {
            let events: Vec<Event> = arrival.concat().into_iter().cloned().collect();
            assert_eq!(scd1_of(&events, "name age"), [row]);
        }
    };
    expect(&[&older, &larger], "A 9");
    expect(&[&older, &larger, &age], "A 9");
    expect(&[&older, &larger, &name], "M 9");
    expect(&[&older, &age], "Z 5");
    // Listing every column is authoring parts: such rows merge leaf by leaf.
    let listed =
        |event: &Event| Event { authored: person(1, None, None, "name age").authored, ..event.clone() };
    expect(&[&listed(&older), &listed(&larger)], "Z 9");
    expect(&[&listed(&older), &larger], "Z 9");
}

#[test]
fn a_whole_row_inherits_nothing_whatever_it_ties_with() {
    let events =
        [person(1, Some("A"), Some(20), "name age"), whole(2, None, None), person(2, None, Some(3), "age")];
    assert_eq!(scd1_of(&events, "name age"), ["- 3"]);
}

#[test]
fn nested_structs_resolve_per_leaf() {
    let at = |seq, city: Option<&str>, zip: Option<i64>, sets: &str| Event {
        authored: Some(sets.split(' ').map(str::to_owned).collect()),
        ..event("1", seq, Op::Upsert, &[("at", Value::fields([("city", city.into()), ("zip", zip.into())]))])
    };
    let events = [
        at(1, Some("Oslo"), Some(1), "at"),
        at(3, None, Some(2), "at.zip"),
        at(2, Some("Rome"), None, "at.city"),
    ];
    assert_eq!(scd1_of(&events, "at"), ["Rome.2"]);
    assert_eq!(scd1_of(&events[1..2], "at"), ["-.2"]);
}

#[test]
fn a_struct_that_a_later_correction_sets_to_null_is_null() {
    let known = |sys: i64, at: Value, sets: &str| Event {
        sys: Some(sys.into()),
        authored: Some(sets.split(' ').map(str::to_owned).collect()),
        ..event("k", 1, Op::Upsert, &[("at", at), ("n", Value::Null)])
    };
    let oslo = Value::fields([("city", Value::text("Oslo")), ("zip", 1.into())]);
    let zip = Value::fields([("city", Value::Null), ("zip", 2.into())]);
    let mut events = vec![known(1, oslo, "at"), known(2, Value::Null, "at")];
    let rows = |events: &[Event]| table(&bitemporal(&["k"], events), "at __SYSTEM_START_AT __SYSTEM_END_AT");
    assert_eq!(rows(&events), ["- 2 -", "Oslo.1 1 2"]);
    events.push(known(3, zip, "at.zip"));
    assert_eq!(rows(&events), ["- 2 3", "-.2 3 -", "Oslo.1 1 2"]);
}

fn fact(v: &str, seq: &str, sys: &str) -> Event {
    Event { sys: Some(sys.into()), ..event("k", seq, Op::Upsert, &[("v", v.into())]) }
}

fn bitemporal_of(events: &[Event]) -> Vec<String> {
    table(&bitemporal(&["k"], events), "v __START_AT __END_AT __SYSTEM_START_AT __SYSTEM_END_AT")
}

#[test]
fn table_2_10_correction() {
    let mut events = vec![fact("Y", "01-01", "01-05"), fact("N", "01-01", "01-08")];
    assert_eq!(bitemporal_of(&events), ["N 01-01 - 01-08 -", "Y 01-01 - 01-05 01-08"]);
    events.push(fact("Y0", "00-01", "00-01"));
    let expected =
        ["N 01-01 - 01-08 -", "Y 01-01 - 01-05 01-08", "Y0 00-01 - 00-01 01-05", "Y0 00-01 01-01 01-05 -"];
    assert_eq!(bitemporal_of(&events), expected);
    let earlier = [fact("Y", "01-04", "01-05"), fact("N", "01-01", "01-08")];
    assert_eq!(bitemporal_of(&earlier), ["N 01-01 01-04 01-08 -", "Y 01-04 - 01-05 -"]);
}

#[test]
fn table_2_10_out_of_order_on_both_axes() {
    let mut events = vec![
        fact("X1", "12:00", "12:01"),
        fact("X2", "12:20", "12:21"),
        fact("X3", "12:10", "12:24"),
        Event { op: Op::Delete, ..fact("", "12:30", "12:31") },
    ];
    let expected = [
        "X1 12:00 - 12:01 12:21",
        "X1 12:00 12:10 12:24 -",
        "X1 12:00 12:20 12:21 12:24",
        "X2 12:20 - 12:21 12:31",
        "X2 12:20 12:30 12:31 -",
        "X3 12:10 12:20 12:24 -",
    ];
    assert_eq!(bitemporal_of(&events), expected);
    events.push(fact("X9", "12:02", "12:05"));
    let expected = [
        "X1 12:00 - 12:01 12:05",
        "X1 12:00 12:02 12:05 -",
        "X2 12:20 - 12:21 12:31",
        "X2 12:20 12:30 12:31 -",
        "X3 12:10 12:20 12:24 -",
        "X9 12:02 - 12:05 12:21",
        "X9 12:02 12:10 12:24 -",
        "X9 12:02 12:20 12:21 12:24",
    ];
    assert_eq!(bitemporal_of(&events), expected);
}

#[test]
fn a_retract_takes_the_event_out_of_later_beliefs() {
    let mut events =
        vec![fact("A", "01", "01"), fact("B", "02", "02"), Event { op: Op::Retract, ..fact("", "02", "03") }];
    assert_eq!(bitemporal_of(&events), ["A 01 - 01 02", "A 01 - 03 -", "A 01 02 02 03", "B 02 - 02 03"]);
    events.push(fact("C", "02", "04"));
    assert!(bitemporal_of(&events).contains(&"C 02 - 04 -".to_owned()));
}

#[test]
fn values_have_a_total_order() {
    let ascending = [
        Value::Null,
        Value::Float(-1.0),
        Value::Float(-0.0),
        Value::Float(0.0),
        Value::Float(f64::INFINITY),
        Value::Float(-f64::NAN),
    ];
    assert!(ascending.is_sorted_by(|left, right| left < right));
    assert_eq!(Value::Float(f64::NAN), Value::Float(-f64::NAN));
    let map = |entries: &[(i64, i64)]| {
        Value::Map(entries.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect())
    };
    assert_eq!(map(&[(1, 2), (3, 4)]), map(&[(3, 4), (1, 2)]));
    assert!(map(&[(3, 9), (1, 2)]) < map(&[(2, 0)]));
}
