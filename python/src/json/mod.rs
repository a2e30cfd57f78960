//! JSON of bodies: what Python's `json` reads and writes, several times as fast.
//!
//! - [`reader`]: text -> objects, by jiter
//! - [`writer`]: objects -> text
//!
//! A script spends more time on JSON than on all else of a request. Both do what nearly all bodies need, and give up
//! (`None`) where it is not certain that Python's module would do the same: errors, lone surrogates, subclasses, long
//! numbers. The caller then asks that module, so that results and exceptions are always its own.

mod reader;
mod writer;

pub(crate) use self::reader::read;
pub(crate) use self::writer::write;

/// Nesting up to which the writer goes: it recurses, and Python has a limit of its own.
const MAX_DEPTH: usize = 100;
