//! The pipeline that a scenario's options are, in SQL.

use strandline_testkit::{
    reference::Value,
    scenario::{ColumnType, Condition, Scenario, Selection, StoredAs},
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

/// The pipeline of a scenario whose source has these columns.
pub(super) fn pipeline(scenario: &Scenario, columns: &[(String, ColumnType)]) -> String {
    let has = |name: &String| columns.iter().any(|(column, _)| column == name);
    let schema: Vec<String> =
        columns.iter().map(|(name, kind)| format!("`{name}` {}", sql_type(kind))).collect();
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
    let stored_as = match scenario.stored_as {
        StoredAs::Scd1 => "SCD TYPE 1",
        StoredAs::Scd2 => "SCD TYPE 2",
        StoredAs::Bitemporal => "BITEMPORAL",
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
        format!("STORED AS {stored_as}"),
        clause("TRACK HISTORY ON", &scenario.track_history, &has),
        mask,
    ];
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t;
         CREATE FLOW f AS AUTO CDC INTO t
         FROM STREAM read_files('in/*.parquet', format => 'parquet', schema => '{}') {};",
        schema.join(", ").replace('\'', "''"),
        clauses.join(" "),
    )
}
