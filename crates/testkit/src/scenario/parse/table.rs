//! What do the lines between bars say?

use std::collections::BTreeMap;

use super::words::header_cell;
use super::{Batching, Parser};
use crate::scenario::cell::parse_column_cell;
use crate::scenario::{Batch, BatchKind, ColumnType, SEQUENCE_AT, Step, Table, Type};

impl Parser {
    /// A line of cells: the header, a row, or as many rows as the `for` before it says.
    pub(super) fn rows(&mut self, cells: &[String]) -> Result<(), String> {
        if std::mem::take(&mut self.headless) {
            return self.begin_table(cells);
        }
        let Some(repetition) = self.repeated.take() else { return self.row(cells) };
        for number in repetition.numbers() {
            let cell = |(at, text): (usize, &String)| match self.header.get(at) {
                Some((Type::Int, None)) => repetition.cell(text, number),
                _ => text.clone(),
            };
            let cells: Vec<String> = cells.iter().enumerate().map(cell).collect();
            self.row(&cells)?;
        }
        Ok(())
    }

    fn row(&mut self, cells: &[String]) -> Result<(), String> {
        self.next_of_batches();
        let table = match self.scenario.steps.last_mut() {
            Some(Step::Deliver(batch)) if !self.header.is_empty() => &mut batch.table,
            Some(Step::ExpectTarget(table)) if !self.header.is_empty() => table,
            _ => return Err("this row belongs to no table".to_owned()),
        };
        if cells.len() != self.header.len() {
            return Err(format!("{} cells under a header of {}", cells.len(), self.header.len()));
        }
        let cell = |((text, (kind, physical)), name): ((&String, &ColumnType), &String)| {
            parse_column_cell(text, kind, *physical).map_err(|message| format!("column `{name}`: {message}"))
        };
        let row = cells.iter().zip(&self.header).zip(&table.columns).map(cell).collect::<Result<_, _>>()?;
        table.rows.push(row);
        Ok(())
    }

    /// The batch of the next row, where each row has its own.
    fn next_of_batches(&mut self) {
        let next = match self.scenario.steps.last() {
            Some(Step::Deliver(last))
                if self.batching == Batching::RowByRow && !last.table.rows.is_empty() =>
            {
                let table = Table { columns: last.table.columns.clone(), rows: vec![] };
                Batch { number: last.number + 1, table, crash: false, ..last.clone() }
            }
            _ => return,
        };
        self.batches = next.number;
        self.scenario.steps.push(Step::Deliver(next));
    }

    fn begin_table(&mut self, cells: &[String]) -> Result<(), String> {
        let cells: Vec<_> = cells.iter().map(|cell| header_cell(cell)).collect::<Result<_, _>>()?;
        let columns: Vec<String> = cells.iter().map(|(name, _)| name.clone()).collect();
        let declared: Vec<String> =
            columns.iter().map(|column| self.scenario.declared(column).to_owned()).collect();
        if let Some(twice) = declared.iter().enumerate().find(|(at, name)| declared[..*at].contains(name)) {
            return Err(format!("column `{}` stands twice in the header", twice.1));
        }
        let (known, required) = self.expected_columns(&declared);
        if let Some(missing) = required.iter().find(|name| !declared.contains(name)) {
            return Err(format!("the header lacks column `{missing}`"));
        }
        let mut other_types = BTreeMap::new();
        self.header.clear();
        for (name, (_, other)) in declared.into_iter().zip(cells) {
            let Some((_, kind)) = known.iter().find(|(known, _)| *known == name) else {
                return Err(format!("unknown column `{name}`"));
            };
            let usual = (kind.clone(), self.scenario.physical_of(&name));
            other_types.extend(other.clone().filter(|other| *other != usual).map(|other| (name, other)));
            self.header.push(other.unwrap_or(usual));
        }
        match self.scenario.steps.last_mut() {
            Some(Step::Deliver(batch)) => {
                batch.table.columns = columns;
                batch.types = other_types;
            }
            Some(Step::ExpectTarget(table)) if other_types.is_empty() => table.columns = columns,
            _ => return Err("a target has the types of the scenario".to_owned()),
        }
        Ok(())
    }

    /// The columns that the table of the last step may have, and those that it must have.
    fn expected_columns(&mut self, columns: &[String]) -> (Vec<(String, Type)>, Vec<String>) {
        if let Some(Step::Deliver(batch)) = self.scenario.steps.last() {
            self.carried.extend(columns.iter().cloned());
            // That a batch lacks a key is for the subject to find.
            let sequences = self.scenario.sequence.iter().chain(&self.scenario.system_sequence);
            let changes = batch.kind == BatchKind::Changes;
            let required = sequences.filter(|_| changes).cloned().collect();
            return (self.scenario.types.clone(), required);
        }
        let known = self.scenario.target_columns();
        let carried = |name: &String| self.carried.contains(name) || name.starts_with("__");
        let required = known.iter().map(|(name, _)| name.clone()).filter(carried);
        let required = required.filter(|name| name != SEQUENCE_AT).collect();
        (known, required)
    }
}
