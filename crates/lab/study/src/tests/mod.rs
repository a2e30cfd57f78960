//! Tests.

pub(crate) mod fixtures;
