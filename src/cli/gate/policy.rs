//! The flags that say what a call may do; with a configuration they stand there.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::decide::policy::{BudgetRule, HedgeStage, Policy, RetryPolicy, RetryableMethodClass, StageTrigger};
use crate::decide::{Nanos, words};
use crate::gate::config;

#[derive(Debug, Args)]
pub(super) struct PolicyArgs {
    /// More copies of a request without success after a time, AFTER or AFTER:COPIES: 300ms:2, p95 (of recent response times), or
    /// failure; at once when an attempt fails. Repeatable: stage by stage, each time counts from the stage before
    #[arg(long = "hedge", value_name = "STAGE", value_parser = parse_stage, conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    stages: Vec<HedgeStage>,
    /// The caller has an answer by then [default: only the caller's own deadline counts]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    deadline: Option<Duration>,
    /// An attempt without success after so long has failed [default: never]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    attempt_timeout: Option<Duration>,
    /// New attempts in place of failed ones, per call, each after a wait [default: 0]
    #[arg(long = "max_retries", value_name = "N", value_parser = clap::value_parser!(u32).range(0..=63), conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    max_retries: Option<u32>,
    /// What all extra attempts may come to, as a share of calls and so many per window; or none, for no limit
    /// [default: 5%+1/1s]
    #[arg(long, value_name = "BUDGET", value_parser = BudgetFlag::read, conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    budget: Option<BudgetFlag>,
    /// Which requests may be sent more than once: safe (GET, HEAD, OPTIONS, TRACE), idempotent (also PUT, DELETE), every
    /// [default: safe]
    #[arg(long = "retryable_methods", value_name = "WHICH", hide_possible_values = true, conflicts_with_all = OTHER_SOURCES, help_heading = POLICY)]
    retryable_methods: Option<RetryableMethods>,
}

const POLICY: &str = "Policy, with --upstream";
const OTHER_SOURCES: [&str; 2] = ["config", "smart"];

/// A budget, or none.
#[derive(Clone, Copy, Debug)]
struct BudgetFlag(Option<BudgetRule>);

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RetryableMethods {
    Safe,
    Idempotent,
    Every,
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
                Some(RetryableMethods::Every) => RetryableMethodClass::All,
            },
            budget: self.budget.map_or(default.budget, |BudgetFlag(budget)| budget),
        }
    }
}

impl BudgetFlag {
    fn read(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let budget = config::budget(text);
        budget.map(|budget| Self(Some(budget))).ok_or_else(|| "write it as 5%+1/1s, 5% or none".to_owned())
    }
}

/// A time of no length would leave nobody any.
fn positive_duration(text: &str) -> Result<Duration, String> {
    let time = words::time(text)?;
    if time.is_zero() { Err("write a time above 0".to_owned()) } else { Ok(time) }
}

/// Reads `300ms:2`, `p95:1`, `failure`.
fn parse_stage(text: &str) -> Result<HedgeStage, String> {
    let wrong = || "write AFTER or AFTER:COPIES, e.g. 300ms:2, p95 or failure:1".to_owned();
    let (after, copies) = text.split_once(':').unwrap_or((text, "1"));
    let after = match (after, config::quantile(after)) {
        ("failure", _) => StageTrigger::Failure,
        (_, Some(share)) => StageTrigger::Quantile(share),
        (time, None) => StageTrigger::Time(words::time(time).map_err(|_| wrong())?.into()),
    };
    let copies = copies.parse().ok().filter(|copies| (1..64).contains(copies)).ok_or_else(wrong)?;
    Ok(HedgeStage { after, on_failure: true, attempts: copies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_as_people_write_them() {
        let of = |after, copies| Ok(HedgeStage { after, on_failure: true, attempts: copies });
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
