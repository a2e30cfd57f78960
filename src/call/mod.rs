//! One call and its attempts, under a policy: deadline, hedge, retry, budget. The gateway and the client libraries
//! stand on it.
//!
//! - [`Plan`]: what is the same for many calls; [`Upstream`]: where their attempts go
//! - [`Engine`]: one per event loop; [`Engine::call`] is the whole journey of a call
//! - [`Answer`], [`Failed`]: how a call ends; [`story`]: what happened on the way
//! - `attempt`: one copy of it on its way; `counts`: what is counted of all
//!
//! What to launch, what to cancel and when to answer is decided in [`crate::decide::hedge`]; here it is done.

mod answer;
mod attempt;
mod counts;
mod engine;
mod plan;
pub mod story;
mod success;
mod upstream;

pub use self::answer::{Answer, AnswerBody, Cut, Failed, Reason};
pub use self::counts::{CallCounts, UpstreamCounts};
pub use self::engine::{Ask, Engine};
pub use self::plan::Plan;
pub use self::success::{BadSchema, Success};
pub use self::upstream::{Host, Upstream};
