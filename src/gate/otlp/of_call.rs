//! From a call's story to its spans.

use std::borrow::Cow;

use http::Method;

use super::span::{Span, SpanKind, Value};
use crate::call::TraceContext;
use crate::call::story::{Attempt, End, Story, reason};
use crate::decide::Nanos;
use crate::decide::hedge::Why;
use crate::decide::policy::Failure;
use crate::machine::clock::WallOffset;

/// Longer texts from outside are cut, so that a queue of spans has a bound in bytes, too.
const MOST_TEXT: usize = 1024;

/// What is to be known of a call beside its story.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// The trace that it belongs to; not 0.
    pub trace_id: u128,
    /// The call's span; not 0.
    pub span_id: u64,
    /// The caller's span, if it told of one.
    pub parent: Option<u64>,
    /// The route that took it, if one did.
    pub route: Option<&'a str>,
    /// As the caller sent it.
    pub method: &'a Method,
    /// As the caller sent it; a query is left out, for it may hold secrets.
    pub path: &'a str,
    /// The host that the caller asked for, with its port or without.
    pub host: Option<&'a str>,
    /// What the caller got; None if it left before, or its connection was reset.
    pub status: Option<u16>,
    /// How it ended, in a word.
    pub verdict: &'static str,
    /// When its request was there.
    pub began: Nanos,
    /// When its answer was, or nobody waited for one any more.
    pub ended: Nanos,
}

/// The span of the attempt with this number (from 0) in a call with this span: what is sent upstream as the parent, and
/// what [`spans_of_call`] tells. Neither 0 nor the call's own.
pub fn attempt_span_id(call: u64, number: u32) -> u64 {
    TraceContext { trace_id: 0, span_id: call, flags: 0 }.of_attempt(number).span_id
}

/// A call's span and one for each of its attempts, with times as `wall` has them.
///
/// By OpenTelemetry's conventions an answer of 500 and above is an error of a server's span, and an attempt is in error
/// when it was no success. An attempt that was cancelled is not: that is how a hedge is meant to end.
pub fn spans_of_call(call: &CallFacts<'_>, story: Option<&Story>, wall: &WallOffset) -> Vec<Span> {
    let attempts = story.map_or(&[][..], |story| &story.attempts);
    let mut spans = Vec::with_capacity(1 + attempts.len());
    spans.push(of_call(call, story, wall));
    spans.extend((0..).zip(attempts).map(|(number, attempt)| of_attempt(call, number, attempt, wall)));
    spans
}

