//! Spans of sampled requests: from the load to collectors of traces.

use std::time::Duration;
use weir_base::grpc_status::{is_grpc_status, is_success_status, status_text};

use super::out_options::{OutOptions, TraceCollector};
use weir_command::Messages;
use weir_load::LoadPlan;
use weir_load::request_tracing::{RequestTracing, SampledRequest, SampledRequests};
use weir_machine::logger::Logger;
use weir_measure::outcome::RequestEnd;
use weir_measure::run_steps::StepFacts;
use weir_telemetry::{AttributeValue, Exporter, SpanCounts, SpanKind, TraceSpan, push_server_address, truncate};

/// Name of the service in traces: the same as in metrics.
const SERVICE_NAME: &str = "weir";
/// Time after the end of the run in which the rest is delivered.
const END_GRACE: Duration = Duration::from_secs(5);

/// Spans of sampled requests, on their way to collectors.
#[derive(Debug)]
pub(super) struct SpanFeed {
    requests: SampledRequests,
    exporters: Vec<Exporter>,
    steps: Vec<StepFacts>,
    is_tls: bool,
}

impl SpanFeed {
    /// The plan with traces of a fraction of its requests, whose spans go to the collectors of the arguments.
    ///
    /// # Errors
    /// One line: a URL or header is invalid, or the system has no thread.
    pub(super) fn start(
        fraction: f64,
        options: &OutOptions,
        plan: LoadPlan,
        logger: &Logger,
    ) -> Result<(LoadPlan, Self), String> {
        if !(fraction > 0.0 && fraction <= 1.0) {
            return Err("--trace: write a fraction above 0%, up to 100%".to_owned());
        }
        let start = |TraceCollector { url, headers }: TraceCollector| {
            Exporter::start_with(&url, &headers, SERVICE_NAME, logger.clone()).map_err(|error| error.to_string())
        };
        let exporters = options.trace_collectors()?.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let (tracing, requests) = RequestTracing::new(fraction);
        let feed = Self { requests, exporters, steps: plan.step_facts(), is_tls: plan.target.tls };
        Ok((LoadPlan { tracing: Some(tracing), ..plan }, feed))
    }

    /// Passes on what has ended; `steps` are those that are known.
    pub(super) fn update(&mut self, steps: &dyn Fn() -> Vec<StepFacts>) {
        while let Some(request) = self.requests.take() {
            if request.step as usize >= self.steps.len() {
                self.steps = steps();
            }
            let step = self.steps.get(request.step as usize).map(|facts| facts.name.as_str());
            let span = span(&request, step, self.is_tls);
            self.exporters.iter().for_each(|exporter| exporter.sender().send(span.clone()));
        }
    }

    /// Delivers what is left, within some seconds, and prints what was lost.
    pub(super) fn finish(mut self, messages: &Messages) {
        self.update(&Vec::new);
        let missed = self.requests.missed();
        if missed > 0 {
            messages.always(&format!("{missed} sampled requests have no span: they ended before weir could read them"));
        }
        for exporter in self.exporters {
            let SpanCounts { exported, dropped } = exporter.close(END_GRACE);
            if dropped > 0 {
                messages.always(&format!("{dropped} of {} spans were not delivered", exported + dropped));
            }
        }
    }
}

/// Span of a request: it begins when the request is sent.
fn span(request: &SampledRequest, step: Option<&str>, is_tls: bool) -> TraceSpan {
    let head = &request.head;
    let text = |text: &str| AttributeValue::from(truncate(text).to_owned());
    let millis =
        |later: u64, earlier: u64| i64::try_from(later.saturating_sub(earlier) / 1_000_000).unwrap_or(i64::MAX);
    let mut attributes = vec![("http.request.method", text(&head.method)), ("url.path", text(&head.path))];
    attributes.push(("url.scheme", if is_tls { "https".into() } else { "http".into() }));
    push_server_address(&mut attributes, &head.host);
    attributes.extend(step.map(|step| ("weir.step", text(step))));
    attributes.push(("weir.wait_ms", AttributeValue::Int(millis(request.sent_unix_ns, request.intended_unix_ns))));
    let error = match request.end {
        RequestEnd::Response(status) | RequestEnd::Checked { status, .. } => {
            attributes.push(match is_grpc_status(status) {
                true => ("rpc.grpc.status_code", status.into()),
                false => ("http.response.status_code", status.into()),
            });
            let first_byte = millis(request.first_byte_unix_ns, request.sent_unix_ns);
            attributes.push(("weir.first_byte_ms", AttributeValue::Int(first_byte)));
            let is_failed = match request.end {
                RequestEnd::Checked { passed, .. } => !passed,
                _ => !is_success_status(status),
            };
            if is_failed {
                let by_status = !is_success_status(status);
                let kind = if by_status { status_text(status) } else { "check".into() };
                attributes.push(("error.type", kind.into_owned().into()));
            }
            is_failed.then(|| truncate(&request.message).to_owned())
        }
        RequestEnd::Failed(kind) => {
            attributes.push(("error.type", kind.name().into()));
            let message = if request.message.is_empty() { kind.name() } else { truncate(&request.message) };
            Some(message.to_owned())
        }
    };
    let name = step.map_or_else(|| head.method.clone(), |step| truncate(step).to_owned());
    TraceSpan {
        trace_id: request.context.trace_id,
        span_id: request.context.span_id,
        parent: None,
        name: name.into(),
        kind: SpanKind::Client,
        start_unix_ns: request.sent_unix_ns,
        end_unix_ns: request.done_unix_ns,
        attributes,
        error: error.map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::failure::FailureKind;
    use weir_load::request_tracing::SampledHead;
    use weir_net::traceparent::TraceContext;

    fn request(end: RequestEnd, message: &str) -> SampledRequest {
        let own = |text: &str| text.to_owned();
        SampledRequest {
            context: TraceContext { trace_id: 7, span_id: 8, flags: 1 },
            head: SampledHead { method: own("GET"), path: own("/a"), host: own("h:80") },
            step: 0,
            intended_unix_ns: 1_000_000_000,
            sent_unix_ns: 1_005_000_000,
            first_byte_unix_ns: 1_007_000_000,
            done_unix_ns: 1_009_000_000,
            end,
            message: own(message),
        }
    }

    #[test]
    fn a_span_begins_when_the_request_is_sent_and_has_the_wait_before_it() {
        let span = span(&request(RequestEnd::Response(200), ""), Some("login"), false);
        assert_eq!((span.trace_id, span.span_id, &*span.name, span.error.as_deref()), (7, 8, "login", None));
        assert_eq!((span.start_unix_ns, span.end_unix_ns), (1_005_000_000, 1_009_000_000));
        for expected in [("weir.wait_ms", AttributeValue::Int(5)), ("weir.first_byte_ms", AttributeValue::Int(2))] {
            assert!(span.attributes.contains(&expected), "{expected:?}");
        }
    }

    #[test]
    fn failures_are_errors_with_their_kind() {
        for (end, message, kind, status) in [
            (RequestEnd::Response(503), "", "503", ""),
            (RequestEnd::Checked { status: 200, passed: false }, "no token", "check", "no token"),
            (RequestEnd::Failed(FailureKind::Timeout), "", "timeout", "timeout"),
        ] {
            let span = span(&request(end, message), None, true);
            assert_eq!((span.error.as_deref(), &*span.name), (Some(status), "GET"));
            assert!(span.attributes.contains(&("error.type", kind.to_owned().into())), "{:?}", span.attributes);
        }
        let passed = span(&request(RequestEnd::Checked { status: 404, passed: true }, ""), None, false);
        assert_eq!(passed.error, None);
    }
}
