//! What people write on the command line: times, stages, objectives; and what peers write in headers: deadlines, dates,
//! places in traces. Nothing panics, neither in reading it nor in what is then made of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir::call::TraceContext;
use weir::decide::deadline::Form;
use weir::decide::feedback::Feedback;
use weir::decide::words;
use weir::decide::{Nanos, WallNanos};
use weir::load::{Options, Plan};
use weir::measure::slo::Slo;

fuzz_target!(|text: &str| {
    if let Ok(time) = words::time(text) {
        assert!(time.as_secs_f64() <= 3e9, "{time:?}");
    }
    let _ = words::arrivals(text);
    let _ = text.parse::<Slo>();
    if let Ok(stages) = words::stages(text) {
        let options = Options { url: "http://127.0.0.1:1/".into(), stages, ..Options::default() };
        check(&options);
    }
    headers(text);
});

/// What is read of a header is at most a little more than what is passed on of it.
fn headers(text: &str) {
    for form in [Form::Grpc, Form::Millis, Form::Seconds] {
        let Some(left) = form.read(text.as_bytes()) else { continue };
        let mut written = String::new();
        assert!(form.write(left, &mut written).is_ok());
        let again = form.read(written.as_bytes());
        // Nothing is written as the least there is, for 0 has no limit to some.
        assert!(again.is_some_and(|again| again <= left.max(Nanos::MILLI)), "{text}: {left:?}, {written}");
    }
    for name in ["retry-after", "ratelimit-policy", "ratelimit", "x-ratelimit-limit", "x-ratelimit-reset-tokens"] {
        let feedback = Feedback::read([(name, text.as_bytes())], WallNanos(1_763_769_600_000_000_000));
        let _ = Nanos::SECOND + feedback.retry_after.unwrap_or_default();
    }
    if let Some(trace) = TraceContext::parse(text.as_bytes()) {
        assert!(trace.trace_id != 0 && trace.span_id != 0, "{trace}");
        assert_eq!(TraceContext::parse(trace.to_string().as_bytes()), Some(trace));
        let attempt = trace.of_attempt(63);
        assert!(attempt.span_id != 0 && attempt.span_id != trace.span_id, "{attempt}");
    }
}

/// A plan of these stages knows how long it is, and its arrivals are in order.
fn check(options: &Options) {
    let Ok(plan) = Plan::new(options) else { return };
    let _ = plan.expected_requests();
    let weir::load::Pace::Open(schedule) = &plan.pace else { panic!("stages are an open loop") };
    let arrivals: Vec<_> = schedule.clone().take(50).collect();
    for pair in arrivals.windows(2) {
        assert!(pair[0].intended <= pair[1].intended && pair[0].number < pair[1].number, "{pair:?}");
    }
    assert!(arrivals.iter().all(|arrival| arrival.intended <= plan.until), "{:?}", plan.until);
}
