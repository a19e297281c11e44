//! What does a scenario give by definition?

use std::collections::BTreeSet;

use super::{Batch, BatchKind, Scenario, Selection, StoredAs, Subject};
use crate::reference::{self, Event, Row, Value};

/// The reference model as a [`Subject`]: it remembers all events and recomputes the target when asked.
#[derive(Clone, Debug, Default)]
pub struct ReferenceSubject {
    scenario: Scenario,
    events: Vec<Event>,
    version: Option<Value>,
}

impl ReferenceSubject {
    /// A subject that has received nothing.
    pub fn new(scenario: &Scenario) -> Self {
        Self { scenario: scenario.clone(), ..Self::default() }
    }
}

impl Subject for ReferenceSubject {
    fn apply(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String> {
        scenario.check_definition()?;
        if scenario.keys != self.scenario.keys {
            return Err(format!(
                "AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT: the keys were {:?}",
                self.scenario.keys
            ));
        }
        scenario.check_types(batch)?;
        let events = scenario.events(batch)?;
        if let BatchKind::Snapshot(version) = &batch.kind {
            if self.version.as_ref().is_some_and(|last| last >= version) {
                return Err(format!(
                    "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.OUT_OF_ORDER_SNAPSHOT_VERSION: {version:?}"
                ));
            }
            self.version = Some(version.clone());
        }
        self.events.extend(events);
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn target(&mut self) -> Result<Vec<Row>, String> {
        let keys = &self.scenario.keys;
        Ok(match self.scenario.stored_as {
            StoredAs::Scd1 => reference::scd1(keys, &self.events),
            StoredAs::Scd2 => reference::scd2(keys, &self.events, tracked(&self.scenario).as_ref()),
            StoredAs::Bitemporal => reference::bitemporal(keys, &self.events),
        })
    }
}

fn tracked(scenario: &Scenario) -> Option<BTreeSet<String>> {
    let columns = scenario.kept().map(|(name, _)| name).filter(|name| scenario.track_history.contains(name));
    match scenario.track_history {
        Selection::All => None,
        Selection::Only(_) | Selection::Except(_) => Some(columns.cloned().collect()),
    }
}
