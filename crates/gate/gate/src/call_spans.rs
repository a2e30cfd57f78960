//! Spans of a call, from its trace.

use std::borrow::Cow;

use http::Method;

use weir_base::Nanos;
use weir_call::attempt_log::{AttemptStatus, AttemptTrace, CallTrace, launch_reason};
use weir_machine::clock::WallOffset;
use weir_net::traceparent::TraceContext;
use weir_resilience::hedge::LaunchReason;
use weir_retry::policy::AttemptFailure;
use weir_telemetry::{AttributeValue, SpanKind, TraceSpan, push_server_address, span_name, truncate};

/// Facts about a call beside its attempts.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallSpanFacts<'a> {
    /// Trace ID; not 0.
    pub(super) trace_id: u128,
    /// ID of the call's span; not 0.
    pub(super) span_id: u64,
    /// ID of the caller's span, if it sent one.
    pub(super) parent: Option<u64>,
    /// Name of the route, if one matched.
    pub(super) route: Option<&'a str>,
    /// Method of the caller's request.
    pub(super) method: &'a Method,
    /// Path of the caller's request. A query is left out of spans, since it may hold secrets.
    pub(super) path: &'a str,
    /// Host of the caller's request, with its port or without.
    pub(super) host: Option<&'a str>,
    /// Status of the response; None if the caller disconnected before, or its connection was reset.
    pub(super) status: Option<u16>,
    /// Outcome of the call, as in `weir_gate_calls_total`.
    pub(super) outcome: &'static str,
    /// Time when the head of the request was read.
    pub(super) began: Nanos,
    /// Time of the response's head, or of the caller's disconnection.
    pub(super) ended: Nanos,
}

/// Span ID of an attempt, from its number (from 0) and the call's span ID. It is sent upstream as the parent. Neither 0
/// nor the call's own.
pub(super) fn attempt_span_id(call: u64, number: u32) -> u64 {
    TraceContext { trace_id: 0, span_id: call, flags: 0 }.of_attempt(number).span_id
}

/// The span of a call and one for each of its attempts, with wall-clock times.
///
/// By OpenTelemetry's conventions a server span is an error if the status is 500 or above, and a client span if the
/// attempt has failed. A cancelled attempt is not an error: most hedges end that way.
pub(super) fn spans_of_call(call: &CallSpanFacts<'_>, trace: Option<&CallTrace>, wall: &WallOffset) -> Vec<TraceSpan> {
    let attempts = trace.map_or(&[][..], |trace| &trace.attempts);
    let mut spans = Vec::with_capacity(1 + attempts.len());
    spans.push(call_span(call, trace, wall));
    spans.extend((0..).zip(attempts).map(|(number, attempt)| attempt_span(call, number, attempt, wall)));
    spans
}

fn call_span(call: &CallSpanFacts<'_>, trace: Option<&CallTrace>, wall: &WallOffset) -> TraceSpan {
    let (name, mut attributes) = span_name(call.method);
    let name = match call.route {
        Some(route) => Cow::Owned(format!("{name} {}", truncate(route))),
        None => Cow::Borrowed(name),
    };
    let path = call.path.split('?').next().unwrap_or_default();
    attributes.push(("url.path", truncate(path).to_owned().into()));
    attributes.push(("url.scheme", "http".into()));
    push_server_address(&mut attributes, call.host.unwrap_or_default());
    if let Some(route) = call.route {
        attributes.push(("weir.route", truncate(route).to_owned().into()));
    }
    attributes.push(("weir.outcome", call.outcome.into()));
    if let Some(skipped) = trace.map(|trace| trace.unsent.total()).filter(|skipped| *skipped > 0) {
        attributes.push(("weir.attempts.skipped", skipped.into()));
    }
    if let Some((rejection, priority)) = trace.and_then(|trace| trace.rejection) {
        attributes.push(("weir.rejected", rejection.reason.name().into()));
        attributes.push(("weir.priority", priority.name().into()));
        if let Some(call) = trace.and_then(|trace| trace.rejected_call.as_ref()) {
            attributes.push(("weir.caller", truncate(&call.caller).to_owned().into()));
        }
    }
    let error = match call.status {
        Some(status) => {
            attributes.push(("http.response.status_code", status.into()));
            (status >= 500).then(|| {
                attributes.push(("error.type", status.to_string().into()));
                Cow::Borrowed("")
            })
        }
        None => {
            attributes.push(("error.type", call.outcome.into()));
            Some(Cow::Borrowed(call.outcome))
        }
    };
    TraceSpan {
        trace_id: call.trace_id,
        span_id: call.span_id,
        parent: call.parent,
        name,
        kind: SpanKind::Server,
        start_unix_ns: wall.unix_ns(call.began),
        end_unix_ns: wall.unix_ns(call.ended.max(call.began)),
        attributes,
        error,
    }
}

