//! PURE. Retries: which failures, after which delay, within which deadline and budget. Calls, jobs and telemetry retry by
//! the same rules.
//!
//! - [`policy`]: failures that are retried, delays and budget, as data
//! - [`backoff`]: delays before retries
//! - [`grants`]: which failed attempt is retried, and when
//! - [`retry_after`]: `Retry-After` and other times in headers
//! - [`retry_budget`]: bound on all extra attempts together
//! - [`latency_quantile`]: quantiles of recent response times
//! - [`deadline`]: remaining time in headers
//! - [`grpc`]: gRPC codes and the HTTP statuses that correspond to them

pub mod backoff;
pub mod deadline;
pub mod grants;
pub mod grpc;
pub mod latency_quantile;
pub mod policy;
pub mod retry_after;
pub mod retry_budget;
