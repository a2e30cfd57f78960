//! One call and its attempts, under a policy: deadline, hedge, retry, budget. The gateway and the client libraries
//! stand on it.
//!
//! - [`CallPlan`]: what is the same for many calls; [`Upstream`]: where their attempts go
//! - [`CallEngine`]: one per event loop; [`CallEngine::call`] is the whole journey of a call
//! - [`CallResponse`], [`CallFailure`]: how a call ends; [`story`]: what happened on the way
//! - [`PermitPool`]: how many there may be at once; `entry`: a call's way in, `guard`: what an upstream is spared, `waiting`: its wait for a place
//! - `attempt`: one copy of it on its way; `headers`: what it tells its upstream; `counts`: what is counted of all; `upload`: a body that its caller still sends
//! - [`TraceContext`]: a call's place in a trace
//!
//! What to launch, what to cancel and when to answer is decided in [`crate::decide::hedge`]; here it is done.

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
