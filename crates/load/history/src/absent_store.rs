//! The store of a build without SQLite: there is none.

use std::path::Path;

use super::error::HistoryError;
use super::reference::RunReference;
use super::run_filter::RunFilter;
use super::stored_run::{RunNote, StoredRun};
use weir_measure::Run;

/// Store of saved runs: there is none.
#[derive(Debug)]
pub enum AbsentStore {}

impl AbsentStore {
    /// Never a store.
    ///
    /// # Errors
    /// This build has no SQLite.
    pub fn create(_: &Path) -> Result<Self, HistoryError> {
        Err(HistoryError::Absent)
    }

    /// Never a store.
    ///
    /// # Errors
    /// This build has no SQLite.
    pub fn open(_: &Path) -> Result<Self, HistoryError> {
        Err(HistoryError::Absent)
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn save(&mut self, _: &Run, _: &RunNote, _: &[(String, f64)]) -> Result<i64, HistoryError> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn runs(&self, _: &RunFilter) -> Result<Vec<StoredRun>, HistoryError> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn count(&self) -> Result<u64, HistoryError> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn run(&self, _: RunReference) -> Result<(i64, Run), HistoryError> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn keep(&mut self, _: u64) -> Result<usize, HistoryError> {
        match *self {}
    }
}
