//! Seeded connections between the client and a server that is made of frames: valid ones, mutated ones, and ones out of
//! place. As long as the server keeps the rules, each request has to end as the server ended it, with the same sizes;
//! from its first mistake on, what RFC 9113 demands for each frame decides ([`FrameRules`]).
//!
//! [`FrameRules`]: frame_rules::FrameRules
#![allow(unsafe_code, reason = "an allocator that counts, only in tests")]
#![allow(clippy::panic, clippy::expect_used, clippy::unwrap_used, reason = "a failed check ends the program")]

mod allocation;
mod client_output;
mod driven_client;
mod frame_mistakes;
mod frame_rules;
mod seeded_connection;
mod seeded_server;
mod served_stream;

pub(crate) use frame_mistakes::FrameMistakes;
pub(crate) use seeded_connection::{FrameTally, play};
