//! Tests of the crate, one module per subject.

mod included;
