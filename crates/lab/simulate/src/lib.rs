//! PURE. Simulation of overload protection in virtual time: callers, gates and an upstream of limited capacity.
//!
//! ```text
//!   callers ──► gate 0..G ──► replica 0..R        one heap of events, one clock that jumps
//!     ▲           │ rejected    │ 503
//!     └── retry ◄─┴─────────────┘
//! ```
//!
//! Gates run the admission control of `weir gate` ([`weir_resilience::admission`]) or a published algorithm. Runs are
//! reproducible: the same scenario and seed give the same calls with the same service times, whatever the limiter.
//!
//! - [`world`]: scenario of a simulation: callers, gates, upstream, changes over time
//! - [`scenario`]: named scenarios
//! - [`gate`]: interface of a gate; [`limiter`]: limiters by name; [`peers`]: published algorithms
//! - [`mod@run`]: event loop of a run
//! - [`metrics`]: metrics of a run; [`ranking`]: ranking of limiters; [`text`]: text report
//! - [`delivery`]: jobs delivered through the rate limits of a service

mod admission;
mod call;
mod culprits;
pub mod delivery;
pub mod gate;
pub mod limiter;
pub mod metrics;
pub mod peers;
mod plan;
pub mod ranking;
mod record;
mod replica;
pub mod run;
pub mod scenario;
mod stalls;
pub mod text;
pub mod world;

pub use limiter::SimulatedLimiter;
pub use metrics::SimulationReport;
pub use plan::SimulationPlan;
pub use ranking::LimiterComparison;
pub use run::run;
pub use world::Scenario;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
