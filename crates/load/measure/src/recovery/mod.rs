//! Recovery of a service from a disturbance, while its load stays as it was.
//!
//! A service is *metastable* if it does not come back by itself after the cause is gone: what sustains the failure is the
//! failure itself, most often clients that retry what the service no longer gets done in time (Bronson et al., HotOS
//! 2021; Huang et al., OSDI 2022). So the load has clients that give up and retry, and is the same before and after.
//!
//! - [`recovery_second`]: calls of one second
//! - [`baseline_bounds`]: what is normal, from the seconds before the trigger
//! - [`recovery_test`]: phases of the load, second by second, and the verdict
//! - [`recovery_report`]: the result as JSON
//!
//! `docs/design/recovery.md` has the reasons for these rules.

pub mod baseline_bounds;
pub mod recovery_report;
pub mod recovery_second;
pub mod recovery_test;

pub use baseline_bounds::BaselineBounds;
pub use recovery_report::{RecoveryFacts, RecoveryReport};
pub use recovery_second::RecoverySecond;
pub use recovery_test::{
    RecoveryAction, RecoveryFinding, RecoveryPhase, RecoveryRules, RecoveryTest, RecoveryVerdict, RestFinding,
    TriggerLength,
};

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
