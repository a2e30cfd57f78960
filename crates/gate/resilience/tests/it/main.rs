//! Decisions between threads.

mod admission;
