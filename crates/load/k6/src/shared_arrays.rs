//! Arrays that all users share: the elements are kept once, as JSON.

use std::sync::{Arc, Mutex};

use weir_machine::lock::lock;

/// Elements of an array, as JSON.
type Elements = Arc<[Box<str>]>;

/// Arrays of a script, by their names.
#[derive(Debug, Default)]
pub(crate) struct SharedArrays(Mutex<Vec<(String, Elements)>>);

impl SharedArrays {
    /// Number and length of the array of this name.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, usize)> {
        let arrays = lock(&self.0);
        let number = arrays.iter().position(|(known, _)| known == name)?;
        Some((number, arrays[number].1.len()))
    }

    /// Adds an array; returns its number and length.
    pub(crate) fn add(&self, name: &str, elements: Vec<String>) -> (usize, usize) {
        let elements: Elements = elements.into_iter().map(String::into_boxed_str).collect();
        let mut arrays = lock(&self.0);
        let length = elements.len();
        arrays.push((name.to_owned(), elements));
        (arrays.len() - 1, length)
    }

    /// Element of an array as JSON.
    pub(crate) fn element(&self, array: usize, index: usize) -> Option<String> {
        let elements = Arc::clone(&lock(&self.0).get(array)?.1);
        elements.get(index).map(ToString::to_string)
    }
}
