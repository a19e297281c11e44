use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use strandline_pipeline_sql::SqlExpr;

use super::*;

fn rows() -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(-1), None, Some(5)]));
    let name: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("b"), Some("c"), None]));
    RecordBatch::try_from_iter_with_nullable([("n", n, true), ("name", name, true)]).unwrap()
}

fn rule(name: &str, condition: &str, on_violation: OnViolation) -> Expectation {
    Expectation { name: name.to_owned(), condition: SqlExpr::parse(condition).unwrap(), on_violation }
}

fn understood(rules: &[Expectation]) -> Result<Expectations> {
    Expectations::new("t", rules, &rows().schema())
}

#[test]
fn r16_a11_only_true_passes_and_each_constraint_counts_for_itself() {
    let rules = [
        rule("kept", "name IS NOT NULL", OnViolation::Keep),
        rule("dropped", "n > 0", OnViolation::DropRow),
        rule("never", "NULL", OnViolation::Keep),
    ];
    let verdict = understood(&rules).unwrap().judge(&rows(), None).unwrap();
    assert_eq!(verdict.keep, BooleanArray::from(vec![true, false, false, true]));
    let counts: Vec<_> =
        verdict.quality.expectations.iter().map(|c| (c.passed_records, c.failed_records)).collect();
    assert_eq!(counts, [(3, 1), (2, 2), (0, 4)]);
    assert_eq!(verdict.quality.dropped_records, 2);
}

#[test]
fn r16_fail_names_constraint_and_row() {
    let rules = [rule("positive", "n > 0", OnViolation::FailUpdate)];
    let error = understood(&rules).unwrap().judge(&rows(), None).unwrap_err();
    let text = error.full_text();
    for part in ["EXPECTATION_VIOLATION", "positive", "n > 0", "2 of 4", "n=-1, name=b"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn g28_what_is_no_condition_over_one_row_is_refused_by_name() {
    for (condition, part) in [
        ("n + 1", "no condition"),
        ("missing > 0", "n, name"),
        ("random() > 0.5", "random"),
        ("n > 0 AND now() > TIMESTAMP '2020-01-01 00:00:00'", "now()"),
    ] {
        let error = understood(&[rule("odd", condition, OnViolation::Keep)]).unwrap_err();
        let text = format!("{} {}", error.full_text(), error.help_text().unwrap_or_default());
        assert!(text.contains("`odd`") && text.contains(part), "{condition}: {text}");
    }
}

#[test]
fn fields_of_structs_are_looked_at_alone() {
    use arrow_schema::{Field, Schema};
    let address = DataType::Struct(vec![Field::new("city", DataType::Utf8, true)].into());
    let columns = Arc::new(Schema::new(vec![
        Field::new("address", address, true),
        Field::new("n", DataType::Int64, true),
    ]));
    let rules = [rule("r", "address.city IS NOT NULL OR n > 0", OnViolation::Keep)];
    let expectations = Expectations::new("t", &rules, &columns).unwrap();
    let paths = &expectations.rules[0].paths;
    assert_eq!(paths, &[vec!["address".to_owned(), "city".to_owned()], vec!["n".to_owned()]]);
}
