//! The policy flags of `weir gate --upstream`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use weir_base::Nanos;
use weir_base::units;
use weir_gate::config;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::policy::{BudgetRule, RetryPolicy, RetryableMethodClass};

#[derive(Debug, Args)]
pub(super) struct PolicyArgs {
    /// hedge calls, e.g. after 300ms:2, p95 or failure; repeatable
    #[arg(long = "hedge", value_name = "AFTER[:ATTEMPTS]", value_parser = parse_stage, conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    stages: Vec<HedgeStage>,
    /// set a deadline for each call [default: the caller's own]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    deadline: Option<Duration>,
    /// time out each attempt after TIME [default: none]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    attempt_timeout: Option<Duration>,
    /// retry N times at most: after no response, 429, 502, 503, 504 [default: 0]
    #[arg(long = "retries", value_name = "N", value_parser = clap::value_parser!(u32).range(0..=63), conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    max_retries: Option<u32>,
    /// limit retries and hedges to a budget [default: 5%+250/10s]
    #[arg(long, value_name = "PERCENT+COUNT/TIME|none", value_parser = BudgetFlag::parse, conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    budget: Option<BudgetFlag>,
    /// retry and hedge only these methods [default: safe]
    #[arg(long = "retry-methods", value_name = "METHODS", conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    retryable_methods: Option<RetryableMethods>,
}

const POLICY: &str = "Policy, with --upstream";
const OTHER_SOURCES: [&str; 2] = ["config", "smart"];

/// Retry budget; None disables it.
#[derive(Clone, Copy, Debug)]
struct BudgetFlag(Option<BudgetRule>);

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RetryableMethods {
    Safe,
    Idempotent,
    All,
}

impl PolicyArgs {
    pub(super) fn policy(&self) -> Policy {
        let default = Policy::default();
        Policy {
            deadline: self.deadline.map_or(default.deadline, Nanos::from),
            attempt_timeout: self.attempt_timeout.map_or(default.attempt_timeout, Nanos::from),
            stages: self.stages.clone(),
            retry: RetryPolicy { max_retries: self.max_retries.unwrap_or(0), ..default.retry },
            retryable_methods: match self.retryable_methods {
                None => default.retryable_methods,
                Some(RetryableMethods::Safe) => RetryableMethodClass::Safe,
                Some(RetryableMethods::Idempotent) => RetryableMethodClass::Idempotent,
                Some(RetryableMethods::All) => RetryableMethodClass::All,
            },
            budget: self.budget.map_or(default.budget, |BudgetFlag(budget)| budget),
        }
    }
}

impl BudgetFlag {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let budget = config::budget(text);
        budget.map(|budget| Self(Some(budget))).ok_or_else(|| "write it as 5%+250/10s, 5% or none".to_owned())
    }
}

/// A duration above zero.
fn positive_duration(text: &str) -> Result<Duration, String> {
    let time = units::time(text)?;
    if time.is_zero() { Err("write a time above 0".to_owned()) } else { Ok(time) }
}

/// Parses `300ms:2`, `p95:1`, `failure`.
fn parse_stage(text: &str) -> Result<HedgeStage, String> {
    let wrong = || "write AFTER or AFTER:ATTEMPTS, e.g. 300ms:2, p95 or failure:1".to_owned();
    let (after, attempts) = text.split_once(':').unwrap_or((text, "1"));
    let after = match (after, config::quantile(after)) {
        ("failure", _) => StageTrigger::Failure,
        (_, Some(quantile)) => StageTrigger::Quantile(quantile),
        (time, None) => StageTrigger::Time(units::time(time).map_err(|_| wrong())?.into()),
    };
    let attempts = attempts.parse().ok().filter(|attempts| (1..64).contains(attempts)).ok_or_else(wrong)?;
    Ok(HedgeStage { after, on_failure: true, attempts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hedge_stages_parse() {
        let of = |after, attempts| Ok(HedgeStage { after, on_failure: true, attempts });
        assert_eq!(parse_stage("300ms:2"), of(StageTrigger::Time(Nanos::from_millis(300)), 2));
        assert_eq!(parse_stage("0s"), of(StageTrigger::Time(Nanos::ZERO), 1));
        assert_eq!(parse_stage("p95:63"), of(StageTrigger::Quantile(0.95), 63));
        assert_eq!(parse_stage("failure"), of(StageTrigger::Failure, 1));
        for wrong in
            ["", ":", "300", "300ms:", "300ms:0", "300ms:64", "300ms:1:1", "p100", "failed", "-1ms", "300ms:-1"]
        {
            assert!(parse_stage(wrong).is_err(), "{wrong}");
        }
    }
}
