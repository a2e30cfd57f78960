//! Extra attempts of a call that were not sent, and the limit that stopped them.

use std::fmt;

use serde::Serialize;

use weir_resilience::hedge::{LaunchReason, NotRepeated};
use weir_retry::policy::BudgetRule;

/// Extra attempts that were not sent. Displays as text: `2 retries and 1 hedge not sent: ...`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UnsentAttempts {
    /// Retries.
    pub retries: u32,
    /// Hedges.
    pub hedges: u32,
    /// Limits that stopped them.
    limits: UnsentLimits,
    /// Reason why the last failure was not repeated, if no limit was the reason.
    pub not_repeated: Option<NotRepeated>,
}

/// Limits that have stopped attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct UnsentLimits {
    budget: Option<BudgetRule>,
    permits: bool,
    rate: bool,
}

/// Limit that stopped an attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum UnsentLimit {
    /// The retry budget.
    Budget(Option<BudgetRule>),
    /// The concurrency limit of the upstream.
    Permits,
    /// The limit of the rate of attempts.
    Rate,
}

/// Unsent attempts as JSON.
#[derive(Debug, Serialize)]
pub(super) struct UnsentJson {
    retries_not_sent: u32,
    hedges_not_sent: u32,
    limit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_budget: Option<String>,
}

impl UnsentAttempts {
    /// Number of all.
    pub fn total(&self) -> u32 {
        self.retries + self.hedges
    }

    /// Whether a budget has stopped some of them.
    pub fn is_by_budget(&self) -> bool {
        self.limits.budget.is_some()
    }

    pub(super) fn add(&mut self, reason: LaunchReason, limit: UnsentLimit) {
        match reason {
            LaunchReason::Retry(_) => self.retries += 1,
            LaunchReason::First | LaunchReason::Stage(_) | LaunchReason::Failure(_) => self.hedges += 1,
        }
        match limit {
            UnsentLimit::Budget(rule) => self.limits.budget = rule,
            UnsentLimit::Permits => self.limits.permits = true,
            UnsentLimit::Rate => self.limits.rate = true,
        }
    }

    /// JSON object; None if all were sent.
    pub(super) fn json(&self) -> Option<UnsentJson> {
        (self.total() > 0).then(|| UnsentJson {
            retries_not_sent: self.retries,
            hedges_not_sent: self.hedges,
            limit: match self.limits {
                UnsentLimits { budget: Some(_), .. } => "retry_budget",
                UnsentLimits { rate: true, .. } => "rate_limit",
                _ => "concurrency_limit",
            },
            retry_budget: self.limits.budget.map(|rule| rule.to_string()),
        })
    }
}

impl fmt::Display for UnsentAttempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: u32, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        let all = [counted(self.retries, "retry", "retries"), counted(self.hedges, "hedge", "hedges")];
        f.write_str(&all.into_iter().flatten().collect::<Vec<_>>().join(" and "))?;
        f.write_str(" not sent: ")?;
        match self.limits {
            UnsentLimits { budget: Some(rule), .. } => write!(f, "the retry budget ({rule}) was used up"),
            UnsentLimits { rate: true, .. } => f.write_str("no slot of the rate limit was free"),
            _ => f.write_str("no slot of the upstream's concurrency limit was free"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named() {
        let mut unsent = UnsentAttempts::default();
        assert!(unsent.json().is_none() && unsent.total() == 0);
        unsent.add(LaunchReason::Stage(0), UnsentLimit::Permits);
        assert_eq!(unsent.to_string(), "1 hedge not sent: no slot of the upstream's concurrency limit was free");
        unsent.add(LaunchReason::Retry(1), UnsentLimit::Budget(Some(BudgetRule::default())));
        unsent.add(LaunchReason::Retry(2), UnsentLimit::Budget(Some(BudgetRule::default())));
        let expected = "2 retries and 1 hedge not sent: the retry budget (5% + 250/10s) was used up";
        assert_eq!(unsent.to_string(), expected);
        let json = serde_json::to_string(&unsent.json()).unwrap_or_default();
        let expected =
            r#"{"retries_not_sent":2,"hedges_not_sent":1,"limit":"retry_budget","retry_budget":"5% + 250/10s"}"#;
        assert_eq!(json, expected);
    }
}
