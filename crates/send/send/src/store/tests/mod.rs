//! Tests.

pub(crate) mod conformance;
