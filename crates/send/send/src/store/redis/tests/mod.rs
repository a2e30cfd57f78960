//! Tests.

pub(crate) mod trouble;
