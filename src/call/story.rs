//! What happened to a call, attempt by attempt.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::decide::Nanos;
use crate::decide::admit::{Priority, Rejection};
use crate::decide::hedge::LaunchReason;
use crate::decide::policy::AttemptFailure;
use crate::http::client::Origin;

/// A call's attempts, in the order of their launch.
#[derive(Clone, Debug, Default)]
pub struct CallTrace {
    /// When the call began.
    pub began: Nanos,
    /// Its attempts.
    pub attempts: Vec<AttemptTrace>,
    /// Extra attempts that the budget did not allow, or that had no free place.
    pub budget_exhausted: u32,
    /// Why nothing was sent, and how much the call matters.
    pub rejection: Option<(Rejection, Priority)>,
}

/// One copy of a call.
#[derive(Clone, Debug)]
pub struct AttemptTrace {
    /// Why it was launched.
    pub reason: LaunchReason,
    /// Where it went.
    pub origin: Arc<Origin>,
    /// When it was launched.
    pub launched: Nanos,
    /// When it ended; meaningless while it runs.
    pub ended: Nanos,
    /// How it ended.
    pub end: AttemptStatus,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptStatus {
    /// It has not.
    Running,
    /// Its answer is the call's, with this status.
    Won(u16),
    /// It was no success; in words, where there are any beyond the kind.
    Failed(AttemptFailure, Option<Cow<'static, str>>),
    /// Nobody wanted it any more.
    Cancelled,
}

/// An attempt as JSON: times in milliseconds since the call's start.
#[derive(Debug, Serialize)]
struct AttemptJson<'a> {
    attempt: usize,
    #[serde(rename = "why")]
    reason: &'static str,
    upstream: &'a str,
    launched_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ms: Option<f64>,
    end: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
}

/// A call that is not taken, as JSON.
#[derive(Debug, Serialize)]
struct RejectionJson {
    #[serde(rename = "refused")]
    rejected: &'static str,
    priority: &'static str,
    retry_after_s: f64,
}

/// The word for why an attempt was launched.
pub fn launch_reason(why: LaunchReason) -> &'static str {
    match why {
        LaunchReason::First => "first",
        LaunchReason::Stage(_) => "stage",
        LaunchReason::Failure(_) => "failure",
        LaunchReason::Retry(_) => "retry",
    }
}

impl CallTrace {
    pub(super) fn launched(&mut self, why: LaunchReason, origin: &Arc<Origin>, now: Nanos) {
        let origin = Arc::clone(origin);
        if self.attempts.capacity() == 0 {
            // Most calls have one.
            self.attempts.reserve_exact(1);
        }
        self.attempts.push(AttemptTrace {
            reason: why,
            origin,
            launched: now,
            ended: now,
            end: AttemptStatus::Running,
        });
    }

    pub(super) fn ended(&mut self, attempt: u32, now: Nanos, end: AttemptStatus) {
        if let Some(attempt) = self.attempts.get_mut(attempt as usize) {
            (attempt.ended, attempt.end) = (now, end);
        }
    }

    /// What has won has not, after all.
    pub(super) fn revoke(&mut self) {
        for attempt in self.attempts.iter_mut().filter(|attempt| matches!(attempt.end, AttemptStatus::Won(_))) {
            attempt.end = AttemptStatus::Cancelled;
        }
    }

    /// The caller has left.
    pub(super) fn cancel_running(&mut self, now: Nanos) {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.end == AttemptStatus::Running) {
            (attempt.ended, attempt.end) = (now, AttemptStatus::Cancelled);
        }
    }

    pub(super) fn launch_of(&self, attempt: u32) -> Nanos {
        self.attempts.get(attempt as usize).map_or(self.began, |attempt| attempt.launched)
    }

    /// The attempts as a JSON array; of a call that was refused, that.
    pub fn json(&self) -> Box<serde_json::value::RawValue> {
        if let Some((Rejection { reason: why, retry_after }, priority)) = self.rejection {
            let (refused, priority) = (why.name(), priority.name());
            let line = RejectionJson { rejected: refused, priority, retry_after_s: retry_after.as_secs_f64() };
            return serde_json::value::to_raw_value(&[line]).unwrap_or_default();
        }
        let lines: Vec<AttemptJson<'_>> =
            self.attempts.iter().enumerate().map(|(i, attempt)| self.attempt_json(i, attempt)).collect();
        // Plain fields are always JSON.
        serde_json::value::to_raw_value(&lines).unwrap_or_default()
    }

    fn attempt_json<'a>(&self, number: usize, attempt: &'a AttemptTrace) -> AttemptJson<'a> {
        let ms = |at: Nanos| ((at - self.began).as_millis_f64() * 1e3).round() / 1e3;
        let (end, status, failure, cause) = match &attempt.end {
            AttemptStatus::Running => ("running", None, None, None),
            AttemptStatus::Won(status) => ("won", Some(*status), None, None),
            AttemptStatus::Cancelled => ("cancelled", None, None, None),
            AttemptStatus::Failed(AttemptFailure::Status(status), _) => ("lost", Some(*status), None, None),
            AttemptStatus::Failed(failure, cause) => ("lost", None, failure.name(), cause.as_deref()),
        };
        AttemptJson {
            attempt: number + 1,
            reason: launch_reason(attempt.reason),
            upstream: attempt.origin.name(),
            launched_ms: ms(attempt.launched),
            ended_ms: (attempt.end != AttemptStatus::Running).then(|| ms(attempt.ended)),
            end,
            status,
            failure,
            cause,
        }
    }
}

