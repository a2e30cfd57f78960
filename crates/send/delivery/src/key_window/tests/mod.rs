//! Tests.

pub(crate) mod report_tests;
pub(crate) mod simulation;
