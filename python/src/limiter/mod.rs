//! The core's limiter for Python: lines of keys, and slots. Python has the waits, by thread or by event loop.

pub(crate) mod handle;
pub(crate) mod keyed_rate;
mod own;
pub(crate) mod slot;
