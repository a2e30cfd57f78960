//! Tests.

pub(crate) mod oracle;
