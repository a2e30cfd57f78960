//! Calls and their attempts under a policy of deadline, hedging, retries and budget. Base of the gateway and the
//! client.
//!
//! - [`CallPlan`]: settings of many calls; [`Upstream`]: the hosts of their attempts
//! - [`CallEngine`]: one per event loop; [`CallEngine::call`] makes a call; `state`: a call in flight
//! - [`CallResponse`], [`CallFailure`]: the outcome; [`story`]: the attempt log
//! - [`PermitPool`]: concurrency limits; `entry`: admission of a call; `waiting`: its wait for a slot; `guard`: circuit
//!   breaker and throttle
//! - `attempt`: one attempt; `headers`: its own headers; `upload`: a request body that the caller still sends;
//!   `counts`: counters
//! - [`TraceContext`]: W3C trace context
//!
//! What to launch, what to cancel and when to respond is decided in [`crate::decide::hedge`] and done here.

mod answer;
mod ask;
mod attempt;
mod counts;
mod engine;
mod entry;
mod guard;
mod headers;
mod places;
mod plan;
mod pulse;
mod state;
pub mod story;
mod success;
mod trace;
mod upload;
mod upstream;
mod waiting;

pub use self::answer::{CallBody, CallBodyError, CallFailure, CallFailureReason, CallResponse};
pub use self::ask::CallRequest;
pub use self::counts::{CallCounts, UpstreamCounts};
pub use self::engine::CallEngine;
pub use self::places::PermitPool;
pub use self::plan::CallPlan;
pub use self::success::{InvalidSchema, Success};
pub use self::trace::TraceContext;
pub use self::upstream::{Upstream, UpstreamHost};