fn attempt_span(call: &CallSpanFacts<'_>, number: u32, attempt: &AttemptTrace, wall: &WallOffset) -> TraceSpan {
    let (name, mut attributes) = span_name(call.method);
    push_server_address(&mut attributes, attempt.origin.name());
    attributes.push(("weir.attempt.number", AttributeValue::Int(i64::from(number) + 1)));
    attributes.push(("weir.attempt.reason", launch_reason(attempt.reason).into()));
    if let LaunchReason::Retry(retry) = attempt.reason {
        attributes.push(("http.request.resend_count", retry.into()));
    }
    let (outcome, status, error) = match &attempt.end {
        AttemptStatus::Running => ("running", None, None),
        AttemptStatus::Cancelled => ("cancelled", None, None),
        AttemptStatus::Won(status) => ("won", Some(*status), None),
        AttemptStatus::Failed(AttemptFailure::Status(status), _) => {
            attributes.push(("error.type", status.to_string().into()));
            ("failed", Some(*status), Some(Cow::Borrowed("")))
        }
        AttemptStatus::Failed(failure, cause) => {
            attributes.push(("error.type", failure.name().unwrap_or_default().into()));
            let cause = match cause.as_ref().map(|cause| &cause.text) {
                Some(Cow::Borrowed(cause)) => Cow::Borrowed(*cause),
                Some(Cow::Owned(cause)) => Cow::Owned(truncate(cause).to_owned()),
                None => Cow::Borrowed(""),
            };
            ("failed", None, Some(cause))
        }
    };
    attributes.push(("weir.attempt.outcome", outcome.into()));
    if let Some(status) = status {
        attributes.push(("http.response.status_code", status.into()));
    }
    // In the trace, an attempt in flight ends with its call.
    let ended = if attempt.end == AttemptStatus::Running { call.ended } else { attempt.ended };
    TraceSpan {
        trace_id: call.trace_id,
        span_id: attempt_span_id(call.span_id, number),
        parent: Some(call.span_id),
        name: Cow::Borrowed(name),
        kind: SpanKind::Client,
        start_unix_ns: wall.unix_ns(attempt.launched),
        end_unix_ns: wall.unix_ns(ended.max(attempt.launched)),
        attributes,
        error,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use proptest::prelude::*;
    use weir_base::failure::FailureKind;
    use weir_call::UnsentAttempts;
    use weir_machine::clock::{Clock, unix_s};
    use weir_net::client::{ConnectOptions, Origin};
    use weir_net::target::Target;
    use weir_resilience::admission;
    use weir_resilience::admission::{Priority, Rejection};
    use weir_telemetry::MAX_TEXT_BYTES;

    const CALL: CallSpanFacts<'_> = CallSpanFacts {
        trace_id: 7,
        span_id: 100,
        parent: Some(99),
        route: Some("smart"),
        method: &Method::GET,
        path: "/api/smart/1000?key=secret",
        host: Some("gate:8080"),
        status: Some(200),
        outcome: "succeeded",
        began: Nanos::from_millis(5),
        ended: Nanos::from_millis(605),
    };

    fn wall() -> WallOffset {
        Clock::starting_in(Nanos::ZERO).wall_offset()
    }

    fn attempt(why: LaunchReason, url: &str, from_ms: u64, to_ms: u64, end: AttemptStatus) -> AttemptTrace {
        let origin = Arc::new(Origin::new(&Target::parse(url).unwrap(), &ConnectOptions::default()).unwrap());
        AttemptTrace {
            reason: why,
            origin,
            launched: Nanos::from_millis(from_ms),
            ended: Nanos::from_millis(to_ms),
            end,
        }
    }

    fn get<'a>(span: &'a TraceSpan, name: &str) -> Option<&'a AttributeValue> {
        span.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn all(span: &TraceSpan) -> Vec<String> {
        let shown = |value: &AttributeValue| match value {
            AttributeValue::Text(text) => text.to_string(),
            AttributeValue::Int(number) => number.to_string(),
            AttributeValue::Flag(flag) => flag.to_string(),
        };
        span.attributes.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect()
    }

    #[test]
    fn a_hedged_call_is_a_span_with_one_for_each_attempt() {
        let connect_failure =
            AttemptStatus::Failed(AttemptFailure::Kind(FailureKind::Connect), Some("connection refused".into()));
        let mut unsent = UnsentAttempts::default();
        unsent.retries = 1;
        let trace = CallTrace {
            began: Nanos::from_millis(6),
            attempts: vec![
                attempt(LaunchReason::First, "http://a:81", 6, 600, AttemptStatus::Cancelled),
                attempt(LaunchReason::Stage(0), "http://[::1]:82", 306, 307, connect_failure),
                attempt(
                    LaunchReason::Failure(1),
                    "http://c",
                    307,
                    309,
                    AttemptStatus::Failed(AttemptFailure::Status(500), None),
                ),
                attempt(LaunchReason::Retry(2), "https://d", 400, 600, AttemptStatus::Won(200)),
                attempt(LaunchReason::Stage(1), "http://e:85", 450, 450, AttemptStatus::Running),
            ],
            unsent,
            rejection: None,
            rejected_call: None,
        };
        let wall = wall();
        let spans = spans_of_call(&CALL, Some(&trace), &wall);
        assert_eq!(spans.len(), 6);
        let attributes: Vec<Vec<String>> = spans.iter().map(all).collect();
        let method = "http.request.method=GET";
        assert_eq!(
            attributes,
            [
                &[
                    method,
                    "url.path=/api/smart/1000",
                    "url.scheme=http",
                    "server.address=gate",
                    "server.port=8080",
                    "weir.route=smart",
                    "weir.outcome=succeeded",
                    "weir.attempts.skipped=1",
                    "http.response.status_code=200",
                ][..],
                &[
                    method,
                    "server.address=a",
                    "server.port=81",
                    "weir.attempt.number=1",
                    "weir.attempt.reason=first",
                    "weir.attempt.outcome=cancelled",
                ],
                &[
                    method,
                    "server.address=::1",
                    "server.port=82",
                    "weir.attempt.number=2",
                    "weir.attempt.reason=stage",
                    "error.type=connect",
                    "weir.attempt.outcome=failed",
                ],
                &[
                    method,
                    "server.address=c",
                    "weir.attempt.number=3",
                    "weir.attempt.reason=failure",
                    "error.type=500",
                    "weir.attempt.outcome=failed",
                    "http.response.status_code=500",
                ],
                &[
                    method,
                    "server.address=d",
                    "weir.attempt.number=4",
                    "weir.attempt.reason=retry",
                    "http.request.resend_count=2",
                    "weir.attempt.outcome=won",
                    "http.response.status_code=200",
                ],
                &[
                    method,
                    "server.address=e",
                    "server.port=85",
                    "weir.attempt.number=5",
                    "weir.attempt.reason=stage",
                    "weir.attempt.outcome=running",
                ],
            ]
        );
        let errors: Vec<Option<&str>> = spans.iter().map(|span| span.error.as_deref()).collect();
        assert_eq!(errors, [None, None, Some("connection refused"), Some(""), None, None]);
        let times: Vec<(u64, u64)> = spans
            .iter()
            .map(|span| (span.start_unix_ns - wall.unix_ns(Nanos::ZERO), span.end_unix_ns - span.start_unix_ns))
            .map(|(start, length)| (start / 1_000_000, length / 1_000_000))
            .collect();
        assert_eq!(times, [(5, 600), (6, 594), (306, 1), (307, 2), (400, 200), (450, 155)]);
        assert_eq!((&*spans[0].name, spans[0].kind, spans[0].parent), ("GET smart", SpanKind::Server, Some(99)));
        for (number, span) in (0..).zip(&spans[1..]) {
            assert_eq!((&*span.name, span.kind, span.parent), ("GET", SpanKind::Client, Some(100)));
            assert_eq!((span.trace_id, span.span_id), (7, attempt_span_id(100, number)));
        }
    }

    #[test]
    fn a_rejected_call_has_the_reason() {
        let rejection = Rejection { reason: admission::RejectionReason::DeadlineExceeded, retry_after: Nanos::SECOND };
        let trace = CallTrace { rejection: Some((rejection, Priority::Low)), ..CallTrace::default() };
        let spans = spans_of_call(&CallSpanFacts { outcome: "rejected", ..CALL }, Some(&trace), &wall());
        assert_eq!(spans.len(), 1);
        assert_eq!(get(&spans[0], "weir.rejected"), Some(&"deadline_too_short".into()));
        assert_eq!(get(&spans[0], "weir.priority"), Some(&"low".into()));
    }

    #[test]
    fn a_call_fails_with_500_and_above_or_without_a_response() {
        let of = |status, outcome| {
            let [span] = spans_of_call(&CallSpanFacts { status, outcome, ..CALL }, None, &wall()).try_into().unwrap();
            (get(&span, "error.type").cloned(), span.error)
        };
        assert_eq!(of(Some(404), "no route"), (None, None));
        assert_eq!(of(Some(504), "deadline_exceeded"), (Some("504".into()), Some("".into())));
        let closed = "client_closed";
        assert_eq!(of(None, closed), (Some(closed.into()), Some(closed.into())));
    }

    #[test]
    fn unknown_methods_have_one_name() {
        let method = Method::from_bytes(b"FROBNICATE").unwrap();
        let [span] =
            spans_of_call(&CallSpanFacts { method: &method, route: None, ..CALL }, None, &wall()).try_into().unwrap();
        assert_eq!(span.name, "HTTP");
        assert_eq!(get(&span, "http.request.method"), Some(&"_OTHER".into()));
        assert_eq!(get(&span, "http.request.method_original"), Some(&"FROBNICATE".into()));
    }

    #[test]
    fn times_are_the_wall_clocks() {
        let clock = Clock::starting_in(Nanos::ZERO);
        let wall_s = clock.wall_offset().unix_ns(clock.now()) as f64 / 1e9;
        assert!((wall_s - unix_s()).abs() < 1.0, "{wall_s}");
        assert!(clock.wall_offset().unix_ns(Nanos::NEVER) > 0, "Nanos::NEVER does not overflow");
    }

    proptest! {
        #[test]
        fn ids_of_attempts_differ_from_each_other_from_the_calls_and_from_none(
            call in prop_oneof![1..=u64::MAX, u64::MAX - 20..=u64::MAX]
        ) {
            let ids: BTreeSet<u64> = (0..40).map(|number| attempt_span_id(call, number)).collect();
            prop_assert_eq!(ids.len(), 40);
            prop_assert!(!ids.contains(&0) && !ids.contains(&call));
        }

        #[test]
        fn texts_from_outside_are_cut(path in "/.{0,40}é{0,2000}", host in ".{0,3000}") {
            let call = CallSpanFacts { path: &path, host: Some(&host), route: Some(&path), ..CALL };
            for span in spans_of_call(&call, None, &wall()) {
                for (_, value) in &span.attributes {
                    prop_assert!(!matches!(value, AttributeValue::Text(text) if text.len() > MAX_TEXT_BYTES));
                }
                prop_assert!(span.name.len() <= MAX_TEXT_BYTES + 8);
                let path_attribute = get(&span, "url.path");
                prop_assert!(matches!(path_attribute, Some(AttributeValue::Text(cut)) if path.starts_with(&**cut)));
            }
        }
    }
}
