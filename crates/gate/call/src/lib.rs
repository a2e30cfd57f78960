//! Calls and their attempts under a policy of deadline, hedging, retries and budget. Base of the gateway and the
//! client.
//!
//! - [`CallPlan`]: settings of many calls; [`Upstream`]: the hosts of their attempts
//! - [`CallEngine`]: one per event loop; [`CallEngine::call`] makes a call; `state`: a call in flight;
//!   `engine_state`: what all calls of the event loop share
//! - [`DirectCall`]: a call as a value, as long as nothing unusual happens
//! - [`CallResponse`], [`CallFailure`]: the outcome; [`CallBody`]: the response's body, of an attempt and of its call;
//!   [`attempt_log`]: the attempt log; [`UnsentAttempts`]: attempts that a budget stopped
//! - [`PermitPool`]: concurrency limits; `admission`: admission of a call; `upstream_guard`: circuit breaker and
//!   throttle
//! - `attempt`: one attempt; `host_permit`: its host and permits; `headers`: its own headers; `upload`: a request body
//!   that the caller still sends; [`attempt_rate`], `call_slots`: slots where the rate of attempts is limited; `call_event`: what a call waits for; `counts`: counters; `condition_changes`: changes of hosts and circuits, for a log
//!
//! [`weir_resilience::hedge`] decides on launches, cancellations and the response to return; this crate carries them
//! out.

mod admission;
mod attempt;
pub mod attempt_log;
pub mod attempt_rate;
mod body;
mod call_event;
mod call_slots;
mod call_start;
mod condition_changes;
mod counts;
mod direct_call;
mod engine;
mod engine_state;
mod headers;
mod host_permit;
mod latency_histogram;
mod permits;
mod plan;
mod pulse;
mod request;
mod response;
mod state;
mod success;
mod unsent_attempts;
mod upload;
mod upstream;
mod upstream_guard;

pub use self::body::{CallBody, CallBodyError};
pub use self::condition_changes::UpstreamEvent;
pub use self::counts::{CallCounts, UpstreamCounts};
pub use self::direct_call::DirectCall;
pub use self::engine::CallEngine;
pub use self::latency_histogram::{LatencyBuckets, LatencyHistogram};
pub use self::permits::PermitPool;
pub use self::plan::CallPlan;
pub use self::request::CallRequest;
pub use self::response::{CallFailure, CallFailureReason, CallResponse, UpstreamResponse};
pub use self::success::{InvalidSchema, Success};
pub use self::unsent_attempts::UnsentAttempts;
pub use self::upstream::{HostState, Upstream, UpstreamHost};
pub use weir_net::traceparent::TraceContext;
pub use weir_resilience::upstream::hosts::HostSlot;
