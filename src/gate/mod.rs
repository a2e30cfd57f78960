//! An answer in time, whatever the upstream does: a gateway.

pub mod config;
