//! Tests.

pub(crate) mod acceptance;
pub(crate) mod slow_limits;
