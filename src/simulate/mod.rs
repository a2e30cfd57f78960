//! PURE. Overload in virtual time: callers, gates in front of an upstream, and what comes of it.
//!
//! ```text
//!   callers ──► gate 0..G ──► replica 0..R        one heap of events, one clock that jumps
//!     ▲           │ refused     │ 503
//!     └── retry ◄─┴─────────────┘
//! ```
//!
//! The gate is the very code that stands in `weir gate` ([`crate::decide::admit`]), or one of the known algorithms
//! beside it, so that what is promised of overload protection is a number that anybody can make again: the same world
//! and seed give the same calls, each with the same service time, whichever gate they meet.
//!
//! - [`world`]: who calls, how often, and what the upstream can take, over time
//! - [`scenario`]: worlds with names
//! - [`gate`]: what a limiter is asked
//! - [`limiter`]: which ones there are
//! - [`peers`]: the known algorithms, written from their publications
//! - [`mod@run`]: a world, a limiter, and the events until the end
//! - [`figures`]: what came of it
//! - [`score`]: which limiter is ahead of which
//! - [`text`]: all that for a person
//! - [`delivery`]: jobs sent through the rate limits of a service

mod admission;
mod call;
pub mod delivery;
pub mod figures;
pub mod gate;
pub mod limiter;
pub mod peers;
#[cfg(test)]
mod promises;
mod record;
mod replica;
pub mod run;
pub mod scenario;
pub mod score;
mod stalls;
pub mod text;
pub mod world;

pub use figures::SimulationReport;
pub use limiter::SimulatedLimiter;
pub use run::run;
pub use score::LimiterComparison;
pub use world::Scenario;
