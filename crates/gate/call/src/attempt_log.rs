//! The attempt log of a call.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::unsent_attempts::{UnsentAttempts, UnsentJson};
use weir_base::Nanos;
use weir_net::client::{FailurePoint, Origin};
use weir_resilience::admission::{Priority, Rejection};
use weir_resilience::hedge::LaunchReason;
use weir_retry::policy::AttemptFailure;

/// Trace of a call: its attempts in the order of their launch. Displays as text, one line per event.
#[derive(Clone, Debug, Default)]
pub struct CallTrace {
    /// Start of the call.
    pub began: Nanos,
    /// All attempts so far.
    pub attempts: Vec<AttemptTrace>,
    /// Extra attempts that were not sent because the budget was used up or no slot was free.
    pub unsent: UnsentAttempts,
    /// Rejection of the call, if nothing was sent, and its priority.
    pub rejection: Option<(Rejection, Priority)>,
    /// Origin of a rejected call.
    pub rejected_call: Option<Box<RejectedCall>>,
}

/// Origin of a rejected call, for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedCall {
    /// Name of its route.
    pub route: Arc<str>,
    /// Name of its caller, without secrets.
    pub caller: String,
}

/// One attempt of a call.
#[derive(Clone, Debug)]
pub struct AttemptTrace {
    /// Reason of the launch.
    pub reason: LaunchReason,
    /// Host that the attempt was sent to.
    pub origin: Arc<Origin>,
    /// Time of the launch.
    pub launched: Nanos,
    /// Time of the end; meaningless while the attempt runs.
    pub ended: Nanos,
    /// Outcome so far.
    pub end: AttemptStatus,
}

/// Outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptStatus {
    /// Still in flight.
    Running,
    /// The response is the call's, with this status.
    Won(u16),
    /// Failure, with its cause as text if there is more than the kind.
    Failed(AttemptFailure, Option<AttemptCause>),
    /// Cancelled: another attempt won, the deadline passed, or the caller disconnected.
    Cancelled,
}

/// Cause of a failed attempt, if there is more than its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptCause {
    /// Readable cause.
    pub text: Cow<'static, str>,
    /// What failed of the exchange.
    pub point: FailurePoint,
}

impl<T: Into<Cow<'static, str>>> From<T> for AttemptCause {
    fn from(text: T) -> Self {
        Self { text: text.into(), point: FailurePoint::Other }
    }
}

impl AttemptStatus {
    /// What failed of the exchange, if the attempt has.
    pub fn failure_point(&self) -> FailurePoint {
        match self {
            Self::Failed(_, Some(cause)) => cause.point,
            _ => FailurePoint::Other,
        }
    }
}

/// An attempt as JSON; times in milliseconds since the call's start.
#[derive(Debug, Serialize)]
struct AttemptJson<'a> {
    number: usize,
    reason: &'static str,
    upstream: &'a str,
    started_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ms: Option<f64>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// A rejected call as JSON.
#[derive(Debug, Serialize)]
struct RejectionJson<'a> {
    rejected: &'static str,
    priority: &'static str,
    retry_after_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<&'a str>,
}

/// An element of the array of a call.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum CallTraceJson<'a> {
    Attempt(AttemptJson<'a>),
    Unsent(UnsentJson),
}

/// Name of the reason of a launch: `first`, `stage`, `failure` or `retry`.
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

    /// Revokes the win: the response cannot be used after all.
    pub(super) fn revoke(&mut self) {
        for attempt in self.attempts.iter_mut().filter(|attempt| matches!(attempt.end, AttemptStatus::Won(_))) {
            attempt.end = AttemptStatus::Cancelled;
        }
    }

    /// Marks running attempts as cancelled, since the caller has disconnected.
    pub(super) fn cancel_running(&mut self, now: Nanos) {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.end == AttemptStatus::Running) {
            (attempt.ended, attempt.end) = (now, AttemptStatus::Cancelled);
        }
    }

    pub(super) fn launch_of(&self, attempt: u32) -> Nanos {
        self.attempts.get(attempt as usize).map_or(self.began, |attempt| attempt.launched)
    }

    /// The attempts as a JSON array; of a rejected call the rejection.
    pub fn json(&self) -> Box<serde_json::value::RawValue> {
        if let Some((Rejection { reason: why, retry_after }, priority)) = self.rejection {
            let (rejected, priority) = (why.name(), priority.name());
            let (route, caller) = self.rejected_call.as_ref().map(|call| (&*call.route, call.caller.as_str())).unzip();
            let line = RejectionJson { rejected, priority, retry_after_s: retry_after.as_secs_f64(), route, caller };
            return serde_json::value::to_raw_value(&[line]).unwrap_or_default();
        }
        let attempts = self.attempts.iter().enumerate().map(|(i, attempt)| self.attempt_json(i, attempt));
        let unsent = self.unsent.json().map(CallTraceJson::Unsent);
        let lines: Vec<CallTraceJson<'_>> = attempts.map(CallTraceJson::Attempt).chain(unsent).collect();
        // Plain fields are always JSON.
        serde_json::value::to_raw_value(&lines).unwrap_or_default()
    }

    fn attempt_json<'a>(&self, index: usize, attempt: &'a AttemptTrace) -> AttemptJson<'a> {
        let ms = |at: Nanos| ((at - self.began).as_millis_f64() * 1e3).round() / 1e3;
        let (outcome, status, failure, detail) = match &attempt.end {
            AttemptStatus::Running => ("running", None, None, None),
            AttemptStatus::Won(status) => ("won", Some(*status), None, None),
            AttemptStatus::Cancelled => ("cancelled", None, None, None),
            AttemptStatus::Failed(AttemptFailure::Status(status), _) => ("failed", Some(*status), None, None),
            AttemptStatus::Failed(failure, cause) => {
                ("failed", None, failure.name(), cause.as_ref().map(|cause| &*cause.text))
            }
        };
        AttemptJson {
            number: index + 1,
            reason: launch_reason(attempt.reason),
            upstream: attempt.origin.name(),
            started_ms: ms(attempt.launched),
            ended_ms: (attempt.end != AttemptStatus::Running).then(|| ms(attempt.ended)),
            outcome,
            status,
            failure,
            detail,
        }
    }
}

