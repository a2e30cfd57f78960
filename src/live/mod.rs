//! The run while it goes.

pub mod bar;
pub mod board;
