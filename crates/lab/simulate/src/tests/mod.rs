//! Tests.

pub(crate) mod acceptance;
mod culprits;
