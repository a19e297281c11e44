//! The flows that a scenario's options are, in SQL.

use strandline_testkit::{
    reference::Value,
    scenario::{BatchKind, ColumnType, Condition, Scenario, Selection, StoredAs, Type},
};

use super::cells::sql_type;

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Int(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        other => panic!("{other:?} is not met in a condition"),
    }
}

/// A clause that names columns; only those that the source has can be named.
fn clause(name: &str, selection: &Selection, has: &dyn Fn(&String) -> bool) -> String {
    let known: Vec<String> = selection.names().iter().filter(|name| has(name)).cloned().collect();
    match selection {
        Selection::All => String::new(),
        Selection::Only(_) => format!("{name} ({})", quoted(&known)),
        Selection::Except(_) if known.is_empty() => String::new(),
        Selection::Except(_) => format!("{name} * EXCEPT ({})", quoted(&known)),
    }
}

fn sequence(columns: &[String], greatest: bool) -> String {
    match columns {
        [one] => format!("`{one}`"),
        several if greatest => format!("greatest({})", quoted(several)),
        several => {
            let parts: Vec<String> = several.iter().map(|name| format!("'{name}', `{name}`")).collect();
            format!("named_struct({})", parts.join(", "))
        }
    }
}

/// What every pipeline begins with.
pub(super) const HEAD: &str = "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t;";

/// The column that says to which snapshot a row belongs.
pub(super) const VERSION: &str = "snapshot_version";

/// The type of snapshot versions: that of the sequence, or what they look like.
pub(super) fn version_type(scenario: &Scenario) -> ColumnType {
    if let [sequence] = scenario.sequence.as_slice() {
        let name = scenario.declared(sequence);
        if let Some(kind) = scenario.type_of(name) {
            return (kind.clone(), scenario.physical_of(name));
        }
    }
    let is_text = scenario.batches().any(
        |batch| matches!(&batch.kind, BatchKind::Snapshot(version) if matches!(version, Value::Text(_))),
    );
    (if is_text { Type::Text } else { Type::Int }, None)
}

fn files(path: &str, columns: &[(String, ColumnType)]) -> String {
    let schema: Vec<String> =
        columns.iter().map(|(name, kind)| format!("`{name}` {}", sql_type(kind))).collect();
    let schema = schema.join(", ").replace('\'', "''");
    format!("read_files('{path}', format => 'parquet', schema => '{schema}')")
}

fn stored_as(scenario: &Scenario) -> String {
    let shape = match scenario.stored_as {
        StoredAs::Scd1 => "SCD TYPE 1",
        StoredAs::Scd2 => "SCD TYPE 2",
        StoredAs::Bitemporal => "BITEMPORAL",
    };
    format!("STORED AS {shape}")
}

/// The snapshot flow of a scenario whose exports have these columns. The versions on offer are in `offered`; a `stale` one
/// is taken for the next one all the same.
pub(super) fn snapshots(
    scenario: &Scenario,
    columns: &[(String, ColumnType)],
    offered: &str,
    stale: bool,
) -> String {
    let next = format!(
        "WHERE NOT EXISTS (SELECT 1 FROM last_snapshot_version()) OR {VERSION} > (SELECT {VERSION} FROM last_snapshot_version())
         ORDER BY {VERSION} LIMIT 1"
    );
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    let version = (VERSION.to_owned(), version_type(scenario));
    let export: Vec<_> = columns.iter().cloned().chain([version.clone()]).collect();
    let has = |name: &String| names.contains(name);
    format!(
        "CREATE FLOW s AS AUTO CDC INTO t
         FROM SNAPSHOT (SELECT {} FROM {} WHERE {VERSION} = (SELECT {VERSION} FROM current_snapshot_version()))
         WITH VERSION (
           SELECT {VERSION} FROM {} {})
         KEYS ({}) {} {};",
        quoted(&names),
        files("snap", &export),
        files(offered, &[version]),
        if stale { "" } else { &next },
        quoted(&scenario.keys),
        stored_as(scenario),
        clause("TRACK HISTORY ON", &scenario.track_history, &has),
    )
}

/// The change flow of a scenario whose source has these columns.
pub(super) fn changes(scenario: &Scenario, columns: &[(String, ColumnType)]) -> String {
    let has = |name: &String| columns.iter().any(|(column, _)| column == name);
    let when = |name: &str, condition: &Option<Condition>| match condition {
        Some(condition) if has(&condition.column) => {
            format!("{name} `{}` = {}", condition.column, literal(&condition.value))
        }
        _ => String::new(),
    };
    let system = if scenario.system_sequence.is_empty() {
        String::new()
    } else {
        format!("SYSTEM SEQUENCE BY {}", sequence(&scenario.system_sequence, false))
    };
    let ignored = match &scenario.ignore_null_updates {
        None => String::new(),
        Some(Selection::All) => "IGNORE NULL UPDATES".to_owned(),
        Some(selection) => clause("IGNORE NULL UPDATES ON", selection, &has),
    };
    let mask = match &scenario.columns_to_update {
        Some(mask) if has(mask) => format!("COLUMNS TO UPDATE `{mask}`"),
        _ => String::new(),
    };
    let clauses = [
        format!("KEYS ({})", quoted(&scenario.keys)),
        ignored,
        when("APPLY AS DELETE WHEN", &scenario.delete_when),
        when("APPLY AS TRUNCATE WHEN", &scenario.truncate_when),
        when("APPLY AS RETRACT WHEN", &scenario.retract_when),
        format!("SEQUENCE BY {}", sequence(&scenario.sequence, scenario.greatest)),
        system,
        clause("COLUMNS", &scenario.columns, &has),
        stored_as(scenario),
        clause("TRACK HISTORY ON", &scenario.track_history, &has),
        mask,
    ];
    format!("CREATE FLOW f AS AUTO CDC INTO t FROM STREAM {} {};", files("in", columns), clauses.join(" "))
}
