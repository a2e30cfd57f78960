//! JavaScript engine of a user: an interpreter of its own on a stack of its own.
//!
//! - [`fiber`]: the stack, on which a script may wait in the middle of any function
//! - [`vm`]: the interpreter; [`interrupt`]: its end by time, and turns of other users
//! - [`module_files`]: names and sources of modules; [`compiled`]: their byte code, compiled once for all users
//! - [`failure`]: an exception as one line with its place

pub(crate) mod compiled;
pub(crate) mod failure;
pub(crate) mod fiber;
pub(crate) mod interrupt;
pub(crate) mod module_files;
pub(crate) mod vm;
