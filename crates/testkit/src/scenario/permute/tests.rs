//! An arrival holds everything, and catches whoever looks at the order.

use std::collections::BTreeSet;

use super::*;
use crate::reference::Row;
use crate::scenario::{ReferenceSubject, parse, print};

const HYBRID: &str = "
title all that can arrive
stored as scd1
types id text, seq int, a int, b int
keys id
sequence by seq
columns except seq
permute yes

batch
| id | seq | a |
| k1 | 1   | 1 |
| k1 | 4   | 4 |

snapshot 2
| id | a |
| k1 | 2 |
| k2 | 2 |

batch
| id | seq | b |
| k2 | 3   | 3 |
| k2 | 1   | 1 |

snapshot 5
| id | a | b |
| k2 | 5 | 5 |

expect target
| id | a | b |
| k2 | 5 | 5 |
";

/// Every event and snapshot, as it stands in a batch, and the order of the snapshots.
fn content(scenario: &Scenario) -> (BTreeSet<String>, Vec<String>) {
    let (mut rows, mut snapshots) = (BTreeSet::new(), Vec::new());
    for batch in scenario.batches() {
        rows.extend(batch.table.rows.iter().map(|row| format!("{:?} {row:?}", batch.table.columns)));
        if let BatchKind::Snapshot(version) = &batch.kind {
            snapshots.push(format!("{version:?} {:?}", batch.table));
        }
    }
    (rows, snapshots)
}

#[test]
fn every_arrival_holds_everything_and_is_a_scenario_again() {
    let scenario = parse(HYBRID).unwrap();
    let mut arrivals = BTreeSet::new();
    for seed in 0..200 {
        let arrival = permuted(&scenario, seed);
        assert_eq!(content(&arrival), content(&scenario));
        assert_eq!(permuted(&scenario, seed), arrival);
        let text = print(&arrival);
        assert_eq!(parse(&text).map(|again| Scenario { name: arrival.name.clone(), ..again }), Ok(arrival));
        arrivals.insert(text);
        run_permuted(&scenario, seed, &mut ReferenceSubject::new(&scenario)).unwrap();
    }
    assert!(arrivals.len() > 150, "{} different arrivals", arrivals.len());
}

/// Keeps whatever came last.
#[derive(Default)]
struct LastCome(Vec<Row>);

impl Subject for LastCome {
    fn apply(&mut self, _: &Scenario, batch: &Batch) -> Result<(), String> {
        for row in &batch.table.rows {
            let mut row: Row = batch.table.columns.iter().cloned().zip(row.iter().cloned()).collect();
            row.remove("seq");
            self.0.retain(|known| known["id"] != row["id"]);
            self.0.push(row);
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn target(&mut self) -> Result<Vec<Row>, String> {
        Ok(self.0.clone())
    }
}

#[test]
fn whoever_looks_at_the_order_of_arrival_is_caught() {
    let text = "
title the later one wins
stored as scd1
types id text, seq int, a int
keys id
sequence by seq
columns except seq
permute yes

batch
| id | seq | a |
| k1 | 1   | 1 |
| k1 | 2   | 2 |

expect target
| id | a |
| k1 | 2 |
";
    let scenario = parse(text).unwrap();
    run(&scenario, &mut LastCome::default()).unwrap();
    let caught = (1..20).filter(|seed| run_permuted(&scenario, *seed, &mut LastCome::default()).is_err());
    assert!(caught.count() > 5);
}
