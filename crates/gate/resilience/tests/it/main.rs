//! Decisions between threads.
#![allow(clippy::disallowed_methods, reason = "threads are what is tested")]

mod admission;
