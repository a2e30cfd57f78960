//! One call and its attempts, under a policy: deadline, hedge, retry, budget. The gateway and the client libraries
//! stand on it.
//!
//! - [`ToolPlan`]: what is the same for many calls; [`Upstream`]: where their attempts go
//! - [`ClientEngine`]: one per event loop; [`ClientClientEngine::deposit`] is the whole journey of a call
//! - [`Response`], [`CallFailure`]: how a call ends; [`story`]: what happened on the way
//! - [`SlotPool`]: how many there may be at once; `entry`: a call's way in, `guard`: what an upstream is spared, `waiting`: its wait for a place
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