/// One event of a call, for its text.
#[derive(Debug)]
struct Event {
    at: Nanos,
    attempt: usize,
    /// Reason of a launch, as a prefix.
    reason: String,
    /// Event of the attempt.
    verb: &'static str,
    detail: String,
}

/// Equal events of several attempts within this time are one line.
const SAME_EVENT_WINDOW: Nanos = Nanos::from_millis(1);

impl Event {
    fn is_same(&self, next: &Self) -> bool {
        let text = |event: &Self| (event.reason.clone(), event.verb, event.detail.clone());
        next.at - self.at < SAME_EVENT_WINDOW && text(self) == text(next)
    }
}

const RESPONDED: &str = "responded ";
const CANCELLED: &str = "cancelled";

impl CallTrace {
    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (number, attempt) in (1..).zip(&self.attempts) {
            let because = match attempt.reason {
                LaunchReason::First => String::new(),
                LaunchReason::Stage(_) => "no success yet: ".to_owned(),
                LaunchReason::Failure(_) => "after a failure: ".to_owned(),
                LaunchReason::Retry(n) => format!("retry {n}: "),
            };
            let event = |at, verb, detail| Event { at, attempt: number, reason: String::new(), verb, detail };
            let sent = event(attempt.launched, "sent to ", attempt.origin.name().to_owned());
            events.push(Event { reason: because, ..sent });
            let (verb, detail) = match &attempt.end {
                AttemptStatus::Running => continue,
                AttemptStatus::Won(status) => (RESPONDED, format!("{status}: success")),
                AttemptStatus::Cancelled => (CANCELLED, String::new()),
                AttemptStatus::Failed(AttemptFailure::Status(status), _) => {
                    (RESPONDED, format!("{status}: no success"))
                }
                AttemptStatus::Failed(failure, cause) => {
                    let (name, cause) = (failure.name().unwrap_or_default(), cause.as_ref().map(|cause| &cause.text));
                    ("failed: ", cause.map_or_else(|| name.to_owned(), |cause| format!("{name}: {cause}")))
                }
            };
            events.push(event(attempt.ended, verb, detail));
        }
        // Of events at the same time cancellations come last; otherwise attempts are in order.
        events.sort_by_key(|event| (event.at, event.verb == CANCELLED));
        events
    }
}

/// One line per event; equal events of several attempts at the same time are one.
impl fmt::Display for CallTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for together in self.events().chunk_by(Event::is_same) {
            let [Event { at, attempt, reason, verb, detail }, others @ ..] = together else { continue };
            write!(f, "  {:>8.1} ms  {reason}", (*at - self.began).as_millis_f64())?;
            let Some((last, others)) = others.split_last() else {
                writeln!(f, "attempt {attempt} {verb}{detail}")?;
                continue;
            };
            write!(f, "attempts {attempt}")?;
            for other in others {
                write!(f, ", {}", other.attempt)?;
            }
            writeln!(f, " and {} {verb}{detail}", last.attempt)?;
        }
        if self.unsent.total() > 0 {
            writeln!(f, "               {}", self.unsent)?;
        }
        if let Some((Rejection { reason: why, retry_after }, priority)) = &self.rejection {
            let priority = priority.name();
            write!(f, "               rejected ({why}, priority {priority}); retry after {retry_after}")?;
            match &self.rejected_call {
                Some(call) => writeln!(f, "; caller {} of route {}", call.caller, call.route)?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::failure::FailureKind;
    use weir_net::client::ConnectOptions;
    use weir_net::target::Target;

    #[test]
    fn equal_events_at_the_same_time_are_one_line() {
        let target = Target::parse("http://127.0.0.1:9000").expect("a URL");
        let origin = Arc::new(Origin::new(&target, &ConnectOptions::default()).expect("an origin"));
        let mut trace = CallTrace { began: Nanos::from_secs(7), ..CallTrace::default() };
        let at = |ms| Nanos::from_secs(7) + Nanos::from_millis(ms);
        for (why, ms) in [
            (LaunchReason::First, 0),
            (LaunchReason::Stage(0), 300),
            (LaunchReason::Stage(0), 300),
            (LaunchReason::Retry(1), 400),
        ] {
            trace.launched(why, &origin, at(ms));
        }
        let ends = [
            AttemptStatus::Cancelled,
            AttemptStatus::Won(200),
            AttemptStatus::Failed(AttemptFailure::Kind(FailureKind::Timeout), None),
            AttemptStatus::Cancelled,
        ];
        for (number, (end, ms)) in (0..).zip(ends.into_iter().zip([421, 421, 380, 421])) {
            trace.ended(number, at(ms), end);
        }
        let expected = "
       0.0 ms  attempt 1 sent to 127.0.0.1:9000
     300.0 ms  no success yet: attempts 2 and 3 sent to 127.0.0.1:9000
     380.0 ms  attempt 3 failed: timeout
     400.0 ms  retry 1: attempt 4 sent to 127.0.0.1:9000
     421.0 ms  attempt 2 responded 200: success
     421.0 ms  attempts 1 and 4 cancelled
";
        assert_eq!(format!("\n{trace}"), expected);
    }
}
