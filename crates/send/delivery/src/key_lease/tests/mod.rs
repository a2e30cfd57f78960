//! Tests.

pub(crate) mod simulation;
