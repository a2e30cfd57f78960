//! Tests.

pub(crate) mod shell;
