//! HTTP/2 of a client, as its callers see it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

mod hpack;
mod hpack_examples;
mod messages;
mod peer;
mod seeded;
#[path = "../seeded_peer/mod.rs"]
mod seeded_peer;
mod server;
mod splitting;
mod streams;
mod violations;
