//! Tests.

pub(crate) mod trials;