fn of_call(call: &CallFacts<'_>, story: Option<&Story>, wall: &WallOffset) -> Span {
    let (name, mut attributes) = begun(call.method);
    let name = match call.route {
        Some(route) => Cow::Owned(format!("{name} {}", cut(route))),
        None => Cow::Borrowed(name),
    };
    let path = call.path.split('?').next().unwrap_or_default();
    attributes.push(("url.path", cut(path).to_owned().into()));
    attributes.push(("url.scheme", "http".into()));
    place(&mut attributes, call.host.unwrap_or_default());
    if let Some(route) = call.route {
        attributes.push(("weir.route", cut(route).to_owned().into()));
    }
    attributes.push(("weir.verdict", call.verdict.into()));
    if let Some(suppressed) = story.map(|story| story.suppressed).filter(|suppressed| *suppressed > 0) {
        attributes.push(("weir.suppressed", suppressed.into()));
    }
    if let Some((refusal, priority)) = story.and_then(|story| story.refused) {
        attributes.push(("weir.refused", refusal.why.name().into()));
        attributes.push(("weir.priority", priority.name().into()));
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
            attributes.push(("error.type", call.verdict.into()));
            Some(Cow::Borrowed(call.verdict))
        }
    };
    Span {
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

fn of_attempt(call: &CallFacts<'_>, number: u32, attempt: &Attempt, wall: &WallOffset) -> Span {
    let (name, mut attributes) = begun(call.method);
    place(&mut attributes, attempt.origin.name());
    attributes.push(("weir.attempt.number", Value::Int(i64::from(number) + 1)));
    attributes.push(("weir.attempt.why", reason(attempt.why).into()));
    if let Why::Retry(retry) = attempt.why {
        attributes.push(("http.request.resend_count", retry.into()));
    }
    let (end, status, error) = match &attempt.end {
        End::Running => ("running", None, None),
        End::Cancelled => ("cancelled", None, None),
        End::Won(status) => ("won", Some(*status), None),
        End::Failed(Failure::Status(status), _) => {
            attributes.push(("error.type", status.to_string().into()));
            ("lost", Some(*status), Some(Cow::Borrowed("")))
        }
        End::Failed(failure, cause) => {
            attributes.push(("error.type", failure.name().unwrap_or_default().into()));
            let cause = match cause {
                Some(Cow::Borrowed(cause)) => Cow::Borrowed(*cause),
                Some(Cow::Owned(cause)) => Cow::Owned(cut(cause).to_owned()),
                None => Cow::Borrowed(""),
            };
            ("lost", None, Some(cause))
        }
    };
    attributes.push(("weir.attempt.end", end.into()));
    if let Some(status) = status {
        attributes.push(("http.response.status_code", status.into()));
    }
    // One that still runs is over with its call at the latest, as far as this trace goes.
    let ended = if attempt.end == End::Running { call.ended } else { attempt.ended };
    Span {
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

/// A span's name and its first attributes. Methods that nobody has heard of would be names without end, and are `HTTP`.
fn begun(method: &Method) -> (&'static str, Vec<(&'static str, Value)>) {
    // Room for what may come; it is a span in a queue, and not for long.
    let mut attributes = Vec::with_capacity(10);
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    match known.into_iter().find(|known| *known == method.as_str()) {
        Some(known) => {
            attributes.push(("http.request.method", known.into()));
            (known, attributes)
        }
        None => {
            attributes.push(("http.request.method", "_OTHER".into()));
            attributes.push(("http.request.method_original", cut(method.as_str()).to_owned().into()));
            ("HTTP", attributes)
        }
    }
}

/// Host and port, from `host`, `host:port` or `[::1]:port`.
fn place(attributes: &mut Vec<(&'static str, Value)>, host: &str) {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse::<u16>().ok()),
        _ => (host, None),
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    if !name.is_empty() {
        attributes.push(("server.address", cut(name).to_owned().into()));
    }
    if let Some(port) = port {
        attributes.push(("server.port", port.into()));
    }
}

/// As much of it as is told.
fn cut(text: &str) -> &str {
    let end = (0..=MOST_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::decide::admit::{self, Priority, Refusal};
    use crate::decide::policy::Kind;
    use crate::http::client::{Origin, Reach};
    use crate::http::target::Target;
    use crate::machine::clock::{Clock, unix_s};
    use proptest::prelude::*;

    const CALL: CallFacts<'_> = CallFacts {
        trace_id: 7,
        span_id: 100,
        parent: Some(99),
        route: Some("smart"),
        method: &Method::GET,
        path: "/api/smart/1000?key=secret",
        host: Some("gate:8080"),
        status: Some(200),
        verdict: "success",
        began: Nanos::from_millis(5),
        ended: Nanos::from_millis(605),
    };

    fn wall() -> WallOffset {
        Clock::starting_in(Nanos::ZERO).wall_offset()
    }

    fn attempt(why: Why, url: &str, from_ms: u64, to_ms: u64, end: End) -> Attempt {
        let origin = Arc::new(Origin::new(&Target::parse(url).unwrap(), &Reach::default()).unwrap());
        Attempt { why, origin, launched: Nanos::from_millis(from_ms), ended: Nanos::from_millis(to_ms), end }
    }

    fn get<'a>(span: &'a Span, name: &str) -> Option<&'a Value> {
        span.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn all(span: &Span) -> Vec<String> {
        let shown = |value: &Value| match value {
            Value::Text(text) => text.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
        };
        span.attributes.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect()
    }

    #[test]
    fn a_hedged_call_is_a_span_with_one_for_each_attempt() {
        let refused = End::Failed(Failure::Kind(Kind::Connect), Some("connection refused".into()));
        let story = Story {
            began: Nanos::from_millis(6),
            attempts: vec![
                attempt(Why::First, "http://a:81", 6, 600, End::Cancelled),
                attempt(Why::Stage(0), "http://[::1]:82", 306, 307, refused),
                attempt(Why::Failure(1), "http://c", 307, 309, End::Failed(Failure::Status(500), None)),
                attempt(Why::Retry(2), "https://d", 400, 600, End::Won(200)),
                attempt(Why::Stage(1), "http://e:85", 450, 450, End::Running),
            ],
            suppressed: 1,
            refused: None,
        };
        let wall = wall();
        let spans = spans_of_call(&CALL, Some(&story), &wall);
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
                    "weir.verdict=success",
                    "weir.suppressed=1",
                    "http.response.status_code=200",
                ][..],
                &[
                    method,
                    "server.address=a",
                    "server.port=81",
                    "weir.attempt.number=1",
                    "weir.attempt.why=first",
                    "weir.attempt.end=cancelled",
                ],
                &[
                    method,
                    "server.address=::1",
                    "server.port=82",
                    "weir.attempt.number=2",
                    "weir.attempt.why=stage",
                    "error.type=connect",
                    "weir.attempt.end=lost",
                ],
                &[
                    method,
                    "server.address=c",
                    "weir.attempt.number=3",
                    "weir.attempt.why=failure",
                    "error.type=500",
                    "weir.attempt.end=lost",
                    "http.response.status_code=500",
                ],
                &[
                    method,
                    "server.address=d",
                    "weir.attempt.number=4",
                    "weir.attempt.why=retry",
                    "http.request.resend_count=2",
                    "weir.attempt.end=won",
                    "http.response.status_code=200",
                ],
                &[
                    method,
                    "server.address=e",
                    "server.port=85",
                    "weir.attempt.number=5",
                    "weir.attempt.why=stage",
                    "weir.attempt.end=running",
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
    fn a_call_that_was_refused_says_why() {
        let refusal = Refusal { why: admit::Why::Late, retry_after: Nanos::SECOND };
        let story = Story { refused: Some((refusal, Priority::Low)), ..Story::default() };
        let spans = spans_of_call(&CallFacts { verdict: "refused", ..CALL }, Some(&story), &wall());
        assert_eq!(spans.len(), 1);
        assert_eq!(get(&spans[0], "weir.refused"), Some(&"late".into()));
        assert_eq!(get(&spans[0], "weir.priority"), Some(&"low".into()));
    }

    #[test]
    fn a_call_fails_with_500_and_above_or_without_an_answer() {
        let of = |status, verdict| {
            let [span] = spans_of_call(&CallFacts { status, verdict, ..CALL }, None, &wall()).try_into().unwrap();
            (get(&span, "error.type").cloned(), span.error)
        };
        assert_eq!(of(Some(404), "no route"), (None, None));
        assert_eq!(of(Some(504), "late"), (Some("504".into()), Some("".into())));
        assert_eq!(of(None, "left"), (Some("left".into()), Some("left".into())));
    }

    #[test]
    fn a_method_that_nobody_knows_makes_no_new_name() {
        let method = Method::from_bytes(b"FROBNICATE").unwrap();
        let [span] =
            spans_of_call(&CallFacts { method: &method, route: None, ..CALL }, None, &wall()).try_into().unwrap();
        assert_eq!(span.name, "HTTP");
        assert_eq!(get(&span, "http.request.method"), Some(&"_OTHER".into()));
        assert_eq!(get(&span, "http.request.method_original"), Some(&"FROBNICATE".into()));
    }

    #[test]
    fn times_are_the_wall_clocks() {
        let clock = Clock::starting_in(Nanos::ZERO);
        let told = clock.wall_offset().unix_ns(clock.now()) as f64 / 1e9;
        assert!((told - unix_s()).abs() < 1.0, "{told}");
        assert!(clock.wall_offset().unix_ns(Nanos::NEVER) > 0, "the end of time is no overflow");
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
            let call = CallFacts { path: &path, host: Some(&host), route: Some(&path), ..CALL };
            for span in spans_of_call(&call, None, &wall()) {
                for (_, value) in &span.attributes {
                    prop_assert!(!matches!(value, Value::Text(text) if text.len() > MOST_TEXT));
                }
                prop_assert!(span.name.len() <= MOST_TEXT + 8);
                let told = get(&span, "url.path");
                prop_assert!(matches!(told, Some(Value::Text(told)) if path.starts_with(&**told)));
            }
        }
    }
}
