//! Tests.

pub(crate) mod acceptance;
