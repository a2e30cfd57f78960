//! The workspace itself: its structure, its names, its examples.

mod arrows;
mod circles;
mod examples;
mod names;
mod sources;
mod workspace;
