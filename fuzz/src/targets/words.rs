//! Syntax of the command line (times, stages, objectives) and of headers (deadlines, dates, trace contexts). Nothing
//! panics, neither in parsing nor in using the values.

use weir_call::TraceContext;
use weir_base::units;
use weir_retry::deadline::DeadlineFormat;
use weir_delivery::limit_headers::RateLimitHeaders;
use weir_pace::live_load::LevelKind;
use weir_pace::notation;
use weir_base::{Nanos, WallNanos};
use weir_load::{LoadPlan, Options, Pacing};
use weir_measure::slo::Slo;

crate::target!(|text: &str| {
    if let Ok(time) = units::time(text) {
        assert!(time.as_secs_f64() <= 3e9, "{time:?}");
    }
    let _ = notation::arrivals(text);
    let _ = text.parse::<Slo>();
    if let Ok(stages) = notation::stages(text) {
        let options = Options { url: "http://127.0.0.1:1/".into(), stages, ..Options::default() };
        check(&options);
    }
    if let Ok((kind, stages)) = notation::stages_of_load(text) {
        let again = notation::stages_of_load(&notation::written(&stages, kind));
        assert!(again.is_ok_and(|(same, again)| (same, again.len()) == (kind, stages.len())), "{text}");
        if kind == LevelKind::Users {
            let _ = LoadPlan::new(&Options {
                url: "http://127.0.0.1:1/".into(),
                user_stages: stages,
                ..Options::default()
            });
        }
    }
    headers(text);
});

/// A deadline that is passed on is not longer than the one received, up to its resolution.
fn headers(text: &str) {
    for form in [DeadlineFormat::Grpc, DeadlineFormat::Millis, DeadlineFormat::Seconds] {
        let Some(left) = form.read(text.as_bytes()) else { continue };
        let mut written = String::new();
        assert!(form.write(left, &mut written).is_ok());
        let again = form.read(written.as_bytes());
        // 0 is written as the minimum, since some services take 0 as unlimited.
        assert!(again.is_some_and(|again| again <= left.max(Nanos::MILLI)), "{text}: {left:?}, {written}");
    }
    for name in ["retry-after", "ratelimit-policy", "ratelimit", "x-ratelimit-limit", "x-ratelimit-reset-tokens"] {
        let feedback = RateLimitHeaders::read([(name, text.as_bytes())], WallNanos(1_763_769_600_000_000_000));
        let _ = Nanos::SECOND + feedback.retry_after.unwrap_or_default();
    }
    if let Some(trace) = TraceContext::parse(text.as_bytes()) {
        assert!(trace.trace_id != 0 && trace.span_id != 0, "{trace}");
        assert_eq!(TraceContext::parse(trace.to_string().as_bytes()), Some(trace));
        let attempt = trace.of_attempt(63);
        assert!(attempt.span_id != 0 && attempt.span_id != trace.span_id, "{attempt}");
    }
}

/// A plan of stages has a number of requests, and ordered arrivals.
fn check(options: &Options) {
    let Ok(plan) = LoadPlan::new(options) else { return };
    let _ = plan.expected_requests();
    let Pacing::Open(schedule) = &plan.pacing else { panic!("stages are an open loop") };
    let arrivals: Vec<_> = schedule.clone().take(50).collect();
    for pair in arrivals.windows(2) {
        assert!(pair[0].intended <= pair[1].intended && pair[0].number < pair[1].number, "{pair:?}");
    }
    assert!(arrivals.iter().all(|arrival| arrival.intended <= plan.until), "{:?}", plan.until);
}
