//! Lists of columns to update, and leaves, where the scenario files leave a case out.

use super::holds;

/// Records of one key and one after the other, each with a list; then what the target must show.
fn listed(lists: &str, expected: &str) -> String {
    format!(
        "title Records with lists of columns to update
stored as scd1
types id int, seq int, a int, b int, cols list(text)
keys id
sequence by seq
columns except seq
columns to update cols

batch
| id | seq | a | b | cols |
| 1  | 1   | 1 | 1 | NULL |

batch
| id | seq | a | b | cols |
{lists}

{expected}
"
    )
}

const UNTOUCHED: &str = "expect error AUTOCDC_COLUMNS_TO_UPDATE_INVALID

expect target
| id | a | b |
| 1  | 1 | 1 |";

#[test]
fn c54_a_null_list_means_all_columns() {
    holds(&listed("| 1 | 2 | 5 | NULL | NULL |", "expect target\n| id | a | b |\n| 1 | 5 | NULL |"));
}

#[test]
fn c54_an_empty_list_touches_nothing_but_creates_the_row() {
    holds(&listed("| 1 | 2 | 5 | 5 | [] |", "expect target\n| id | a | b |\n| 1 | 1 | 1 |"));
    holds(&listed(
        "| 2 | 2 | 5 | 5 | [] |",
        "expect target\n| id | a | b |\n| 1 | 1 | 1 |\n| 2 | NULL | NULL |",
    ));
}

#[test]
fn c54_an_unknown_name_or_a_key_refuses_the_batch() {
    for list in ["[nope]", "[id]", "[a, id]", "[seq]", "[cols]", "[NULL]"] {
        let rows = format!("| 2 | 2 | 5 | 5 | [a] |\n| 1 | 2 | 5 | 5 | {list} |");
        holds(&listed(&rows, UNTOUCHED));
    }
}

#[test]
fn c54_a_name_may_be_listed_twice_and_a_first_event_leaves_the_rest_null() {
    holds(&listed("| 1 | 2 | 5 | 5 | [a, a] |", "expect target\n| id | a | b |\n| 1 | 5 | 1 |"));
    holds(&listed(
        "| 2 | 2 | 5 | 5 | [a] |",
        "expect target\n| id | a | b |\n| 1 | 1 | 1 |\n| 2 | 5 | NULL |",
    ));
}

#[test]
fn c51_a_map_is_one_leaf() {
    holds(
        "title A map is replaced as a whole, or kept as a whole
stored as scd2
types id int, seq int, m map(text, int), v int
keys id
sequence by seq
columns except seq
ignore null updates
permute yes

batch
| id | seq | m            | v    |
| 1  | 1   | {x: 1, y: 2} | 1    |
| 1  | 2   | {x: 5}       | NULL |
| 1  | 3   | NULL         | 2    |

expect target
| id | m            | v | __START_AT | __END_AT |
| 1  | {x: 1, y: 2} | 1 | 1          | 2        |
| 1  | {x: 5}       | 1 | 2          | 3        |
| 1  | {x: 5}       | 2 | 3          | NULL     |
",
    );
}

#[test]
fn c44_an_empty_except_list_means_all_columns() {
    for clause in ["ignore null updates", "ignore null updates except v"] {
        let v = if clause.ends_with('v') { "NULL" } else { "1" };
        holds(&format!(
            "title Which columns ignore NULL
stored as scd1
types id int, seq int, u int, v int
keys id
sequence by seq
columns except seq
{clause}
permute yes

batch
| id | seq | u    | v    |
| 1  | 1   | 1    | 1    |
| 1  | 2   | NULL | NULL |

expect target
| id | u | v |
| 1  | 1 | {v} |
"
        ));
    }
}
