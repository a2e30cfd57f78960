//! What happened to a call, attempt by attempt.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::decide::Nanos;
use crate::decide::hedge::Why;
use crate::decide::policy::Failure;
use crate::http::client::Origin;

/// A call's attempts, in the order of their launch.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// When the call began.
    pub began: Nanos,
    /// Its attempts.
    pub attempts: Vec<Attempt>,
    /// Extra attempts that the budget did not allow.
    pub suppressed: u32,
}

/// One copy of a call.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Why it was launched.
    pub why: Why,
    /// Where it went.
    pub origin: Arc<Origin>,
    /// When it was launched.
    pub launched: Nanos,
    /// When it ended; meaningless while it runs.
    pub ended: Nanos,
    /// How it ended.
    pub end: End,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It has not.
    Running,
    /// Its answer is the call's, with this status.
    Won(u16),
    /// It was no success; in words, where there are any beyond the kind.
    Failed(Failure, Option<Cow<'static, str>>),
    /// Nobody wanted it any more.
    Cancelled,
}

/// An attempt as JSON: times in milliseconds since the call's start.
#[derive(Debug, Serialize)]
struct Line<'a> {
    attempt: usize,
    why: &'static str,
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

/// The word for why an attempt was launched.
pub fn reason(why: Why) -> &'static str {
    match why {
        Why::First => "first",
        Why::Stage(_) => "stage",
        Why::Failure(_) => "failure",
        Why::Retry(_) => "retry",
    }
}

impl Story {
    pub(super) fn launched(&mut self, why: Why, origin: &Arc<Origin>, now: Nanos) {
        let origin = Arc::clone(origin);
        self.attempts.push(Attempt { why, origin, launched: now, ended: now, end: End::Running });
    }

    pub(super) fn ended(&mut self, attempt: u32, now: Nanos, end: End) {
        if let Some(attempt) = self.attempts.get_mut(attempt as usize) {
            (attempt.ended, attempt.end) = (now, end);
        }
    }

    pub(super) fn launch_of(&self, attempt: u32) -> Nanos {
        self.attempts.get(attempt as usize).map_or(self.began, |attempt| attempt.launched)
    }

    /// The attempts as a JSON array.
    pub fn json(&self) -> Box<serde_json::value::RawValue> {
        let lines: Vec<Line<'_>> = self.attempts.iter().enumerate().map(|(i, attempt)| self.line(i, attempt)).collect();
        // Plain fields are always JSON.
        serde_json::value::to_raw_value(&lines).unwrap_or_default()
    }

    fn line<'a>(&self, number: usize, attempt: &'a Attempt) -> Line<'a> {
        let ms = |at: Nanos| ((at - self.began).as_millis_f64() * 1e3).round() / 1e3;
        let (end, status, failure, cause) = match &attempt.end {
            End::Running => ("running", None, None, None),
            End::Won(status) => ("won", Some(*status), None, None),
            End::Cancelled => ("cancelled", None, None, None),
            End::Failed(Failure::Status(status), _) => ("lost", Some(*status), None, None),
            End::Failed(Failure::Kind(kind), cause) => ("lost", None, Some(kind.name()), cause.as_deref()),
        };
        Line {
            attempt: number + 1,
            why: reason(attempt.why),
            upstream: attempt.origin.name(),
            launched_ms: ms(attempt.launched),
            ended_ms: (attempt.end != End::Running).then(|| ms(attempt.ended)),
            end,
            status,
            failure,
            cause,
        }
    }
}

/// One line per event, in plain words.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut events: Vec<(Nanos, String)> = Vec::new();
        for (i, attempt) in self.attempts.iter().enumerate() {
            let (number, origin) = (i + 1, attempt.origin.name());
            let why = match attempt.why {
                Why::First => String::new(),
                Why::Stage(_) => ": no success yet".to_owned(),
                Why::Failure(_) => ": an attempt has failed".to_owned(),
                Why::Retry(n) => format!(": retry {n}"),
            };
            events.push((attempt.launched, format!("attempt {number} goes to {origin}{why}")));
            let end = match &attempt.end {
                End::Running => continue,
                End::Won(status) => format!("succeeds with {status}: it is the answer"),
                End::Cancelled => "is cancelled: it is not wanted any more".to_owned(),
                End::Failed(Failure::Status(status), _) => format!("answers {status}: no success"),
                End::Failed(Failure::Kind(kind), cause) => {
                    format!("fails ({}): {}", kind.name(), cause.as_deref().unwrap_or("no success"))
                }
            };
            events.push((attempt.ended, format!("attempt {number} {end}")));
        }
        // What happens at the same time stays in the order of the attempts.
        events.sort_by_key(|(at, _)| *at);
        for (at, event) in events {
            writeln!(f, "  {:>8.1} ms  {event}", (at - self.began).as_millis_f64())?;
        }
        if self.suppressed > 0 {
            writeln!(f, "               {} more not sent: the budget is spent", self.suppressed)?;
        }
        Ok(())
    }
}
