//! Keyword arguments that a function takes as texts: `metric=["rate", "p99"]`, `min_effect="3%"`, `force=True`.

use std::collections::BTreeMap;
use std::fmt;

use pyo3::prelude::*;

use crate::errors;

/// Keyword arguments by name, with their texts; one without a value has none. Each is removed when it is read.
pub(crate) struct FlagForm(pub(crate) BTreeMap<String, Vec<String>>);

impl FlagForm {
    /// Values of an argument, each read by a notation.
    pub(crate) fn many<T, E: fmt::Display>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> PyResult<Vec<T>> {
        let Some(texts) = self.0.remove(name) else { return Ok(Vec::new()) };
        if texts.is_empty() {
            return Err(errors::usage(&format!("a value is required for '{name}' but none was supplied")));
        }
        let value = |text: &String| {
            read(text).map_err(|why| errors::usage(&format!("invalid value '{text}' for '{name}': {why}")))
        };
        texts.iter().map(value).collect()
    }

    /// Value of an argument, read by a notation, if it is given.
    pub(crate) fn one<T, E: fmt::Display>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> PyResult<Option<T>> {
        let mut values = self.many(name, read)?;
        match values.len() {
            0 | 1 => Ok(values.pop()),
            _ => Err(errors::usage(&format!("the argument '{name}' cannot be used multiple times"))),
        }
    }

    /// Whether an argument without a value is given.
    pub(crate) fn switch(&mut self, name: &str) -> PyResult<bool> {
        match self.0.remove(name).as_deref() {
            None => Ok(false),
            Some([]) => Ok(true),
            Some([text, ..]) => {
                Err(errors::usage(&format!("unexpected value '{text}' for '{name}'; write True or False")))
            }
        }
    }

    /// Checks that every argument was read.
    pub(crate) fn end(self) -> PyResult<()> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(errors::usage(&format!("unexpected argument '{name}'"))),
        }
    }
}
