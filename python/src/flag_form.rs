//! Keyword arguments that a function takes as texts: `metric=["rate", "p99"]`, `min_effect="3%"`, `force=True`.

use std::collections::BTreeMap;
use std::fmt;

use pyo3::prelude::*;
use weir::base::nearest::nearest;

use crate::errors;

/// Keyword arguments by name, with their texts; one without a value has none. Each is removed when it is read.
pub(crate) struct FlagForm {
    given: BTreeMap<String, Vec<String>>,
    /// Names that were read, whether they were given or not.
    known: Vec<String>,
}

impl FlagForm {
    /// Arguments that were given.
    pub(crate) fn new(given: BTreeMap<String, Vec<String>>) -> Self {
        Self { given, known: Vec::new() }
    }

    fn take(&mut self, name: &str) -> Option<Vec<String>> {
        self.known.push(name.to_owned());
        self.given.remove(name)
    }

    /// Values of an argument, each read by a notation.
    pub(crate) fn many<T, E: fmt::Display>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> PyResult<Vec<T>> {
        let Some(texts) = self.take(name) else { return Ok(Vec::new()) };
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

    /// Puts the value of an argument, if it is given, in the place of its default.
    pub(crate) fn set<T, E: fmt::Display>(
        &mut self,
        name: &str,
        place: &mut T,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> PyResult<()> {
        if let Some(value) = self.one(name, read)? {
            *place = value;
        }
        Ok(())
    }

    /// Puts the values of an argument, if any is given, in the place of its defaults.
    pub(crate) fn set_all<T, E: fmt::Display>(
        &mut self,
        name: &str,
        place: &mut Vec<T>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> PyResult<()> {
        let values = self.many(name, read)?;
        if !values.is_empty() {
            *place = values;
        }
        Ok(())
    }

    /// Whether an argument without a value is given.
    pub(crate) fn switch(&mut self, name: &str) -> PyResult<bool> {
        match self.take(name).as_deref() {
            None => Ok(false),
            Some([]) => Ok(true),
            Some([text, ..]) => {
                Err(errors::usage(&format!("unexpected value '{text}' for '{name}'; write True or False")))
            }
        }
    }

    /// Checks that every argument was read.
    pub(crate) fn end(self) -> PyResult<()> {
        let Some(name) = self.given.keys().next() else { return Ok(()) };
        let meant = nearest(name, self.known.iter().map(String::as_str));
        let hint = meant.map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"));
        Err(errors::usage(&format!("unexpected argument '{name}'{hint}")))
    }
}
