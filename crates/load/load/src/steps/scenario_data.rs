//! Data of scenarios, parsed once for all users.

use std::sync::Arc;

use weir_scenario::data::{DataRows, RowOrder};
use weir_scenario::evaluate::{VariableSlot, VariableTable};

use super::DataSource;
use crate::plan::PlanError;

/// Data of a scenario: its rows are stored once for all users and threads.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioData {
    /// Name of the file.
    pub(crate) name: String,
    /// Index of the file among those of the load: scenarios with the same one share its rows, and deal them together.
    pub(super) file: usize,
    rows: Arc<DataRows>,
    order: RowOrder,
}

/// Files of data that were parsed: scenarios that name the same one share its rows.
#[derive(Debug, Default)]
pub(super) struct ParsedData<'o>(Vec<(&'o DataSource, Arc<DataRows>)>);

impl<'o> ParsedData<'o> {
    /// Data of a source.
    pub(super) fn parse(&mut self, source: &'o DataSource) -> Result<ScenarioData, PlanError> {
        let file = match self.0.iter().position(|(other, _)| *other == source) {
            Some(file) => file,
            None => {
                // Another order of the same rows.
                let same = |other: &DataSource| other.name == source.name && other.content == source.content;
                let rows = match self.0.iter().find(|(other, _)| same(other)) {
                    Some((_, rows)) => Arc::clone(rows),
                    None => {
                        let rows = DataRows::parse(&source.name, &source.content);
                        Arc::new(rows.map_err(|error| PlanError::Scenario(error.to_string()))?)
                    }
                };
                self.0.push((source, rows));
                self.0.len() - 1
            }
        };
        let rows = self.0.get(file).map(|(_, rows)| Arc::clone(rows)).unwrap_or_default();
        Ok(ScenarioData { name: source.name.clone(), file, rows, order: source.order })
    }
}

impl ScenarioData {
    /// Names of the columns.
    pub(super) fn columns(&self) -> &[String] {
        self.rows.columns()
    }

    /// Number of iterations with these data that have a row; `None`: all.
    pub(super) fn iterations(&self) -> Option<u64> {
        (self.order == RowOrder::Unique).then(|| self.rows.len() as u64)
    }

    /// Checks that each of `users` users has a row where users keep theirs; `users` is `None` in the open loop.
    pub(super) fn check_users(&self, users: Option<u64>) -> Result<(), PlanError> {
        if self.order != RowOrder::Once {
            return Ok(());
        }
        let Some(users) = users else {
            return Err(PlanError::Conflict(
                "--data-order once is for a closed loop (--users, -c): an open loop has no fixed users; choose \
                 circular, unique or random",
            ));
        };
        let rows = self.rows.len() as u64;
        if rows < users {
            let why = format!(
                "{} has {rows} row{} for {users} users, and once needs one for each; add rows, or choose circular",
                self.name,
                if rows == 1 { "" } else { "s" }
            );
            return Err(PlanError::Value("data-order", why));
        }
        Ok(())
    }

    /// Sets the variables of an iteration to its row. `ordinal` is its number among the iterations with these data, and
    /// `user` that of its user, both in the whole load.
    pub(super) fn assign(
        &self,
        ordinal: u64,
        user: u64,
        seed: u64,
        columns: &[VariableSlot],
        variables: &mut VariableTable,
    ) {
        let Some(row) = self.order.row(ordinal, user, seed, self.rows.len() as u64) else { return };
        let row = usize::try_from(row).unwrap_or(usize::MAX);
        columns.iter().zip(self.rows.row(row)).for_each(|(slot, value)| variables.set(*slot, value));
    }
}
