//! Tests.

pub(crate) mod examples;
pub(crate) mod oracle;
pub(crate) mod rules;
pub(crate) mod simulation;
pub(crate) mod worth;
