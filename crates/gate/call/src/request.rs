//! Request of a call.

use std::net::SocketAddr;

use http::{HeaderMap, Method};

use super::attempt_rate::AttemptRate;
use super::plan::CallPlan;
use weir_base::Nanos;
use weir_net::client::WireOptions;
use weir_net::traceparent::TraceContext;
use weir_resilience::admission::{ConnectionNumber, Priority};

/// Request as a caller sent it, with the plan, deadline and priority of its call.
#[derive(Debug)]
pub struct CallRequest<'a> {
    /// Policy, upstream and counters.
    pub plan: &'a CallPlan,
    /// Method.
    pub method: &'a Method,
    /// Path and query.
    pub target: &'a str,
    /// Headers for the upstream, without hop-by-hop headers, the plan's deadline headers, and `traceparent` if there is
    /// a trace: attempts have their own.
    pub headers: &'a HeaderMap,
    /// Deadline of the caller, on the engine's clock; the policy's may be earlier.
    pub deadline: Nanos,
    /// Whether the request is an upgrade.
    pub upgrade: bool,
    /// Trace context of the call; each attempt has its own span below it.
    pub trace: Option<TraceContext>,
    /// Priority under overload.
    pub priority: Priority,
    /// Key of the call, by which an upstream with consistent hashing chooses its host.
    pub key: Option<u64>,
    /// Address of the caller, for an upstream whose connections name it by the PROXY protocol.
    pub client: Option<SocketAddr>,
    /// Order within a priority: higher values are shed later; see [`super::CallEngine::spread`].
    pub spread: u8,
    /// Connection of the caller, if it multiplexes calls (HTTP/2): its share of the slots is bounded.
    pub connection: Option<ConnectionNumber>,
    /// Limit of how often attempts are sent; `None` if there is none.
    pub rate: Option<&'a dyn AttemptRate>,
    /// Spelling of headers and timeouts of steps, of a library's transport.
    pub wire: WireOptions<'a>,
}

impl<'a> CallRequest<'a> {
    /// A request of normal priority without deadline, upgrade and trace.
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
            key: None,
            client: None,
            spread: 0,
            connection: None,
            rate: None,
            wire: WireOptions::default(),
        }
    }
}