/// What happens to a call, in plain words.
#[derive(Debug)]
struct Event {
    at: Nanos,
    attempt: usize,
    /// Why.
    reason: String,
    /// What one attempt does, and what several do.
    verbs: (&'static str, &'static str),
    detail: String,
}

/// What is no further apart than this happens together.
const SAME_EVENT_WINDOW: Nanos = Nanos::from_millis(1);

impl Event {
    fn is_same(&self, next: &Self) -> bool {
        let words = |event: &Self| (event.reason.clone(), event.verbs, event.detail.clone());
        next.at - self.at < SAME_EVENT_WINDOW && words(self) == words(next)
    }
}

impl CallTrace {
    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (number, attempt) in (1..).zip(&self.attempts) {
            let because = match attempt.reason {
                LaunchReason::First => String::new(),
                LaunchReason::Stage(_) => "no success yet: ".to_owned(),
                LaunchReason::Failure(_) => "that failed: ".to_owned(),
                LaunchReason::Retry(n) => format!("retry {n}: "),
            };
            let event = |at, verbs, rest| Event { at, attempt: number, reason: String::new(), verbs, detail: rest };
            let goes = event(attempt.launched, ("goes to", "go to"), attempt.origin.name().to_owned());
            events.push(Event { reason: because, ..goes });
            let (verbs, rest) = match &attempt.end {
                AttemptStatus::Running => continue,
                AttemptStatus::Won(status) => (("brings", "bring"), format!("{status}: the answer")),
                AttemptStatus::Cancelled => (("is", "are"), "not wanted any more".to_owned()),
                AttemptStatus::Failed(AttemptFailure::Status(status), _) => {
                    (("brings", "bring"), format!("{status}: no success"))
                }
                AttemptStatus::Failed(failure, cause) => {
                    let (name, cause) = (failure.name().unwrap_or_default(), cause.as_deref());
                    let rest = cause.map_or_else(|| name.to_owned(), |cause| format!("{name}: {cause}"));
                    (("fails:", "fail:"), rest)
                }
            };
            events.push(event(attempt.ended, verbs, rest));
        }
        // Of what happens at the same time the win comes first; else the attempts have their order.
        events.sort_by_key(|event| (event.at, event.verbs.0 == "is"));
        events
    }
}

/// One line per event; what happens to several attempts together is one.
impl fmt::Display for CallTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for together in self.events().chunk_by(Event::is_same) {
            let [Event { at, attempt, reason: because, verbs, detail: rest }, others @ ..] = together else { continue };
            write!(f, "  {:>8.1} ms  {because}", (*at - self.began).as_millis_f64())?;
            let Some((last, others)) = others.split_last() else {
                writeln!(f, "attempt {attempt} {} {rest}", verbs.0)?;
                continue;
            };
            write!(f, "attempts {attempt}")?;
            for other in others {
                write!(f, ", {}", other.attempt)?;
            }
            writeln!(f, " and {} {} {rest}", last.attempt, verbs.1)?;
        }
        if self.budget_exhausted > 0 {
            writeln!(f, "               {} more not sent: no budget, or no free place", self.budget_exhausted)?;
        }
        if let Some((Rejection { reason: why, retry_after }, priority)) = &self.rejection {
            let priority = priority.name();
            writeln!(f, "               refused ({why}, priority {priority}); to be tried again after {retry_after}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::policy::FailureKind;
    use crate::http::client::ConnectOptions;
    use crate::http::target::Target;

    #[test]
    fn attempts_that_go_and_end_together_are_told_together() {
        let target = Target::parse("http://127.0.0.1:9000").expect("a URL");
        let origin = Arc::new(Origin::new(&target, &ConnectOptions::default()).expect("an origin"));
        let mut story = CallTrace { began: Nanos::from_secs(7), ..CallTrace::default() };
        let at = |ms| Nanos::from_secs(7) + Nanos::from_millis(ms);
        for (why, ms) in [
            (LaunchReason::First, 0),
            (LaunchReason::Stage(0), 300),
            (LaunchReason::Stage(0), 300),
            (LaunchReason::Retry(1), 400),
        ] {
            story.launched(why, &origin, at(ms));
        }
        let ends = [
            AttemptStatus::Cancelled,
            AttemptStatus::Won(200),
            AttemptStatus::Failed(AttemptFailure::Kind(FailureKind::Timeout), None),
            AttemptStatus::Cancelled,
        ];
        for (number, (end, ms)) in (0..).zip(ends.into_iter().zip([421, 421, 380, 421])) {
            story.ended(number, at(ms), end);
        }
        let told = "
       0.0 ms  attempt 1 goes to 127.0.0.1:9000
     300.0 ms  no success yet: attempts 2 and 3 go to 127.0.0.1:9000
     380.0 ms  attempt 3 fails: timeout
     400.0 ms  retry 1: attempt 4 goes to 127.0.0.1:9000
     421.0 ms  attempt 2 brings 200: the answer
     421.0 ms  attempts 1 and 4 are not wanted any more
";
        assert_eq!(format!("\n{story}"), told);
    }
}
