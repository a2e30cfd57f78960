//! Coding of bodies that are written as text.

use std::fmt::Debug;

/// Coding of bodies: a step has its body as text, and it is sent in another form.
pub trait BodyCodec: Debug + Send + Sync {
    /// Body as it is sent.
    ///
    /// # Errors
    /// One line: what is wrong with the text.
    fn encode(&self, body: &[u8]) -> Result<Vec<u8>, String>;
}
