//! One call and its attempts, under a policy: deadline, hedge, retry, budget. The gateway and the client libraries
//! stand on it.
//!
//! - [`Plan`]: what is the same for many calls; [`Upstream`]: where their attempts go
//! - [`Engine`]: one per event loop; [`Engine::call`] is the whole journey of a call
//! - [`Answer`], [`Failed`]: how a call ends; [`story`]: what happened on the way
//! - [`Places`]: how many there may be at once; `entry`: a call's way in, `guard`: what an upstream is spared, `waiting`: its wait for a place
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

pub use self::answer::{Answer, AnswerBody, Cut, Failed, Reason};
pub use self::ask::Ask;
pub use self::counts::{CallCounts, UpstreamCounts};
pub use self::engine::Engine;
pub use self::places::Places;
pub use self::plan::Plan;
pub use self::success::{BadSchema, Success};
pub use self::trace::TraceContext;
pub use self::upstream::{Host, Upstream};
