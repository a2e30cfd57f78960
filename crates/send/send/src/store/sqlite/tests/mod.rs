//! Tests.

pub(crate) mod crashes;
