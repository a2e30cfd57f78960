//! Requests of steps and their responses as they were, for a person.

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::grpc_status::status_text;
use weir_measure::outcome::{Outcome, RequestEnd};
use weir_scenario::evaluate::CheckFailure;
use weir_scenario::plan::{FlowFailure, StepVerdict};
use weir_scenario::value::Value;

use super::{StepExchange, UserTable};

/// Request of a step and what came back.
#[derive(Clone, Debug)]
pub struct StepTrace {
    /// Name of the step.
    pub step: String,
    /// Origin of the request: `http://shop:8080`; empty if none was made.
    pub origin: String,
    /// Bytes of the request; empty if none was made.
    pub request: Vec<u8>,
    /// Head of the response; empty without one.
    pub head: Vec<u8>,
    /// Body of the response, decoded, without framing.
    pub body: Vec<u8>,
    /// Size of the body as it came, in bytes.
    pub raw_body_bytes: usize,
    /// Time from the send to the end.
    pub service: Nanos,
    /// Captures that found a value.
    pub captures: Vec<CaptureTrace>,
    /// Checks that were evaluated.
    pub checks: Vec<CheckTrace>,
    /// Other failures than those of checks; empty if there is none.
    pub failures: Vec<String>,
    /// Kind of a transfer that failed.
    pub transfer_failure: Option<FailureKind>,
    /// Outcome of the request: `passed`, `failed`, `redirected` or `retried`.
    pub verdict: &'static str,
    /// Variables of the user after it, by name.
    pub variables: Vec<(String, Value)>,
}

/// Value that a capture took from a response.
#[derive(Clone, Debug)]
pub struct CaptureTrace {
    /// Name of the variable.
    pub name: String,
    /// JSON text of the value.
    pub json: String,
    /// Whether the file asks to hide the value.
    pub is_redacted: bool,
}

/// Check of a response, and its result.
#[derive(Clone, Debug)]
pub struct CheckTrace {
    /// Check, as it is written.
    pub text: String,
    /// Why it does not hold, if so.
    pub failure: Option<CheckFailure>,
}

impl StepTrace {
    /// Trace of what the last call of a flow found about a request of a user.
    pub(crate) fn new(users: &UserTable<'_>, user: u32, outcome: &Outcome, exchange: Option<&StepExchange>) -> Self {
        let mut trace = Self::of_findings(users, user);
        trace.service = outcome.service();
        match outcome.end {
            RequestEnd::Failed(kind) => {
                trace.transfer_failure = Some(kind);
                trace.explain(kind, exchange.and_then(|exchange| exchange.fault.as_deref()));
            }
            // Nothing but the status says why.
            RequestEnd::Response(status) if trace.verdict == "failed" && users.has_passed() => {
                trace.failures.push(format!("status {}", status_text(status)));
            }
            RequestEnd::Response(_) | RequestEnd::Checked { .. } => {}
        }
        if let Some(exchange) = exchange {
            trace.origin = users.flow.origin_name(users.scenario_of(user), exchange.origin);
            if exchange.codec.is_some() {
                trace.origin = trace.origin.replacen("http", "grpc", 1);
            }
            trace.request = exchange.shown_request();
            trace.head = exchange.head().to_vec();
            trace.raw_body_bytes = exchange.body().len();
            match exchange.decoded_body() {
                Ok(body) => {
                    // JSON of messages is longer than they are, and not decompressed.
                    if exchange.codec.is_some() {
                        trace.raw_body_bytes = body.len();
                    }
                    trace.body = body;
                }
                Err(reason) => {
                    // As it came.
                    trace.body = exchange.body().to_vec();
                    if exchange.fault.is_none() {
                        trace.failures.push(reason);
                    }
                }
            }
        }
        trace
    }

    /// Adds the reason to the name of a failure's kind.
    fn explain(&mut self, kind: FailureKind, reason: Option<&str>) {
        if let (Some(reason), Some(failure)) = (reason, self.failures.iter_mut().find(|text| *text == kind.name())) {
            *failure = format!("{failure}: {reason}");
        }
    }

    /// Trace of a request that could not be made.
    pub(crate) fn of_findings(users: &UserTable<'_>, user: u32) -> Self {
        let findings = &users.findings;
        let step = users.found_step(user);
        let (mut failed, mut failures) = (Vec::new(), Vec::new());
        for failure in &findings.failures {
            match failure {
                FlowFailure::Check(index, failure) => failed.push((*index, failure)),
                other => failures.push(other.to_string()),
            }
        }
        let evaluated = users.flow.step_checks(step).iter().zip(0..findings.checks_evaluated);
        let evaluated = evaluated.filter(|(_, index)| findings.has_passed(*index).is_some());
        let check = |(text, index): (&String, u32)| {
            let failure = failed.iter().find(|(of, _)| *of == index).map(|(_, failure)| *failure);
            CheckTrace { text: text.clone(), failure: failure.cloned() }
        };
        let captured = users.captures(user).iter().zip(&findings.captures);
        Self {
            step: users.flow.step_name(step),
            origin: String::new(),
            request: Vec::new(),
            head: Vec::new(),
            body: Vec::new(),
            raw_body_bytes: 0,
            service: Nanos::ZERO,
            captures: captured
                .map(|(capture, value)| CaptureTrace {
                    name: capture.name().to_owned(),
                    json: value.json(),
                    is_redacted: capture.is_redacted(),
                })
                .collect(),
            checks: evaluated.map(check).collect(),
            failures,
            transfer_failure: None,
            variables: users.flow.variables(user),
            verdict: match findings.verdict {
                Some(StepVerdict::Passed) => "passed",
                Some(StepVerdict::Retried) => "retried",
                Some(StepVerdict::Redirected) => "redirected",
                Some(StepVerdict::Failed) | None => "failed",
            },
        }
    }
}
