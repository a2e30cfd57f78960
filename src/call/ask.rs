//! One call as it is asked for.

use http::{HeaderMap, Method};

use super::plan::CallPlan;
use super::trace::TraceContext;
use crate::decide::Nanos;
use crate::decide::admit::Priority;

/// What a caller asks.
#[derive(Debug)]
pub struct CallRequest<'a> {
    /// What may be done for it.
    pub plan: &'a CallPlan,
    /// The method.
    pub method: &'a Method,
    /// Path and query.
    pub target: &'a str,
    /// Headers that concern the upstream; without any of the connection, and without those that the attempts make
    /// themselves: the plan's deadline headers, and `traceparent` if there is a trace.
    pub headers: &'a HeaderMap,
    /// The caller's own deadline, on the engine's clock; the policy's may come earlier.
    pub deadline: Nanos,
    /// Whether the caller wants to switch protocols.
    pub upgrade: bool,
    /// The call's place in a trace. Each attempt tells its upstream a span of its own below it.
    pub trace: Option<TraceContext>,
    /// How much it matters where there is too much.
    pub priority: Priority,
    /// Of equal priority, those with a high one come first; see [`super::CallEngine::spread`].
    pub spread: u8,
}

impl<'a> CallRequest<'a> {
    /// Without a deadline of the caller's own, a switch of protocols, or a trace; of normal priority.
    pub fn new(plan: &'a CallPlan, method: &'a Method, target: &'a str, headers: &'a HeaderMap) -> Self {
        Self {
            plan,
            method,
            target,
            headers,
            deadline: Nanos::NEVER,
            upgrade: false,
            trace: None,
            priority: Priority::Normal,
            spread: 0,
        }
    }
}
