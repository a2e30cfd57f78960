//! The workspace itself: its structure, its names, its examples.

mod arrows;
mod examples;
mod names;
