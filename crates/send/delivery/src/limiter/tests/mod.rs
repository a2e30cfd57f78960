//! Tests of a limiter's key.

mod simulation;
mod stored;
