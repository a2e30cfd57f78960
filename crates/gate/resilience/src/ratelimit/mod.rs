//! PURE. Rate limits: of callers, and shared by several gateways.
//!
//! - [`per_caller`]: rate limits per caller
//! - [`fair_priority`]: fairness of high priorities
//! - [`top_callers`]: the callers with the most rejections
//! - [`split`]: limits shared by several gateways

pub mod fair_priority;
pub mod per_caller;
pub mod split;
pub mod top_callers;
