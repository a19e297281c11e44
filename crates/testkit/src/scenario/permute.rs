//! In which other arrivals must a scenario end the same?
//!
//! Law 1 in the form of files: where a scenario says `permute yes`, its events may come in any order, in any batches and
//! twice, and the last `expect target` still holds. Snapshots stay whole and keep their order among themselves, since a
//! stale one is refused; they may come anywhere between the events.
//!
//! Invariant: an arrival holds every event and every snapshot of the scenario, and is a function of the seed.

use std::collections::BTreeMap;

use super::run::run;
use super::{Batch, BatchKind, ColumnType, Failure, Scenario, Step, Subject, Table};
use crate::random::Random;
use crate::reference::Value;

/// Runs the scenario in the arrival of the seed.
///
/// # Errors
/// The first step that fails. Its number counts the steps of [`permuted`].
pub fn run_permuted(scenario: &Scenario, seed: u64, subject: &mut dyn Subject) -> Result<(), Failure> {
    run(&permuted(scenario, seed), subject)
}

/// The scenario in the arrival of a seed, with its last expectation only. Seed 0 is everything in one batch, as far as
/// headers and snapshots allow. The others shuffle the events, cut them into batches, and deliver each batch twice, the
/// second time at any later moment.
pub fn permuted(scenario: &Scenario, seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let arrival = if seed == 0 { in_order(scenario) } else { shuffled(scenario, &mut random) };
    let cuts = [0, 30, 100][random.place(3)];
    let mut steps: Vec<Step> = Vec::new();
    let mut number = 0;
    for item in arrival {
        let next = match (item, steps.last_mut()) {
            (Item::Event(header, row), Some(Step::Deliver(batch)))
                if header.continues(batch) && (seed == 0 || !random.happens(cuts)) =>
            {
                batch.table.rows.push(row);
                continue;
            }
            (Item::Event(header, row), _) => Batch {
                number,
                kind: BatchKind::Changes,
                table: Table { columns: header.columns.clone(), rows: vec![row] },
                types: header.types.clone(),
                crash: false,
            },
            (Item::Snapshot(batch), _) => batch.clone(),
        };
        number += 1;
        steps.push(Step::Deliver(Batch { number, ..next }));
    }
    if seed != 0 {
        repeat(&mut steps, &mut random);
    }
    steps.extend(scenario.steps.last().cloned());
    Scenario { name: format!("{} in the arrival of seed {seed}", scenario.name), steps, ..scenario.clone() }
}

/// What arrives at once.
enum Item<'a> {
    Event(Header<'a>, Vec<Value>),
    Snapshot(&'a Batch),
}

/// Which columns an event has. Events of two headers cannot share a batch: an absent column is not a NULL.
#[derive(Clone, Copy)]
struct Header<'a> {
    columns: &'a Vec<String>,
    types: &'a BTreeMap<String, ColumnType>,
}

impl Header<'_> {
    fn continues(self, batch: &Batch) -> bool {
        batch.kind == BatchKind::Changes && *self.columns == batch.table.columns && *self.types == batch.types
    }
}

/// Events of one header next to each other, snapshots after them.
fn in_order(scenario: &Scenario) -> Vec<Item<'_>> {
    let (events, snapshots) = items(scenario);
    let mut events: Vec<_> = events.into_iter().collect();
    events.sort_by_key(|item| match item {
        Item::Event(header, _) => header.columns.clone(),
        Item::Snapshot(_) => vec![],
    });
    events.into_iter().chain(snapshots).collect()
}

fn shuffled<'a>(scenario: &'a Scenario, random: &mut Random) -> Vec<Item<'a>> {
    let (mut arrival, snapshots) = items(scenario);
    random.shuffle(&mut arrival);
    let mut from = 0;
    for snapshot in snapshots {
        let at = from + random.place(arrival.len() - from + 1);
        arrival.insert(at, snapshot);
        from = at + 1;
    }
    arrival
}

fn items(scenario: &Scenario) -> (Vec<Item<'_>>, Vec<Item<'_>>) {
    let (mut events, mut snapshots) = (Vec::new(), Vec::new());
    for batch in scenario.batches() {
        match batch.kind {
            BatchKind::Snapshot(_) => snapshots.push(Item::Snapshot(batch)),
            BatchKind::Changes => {
                let header = Header { columns: &batch.table.columns, types: &batch.types };
                events.extend(batch.table.rows.iter().map(|row| Item::Event(header, row.clone())));
            }
        }
    }
    (events, snapshots)
}

/// Delivers each batch of changes once more, and restarts now and then.
fn repeat(steps: &mut Vec<Step>, random: &mut Random) {
    let changes = |step: &Step| {
        if let Step::Deliver(batch) = step {
            (batch.kind == BatchKind::Changes).then_some(batch.number)
        } else {
            None
        }
    };
    for number in steps.iter().filter_map(changes).collect::<Vec<_>>() {
        let delivered = steps.iter().position(|step| changes(step) == Some(number)).unwrap_or_default();
        let at = delivered + 1 + random.place(steps.len() - delivered);
        steps.insert(at, Step::Replay(vec![number]));
        if random.happens(20) {
            steps.insert(at, Step::Restart);
        }
    }
}

#[cfg(test)]
mod tests;
