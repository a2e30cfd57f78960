//! The run while it goes.

pub mod bar;
