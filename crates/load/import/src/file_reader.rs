//! Files beside those that are imported, as far as their content decides what a request is.

use std::fmt;
use std::rc::Rc;

/// Reads a file by the name of the imported file and the name in it; `None` if it is not there.
pub type ReadFile = dyn Fn(&str, &str) -> Option<Vec<u8>>;

/// Access to the files that imported files name; none by default.
#[derive(Clone, Default)]
pub struct NamedFileReader(Option<Rc<ReadFile>>);

impl NamedFileReader {
    /// Largest file whose content becomes text of a scenario, in bytes.
    pub const MAX_BYTES: usize = 1 << 20;

    /// Reader by a function.
    pub fn new(read: impl Fn(&str, &str) -> Option<Vec<u8>> + 'static) -> Self {
        Self(Some(Rc::new(read)))
    }

    /// Content of a file, unless it is too large for a text.
    pub(crate) fn read(&self, file: &str, name: &str) -> Option<Vec<u8>> {
        self.0.as_ref().and_then(|read| read(file, name)).filter(|bytes| bytes.len() <= Self::MAX_BYTES)
    }
}

impl fmt::Debug for NamedFileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedFileReader").field(&self.0.is_some()).finish()
    }
}
