//! Values of an object, by their places.

use serde_json::{Map, Value};
use weir_base::Nanos;

use super::duration;

/// Reader of an object that names what is wrong by its place.
#[derive(Debug)]
pub(crate) struct OptionReader {
    values: Map<String, Value>,
    place: String,
}

/// Number of a value; texts of numbers, as those of `__ENV`, are numbers as well.
fn number_of(value: &Value) -> Option<f64> {
    let of_text = || value.as_str()?.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    value.as_f64().or_else(of_text)
}

impl OptionReader {
    /// Reader of an object at a place.
    ///
    /// # Errors
    /// One line, if the value is none.
    pub(crate) fn new(value: &Value, place: &str) -> Result<Self, String> {
        match value {
            Value::Object(values) => Ok(Self { values: values.clone(), place: place.to_owned() }),
            Value::Null => Ok(Self { values: Map::new(), place: place.to_owned() }),
            _ => Err(format!("{place} is not an object")),
        }
    }

    /// Takes a value; null is none.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.values.remove(name).filter(|value| !value.is_null())
    }

    fn invalid(&self, name: &str, value: &Value, wanted: &str) -> String {
        format!("invalid {}.{name} {value}; write {wanted}", self.place)
    }

    /// Takes a number.
    ///
    /// # Errors
    /// One line, if it is none.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<f64>, String> {
        let Some(value) = self.take(name) else { return Ok(None) };
        number_of(&value).map(Some).ok_or_else(|| self.invalid(name, &value, "a number"))
    }

    /// Takes a whole number from 0.
    ///
    /// # Errors
    /// One line, if it is none.
    pub(crate) fn count(&mut self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let whole = value
            .as_u64()
            .or_else(|| number_of(&value).filter(|it| it.fract() == 0.0 && *it >= 0.0).map(|it| it as u64));
        whole.map(Some).ok_or_else(|| self.invalid(name, &value, "a whole number from 0"))
    }

    /// Takes a flag; false without one.
    ///
    /// # Errors
    /// One line, if it is none.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, String> {
        let Some(value) = self.take(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| self.invalid(name, &value, "true or false"))
    }

    /// Takes a text.
    ///
    /// # Errors
    /// One line, if it is none.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_str().map(|text| Some(text.to_owned())).ok_or_else(|| self.invalid(name, &value, "a text"))
    }

    /// Takes a duration: a text, or milliseconds.
    ///
    /// # Errors
    /// One line, if it is none.
    pub(crate) fn duration(&mut self, name: &str) -> Result<Option<Nanos>, String> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let read = match &value {
            Value::String(text) => duration::parse(text),
            Value::Number(ms) => ms.as_f64().and_then(|ms| duration::of_nanos(ms * 1e6)),
            _ => None,
        };
        read.map(Some).ok_or_else(|| self.invalid(name, &value, "a time, e.g. '1m30s'"))
    }

    /// Takes a list of texts.
    ///
    /// # Errors
    /// One line, if it is none.
    pub(crate) fn list(&mut self, name: &str) -> Result<Option<Vec<String>>, String> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let texts = value.as_array().and_then(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect());
        texts.map(Some).ok_or_else(|| self.invalid(name, &value, "a list of texts"))
    }

    /// Takes an object of texts; numbers and flags are texts as well.
    ///
    /// # Errors
    /// One line, if it is none.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<(String, String)>, String> {
        let Some(value) = self.take(name) else { return Ok(Vec::new()) };
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        };
        let pairs = value.as_object().and_then(|all| {
            all.iter().map(|(name, value)| Some((name.clone(), text(value)?))).collect::<Option<Vec<_>>>()
        });
        pairs.ok_or_else(|| self.invalid(name, &value, "an object of texts"))
    }

    /// Place of the object.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Checks that all values were taken.
    ///
    /// # Errors
    /// One line that names the first one that is unknown.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.values.into_iter().find(|(_, value)| !value.is_null()) {
            Some((name, _)) => Err(format!("{} has no option '{name}'; leave it out", self.place)),
            None => Ok(()),
        }
    }
}
