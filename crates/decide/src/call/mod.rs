//! PURE. One call to an upstream: attempts, retries, hedges, deadline.
//!
//! - [`policy`]: deadline, hedging, retries and budget of a call, as data
//! - [`hedge`]: one call and its attempts: what to launch and cancel, and the verdict
//! - [`retry_budget`]: bound on all extra attempts together
//! - [`latency_quantile`]: quantiles of recent response times
//! - [`deadline`]: remaining time in headers
//! - [`grpc`]: gRPC codes and the HTTP statuses that correspond to them

pub mod deadline;
pub mod grpc;
pub mod hedge;
pub mod latency_quantile;
pub mod policy;
pub mod retry_budget;
