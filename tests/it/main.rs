//! The workspace itself: its structure, its names, its examples.

mod arrows;
mod circles;
mod examples;
mod names;
mod parsed;
mod sources;
mod workspace;
