//! PURE. Rate limits: of callers, of services, shared by several gateways.
//!
//! - [`limit_unit`]: what a limit counts, requests or their weights
//! - [`models`]: rate-limit algorithms, as a service counts
//! - [`per_caller`]: rate limits per caller
//! - [`fair_priority`]: fairness of high priorities
//! - [`top_callers`]: the callers with the most rejections
//! - [`split`]: limits shared by several gateways

pub mod fair_priority;
pub mod limit_unit;
pub mod models;
pub mod per_caller;
pub mod split;
pub mod top_callers;
